// SPDX-License-Identifier: Apache-2.0

package debugapi_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/cluster/debugapi/rights"
	"github.com/wherryproject/wherry/internal/cluster/wire"
)

func userSubjects(name string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: name}}
}

// Nobody gets around kube-apiserver, and with it around its audit log: neither by saying who he is, nor by a
// certificate or a token that kube-apiserver itself would take. Proves DA-05.
func TestFrontProxyAlone(t *testing.T) {
	c := newChain(t)
	shop := c.place(t)
	c.pod(t, shop, "web", c.node, nil)
	someone := person(t, "system:admin")
	known, err := tls.X509KeyPair(someone.CertData, someone.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	account := c.account(t, adminConfig(t), "wherry-debug-api", nil)
	ask := func(path string, cert *tls.Certificate, header http.Header) int {
		t.Helper()
		config := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the server is not what is proved here
		if cert != nil {
			config.Certificates = []tls.Certificate{*cert}
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			fmt.Sprintf("https://127.0.0.1:%d%s", c.server.Port(), path), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = header
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	forged := http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}
	token := http.Header{"Authorization": {"Bearer " + account.BearerToken}}
	for what, got := range map[string]int{
		"nobody":                      ask(path(shop, "web", wire.Evidence), nil, http.Header{}),
		"a forged name":               ask(path(shop, "web", wire.Evidence), nil, forged),
		"a forged name with a person": ask(path(shop, "web", wire.Evidence), &known, forged),
		"a person's certificate":      ask(path(shop, "web", wire.Evidence), &known, http.Header{}),
		"a token":                     ask(path(shop, "web", wire.Evidence), nil, token),
		"metrics for nobody":          ask("/metrics", nil, http.Header{}),
	} {
		if got != http.StatusUnauthorized {
			t.Errorf("%s: answered with %d", what, got)
		}
	}
	for _, p := range []string{"/healthz", "/livez", "/readyz"} {
		if got := ask(p, nil, http.Header{}); got != http.StatusOK {
			t.Errorf("%s: answered with %d", p, got)
		}
	}
}

// Whoever opens connections and says nothing on them has some, and no more; others are answered. Proves RS-01.
func TestStrangersAreBounded(t *testing.T) {
	c := newChain(t)
	at := fmt.Sprintf("127.0.0.1:%d", c.server.Port())
	const most = 64 // per address (connLimits)
	var open []net.Conn
	for range most + 8 {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
		conn, err := d.DialContext(t.Context(), "tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		open = append(open, conn)
	}
	for _, conn := range open[:len(open)-most] { // the oldest had to go
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Fatal("something was said to who says nothing")
		}
	}
	last := open[len(open)-1]                                                                                 // it would have been closed as well had they been too old
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
		DialContext: func(context.Context, string, string) (net.Conn, error) { return last, nil }, DisableKeepAlives: true}}
	resp, err := client.Get("https://" + at + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the last one is answered with %d", resp.StatusCode)
	}
}

// An agent that asks for the name of another node gets no certificate, and neither does a pod that is no agent. Proves
// DA-07.
func TestNoCertificateForAnotherNode(t *testing.T) {
	c := newChain(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pod, err := c.admin.CoreV1().Pods(c.namespace).Get(t.Context(), "agent", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	agent := clientOf(t, c.account(t, adminConfig(t), "wherry-debug-agent", pod))
	unbound := clientOf(t, c.account(t, adminConfig(t), "wherry-debug-agent", nil))
	for what, csr := range map[string]*certificatesv1.CertificateSigningRequest{
		"another node":       answered(t, agent, request(t, key, "node-other")),
		"no pod":             answered(t, unbound, request(t, key, c.node)),
		"an admin's request": answered(t, c.admin, request(t, key, c.node)),
	} {
		if len(csr.Status.Certificate) > 0 || len(csr.Status.Conditions) != 1 ||
			csr.Status.Conditions[0].Type != certificatesv1.CertificateDenied {
			t.Errorf("%s: %+v", what, csr.Status)
		}
	}
}

// An agent that another node's name was signed for is not asked: who has its address alone has nothing. Proves DA-07.
func TestAgentOfAnotherNode(t *testing.T) {
	c := newChain(t)
	shop := c.place(t)
	c.pod(t, shop, "web", "node-two", nil)
	pod := c.pod(t, c.namespace, "impostor", "node-two", func(p *corev1.Pod) {
		p.Labels = map[string]string{agentsLabel: "wherry-debug-agent"}
	})
	ready(t, c, pod) // at the address of the other agent
	jane, _ := c.somebody(t, shop, rights.RoleDebug)
	said := c.await(t, jane, path(shop, "web", wire.Shell), "certificate is valid for")
	if c.agent.count() != 0 || !strings.Contains(said, wire.ReasonAgentUnreachable) || strings.Contains(said, wire.ReasonNoAgent) {
		t.Errorf("the agent of another node was asked: %s", said)
	}
}

// Who asked for what is in the audit log of the cluster's API server. Proves DA-05.
func TestAudit(t *testing.T) {
	c := newChain(t)
	shop := c.place(t)
	c.pod(t, shop, "web", c.node, nil)
	jane, name := c.somebody(t, shop, rights.RoleDebug)
	if _, err := run(t, jane, path(shop, "web", wire.Shell), url.Values{"command": {"id"}}, ""); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(shared.dir, "audit", "audit.log")
	patience := time.Now().Add(30 * time.Second)
	for {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, `"username":"`+name+`"`) && strings.Contains(line, `"subresource":"shell"`) &&
				strings.Contains(line, `"namespace":"`+shop+`"`) && strings.Contains(line, "command=id") {
				return
			}
		}
		if time.Now().After(patience) {
			t.Fatalf("not in the audit log: %s", text)
		}
		time.Sleep(20 * time.Millisecond) // the log is written in the background, and tells nobody
	}
}

// Events say at the pod who debugs it and how that ended. Proves DA-09.
func TestEvents(t *testing.T) {
	c := newChain(t)
	shop := c.place(t)
	web := c.pod(t, shop, "web", c.node, nil)
	jane, name := c.somebody(t, shop, rights.RoleDebug)
	w, err := c.admin.CoreV1().Events(shop).Watch(t.Context(), metav1.ListOptions{
		FieldSelector: "involvedObject.uid=" + string(web.UID)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	long := strings.Repeat("x", 300)
	_, _ = run(t, jane, path(shop, "web", wire.Shell), url.Values{"command": {"7", long}}, "")
	patience := time.After(30 * time.Second)
	var reasons []string
	for len(reasons) < 2 {
		select {
		case e := <-w.ResultChan():
			event, ok := e.Object.(*corev1.Event)
			if !ok || !strings.HasPrefix(event.Reason, "DebugSession") {
				continue
			}
			reasons = append(reasons, event.Reason)
			if !strings.Contains(event.Message, name) || !strings.Contains(event.Message, "container main") ||
				!strings.Contains(event.Message, c.agent.last(t).ID) || strings.Contains(event.Message, long[:120]) {
				t.Errorf("%s: %s", event.Reason, event.Message)
			}
			if event.Reason == "DebugSessionEnded" && !strings.Contains(event.Message, "exit code 7") {
				t.Errorf("%s: %s", event.Reason, event.Message)
			}
		case <-patience:
			t.Fatalf("events: %v", reasons)
		}
	}
	if got := strings.Join(reasons, " "); got != "DebugSessionStarted DebugSessionEnded" {
		t.Errorf("events: %s", got)
	}
}

// A session ends with its client, and with the server that it goes through. Proves DA-09.
func TestSessionsEnd(t *testing.T) {
	c := newChain(t)
	shop := c.place(t)
	c.pod(t, shop, "web", c.node, nil)
	jane, _ := c.somebody(t, shop, rights.RoleDebug)
	q := url.Values{"stdout": {"true"}, "command": {"wait"}}
	conn, resp := dial(t, jane, path(shop, "web", wire.Shell), q)
	if conn == nil {
		t.Fatalf("refused: %d", resp.StatusCode)
	}
	_ = conn.Close()
	gone := func(what string) {
		t.Helper()
		select {
		case <-c.agent.gone:
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: the agent is not told", what)
		}
	}
	gone("the client has gone")
	conn, resp = dial(t, jane, path(shop, "web", wire.Shell), q)
	if conn == nil {
		t.Fatalf("refused: %d", resp.StatusCode)
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
	gone("the API has stopped")
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	for {
		if _, _, err := conn.ReadMessage(); err != nil {
			if os.IsTimeout(err) {
				t.Error("the client is not told that the API has stopped")
			}
			return
		}
	}
}

// ready says that an agent's pod is, at this machine's own address.
func ready(t *testing.T, c *chain, pod *corev1.Pod) {
	t.Helper()
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, "127.0.0.1",
		[]corev1.PodIP{{IP: "127.0.0.1"}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if _, err := c.admin.CoreV1().Pods(c.namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// await asks for a session until it is refused in the words that are waited for: the API hears of agents by a watch of
// its own.
func (c *chain) await(t *testing.T, config *rest.Config, path, words string) string {
	t.Helper()
	patience := time.Now().Add(30 * time.Second)
	for {
		conn, resp := dial(t, config, path, url.Values{"stdout": {"true"}})
		if conn != nil {
			t.Fatal("there is a session")
		}
		said, _ := io.ReadAll(resp.Body)
		if strings.Contains(string(said), words) {
			return string(said)
		}
		if time.Now().After(patience) {
			t.Fatalf("answered with %d: %s", resp.StatusCode, said)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
