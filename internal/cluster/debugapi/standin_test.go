// SPDX-License-Identifier: Apache-2.0

package debugapi_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/streams"
)

// standIn is an agent that runs nothing: it says what it was asked for, and ends as the image's name tells it. It
// serves with the certificate that the API has signed, and lets in whom that names.
type standIn struct {
	server *httptest.Server
	lis    net.Listener

	mu       sync.Mutex
	asked    []wire.Session
	stopped  []wire.Stop
	answered map[string]http.HandlerFunc // by path, instead of the usual
	gone     chan struct{}               // told of each session whose client has gone
}

func newStandIn(t *testing.T) *standIn {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lis.Close() })
	return &standIn{lis: lis, answered: map[string]http.HandlerFunc{}, gone: make(chan struct{}, 100)}
}

func (a *standIn) port() int { return portOf(a.lis) }

// join makes the agent's pod, gets its certificate and serves.
func (a *standIn) join(t *testing.T, c *chain) {
	t.Helper()
	pod := c.pod(t, c.namespace, "agent", c.node, func(p *corev1.Pod) {
		p.Labels = map[string]string{agentsLabel: "wherry-debug-agent"}
		p.Spec.ServiceAccountName = "wherry-debug-agent"
	})
	key, chainPEM := certificate(t, clientOf(t, c.account(t, adminConfig(t), "wherry-debug-agent", pod)), c.node)
	leaf, rest := pem.Decode(chainPEM)
	pool := x509.NewCertPool()
	if leaf == nil || !pool.AppendCertsFromPEM(rest) {
		t.Fatalf("the certificate is not followed by the authority: %s", chainPEM)
	}
	a.server = &httptest.Server{Listener: a.lis, Config: &http.Server{Handler: http.HandlerFunc(a.serve)}}
	a.server.TLS = &tls.Config{MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs: pool, Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.Bytes}, PrivateKey: key}},
		VerifyConnection: func(s tls.ConnectionState) error {
			if name := s.PeerCertificates[0].Subject.CommonName; name != wire.APIName {
				return fmt.Errorf("%s is not the API", name)
			}
			return nil
		}}
	a.server.StartTLS()
	t.Cleanup(func() { a.server.CloseClientConnections(); a.server.Close() })
	ready(t, c, pod)
}

// request is what an agent of a node asks for.
func request(t testing.TB, key *ecdsa.PrivateKey, node string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: wire.AgentPrefix + node, Organization: []string{wire.AgentOrg}},
		DNSNames: []string{wire.ServerName(node)}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "wherry-debug-agent-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: wire.SignerName,
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			Usages:  []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}}}
}

// certificate asks for one as an agent does.
func certificate(t *testing.T, client *kubernetes.Clientset, node string) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	csr := answered(t, client, request(t, key, node))
	if len(csr.Status.Certificate) == 0 {
		t.Fatalf("no certificate: %v", csr.Status.Conditions)
	}
	return key, csr.Status.Certificate
}

// answered makes a request and waits for what becomes of it.
func answered(t *testing.T, client *kubernetes.Clientset,
	csr *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	requests := client.CertificatesV1().CertificateSigningRequests()
	csr, err := requests.Create(t.Context(), csr, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := requests.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + csr.Name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		csr, ok := e.Object.(*certificatesv1.CertificateSigningRequest)
		if !ok {
			t.Fatalf("the watch said %v", e)
		}
		for _, c := range csr.Status.Conditions {
			if c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed {
				return csr
			}
		}
		if len(csr.Status.Certificate) > 0 {
			return csr
		}
	}
	t.Fatal("nobody has answered the request within a minute")
	return nil
}

// instead has an agent answer a path in another way.
func (a *standIn) instead(t *testing.T, path string, h http.HandlerFunc) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answered[path] = h
}

// last is what was asked for last.
func (a *standIn) last(t *testing.T) wire.Session {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.asked) == 0 {
		t.Fatal("the agent was asked for nothing")
	}
	return a.asked[len(a.asked)-1]
}

func (a *standIn) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.asked)
}

func (a *standIn) serve(w http.ResponseWriter, req *http.Request) {
	a.mu.Lock()
	h := a.answered[req.URL.Path]
	a.mu.Unlock()
	switch {
	case h != nil:
		h(w, req)
	case req.URL.Path == wire.PathSession:
		a.session(w, req)
	case req.URL.Path == wire.PathEvidence:
		_ = json.NewEncoder(w).Encode(wire.EvidenceOf{Containers: []wire.ContainerEvidence{{Name: "main", ID: "abc",
			State: "exited", Log: "the end"}}})
	case req.URL.Path == wire.PathSessions && req.Method == http.MethodDelete:
		var stop wire.Stop
		if err := wire.Parse(req.URL.Query(), &stop); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a.mu.Lock()
		a.stopped = append(a.stopped, stop)
		a.mu.Unlock()
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusSuccess})
	case req.URL.Path == wire.PathSessions:
		_ = json.NewEncoder(w).Encode(wire.RunningList{Items: []wire.Running{{ID: "0123456789ab", As: wire.Shell,
			By: "jane"}}})
	default:
		http.NotFound(w, req)
	}
}

// session says hello and echoes a line in capitals; the command "wait" stays until its client has gone, and a number is
// its exit code.
func (a *standIn) session(w http.ResponseWriter, req *http.Request) {
	var s wire.Session
	if err := wire.Parse(req.URL.Query(), &s); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	a.asked = append(a.asked, s)
	a.mu.Unlock()
	up := websocket.Upgrader{Subprotocols: []string{streams.V5}}
	conn, err := up.Upgrade(w, req, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	say := func(channel byte, text string) {
		_ = conn.WriteMessage(websocket.BinaryMessage, append([]byte{channel}, text...))
	}
	say(streams.Stdout, "hello from "+s.As+"\n")
	if s.Stdin || len(s.Command) > 0 && s.Command[0] == "wait" {
		for {
			_, message, err := conn.ReadMessage()
			if err != nil {
				a.gone <- struct{}{}
				return
			}
			if message[0] == streams.Stdin && len(message) > 1 {
				say(streams.Stdout, strings.ToUpper(string(message[1:])))
				break
			}
		}
	}
	status := `{"metadata":{},"status":"Success"}`
	if len(s.Command) > 0 && s.Command[0] == "7" {
		status = `{"metadata":{},"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}`
	}
	say(streams.Status, status)
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""),
		time.Now().Add(30*time.Second))
	_, _, _ = conn.ReadMessage()
}
