// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/pki"
)

// upgraded: while the agents in use are replaced, whoever asks waits for the new one; no pod is changed instead, and what
// the old one ran is over (DA-09, DA-10).
func upgraded(t *testing.T, a, ann user) {
	long := ann.begun("sleep 1000")
	a.kubectl("rollout", "restart", "-n", "wherry-debug", "daemonset/wherry-debug-agent")
	rolled := make(chan string, 1)
	go func() {
		rolled <- a.run("", "KUBECTL", "rollout", "status", "-n", "wherry-debug", "daemonset/wherry-debug-agent", "--timeout=90s").String()
	}()
	for n := 0; ; n++ {
		if r := ann.wherry("debug", "-n", "shop", "web", "--target", "main", "-m", "wherry.dev/toolbox", "--", "echo", "here"); r.out != "here\n" &&
			!strings.Contains(r.err, "session") && !strings.Contains(r.err, "cannot be reached") { // it began with the old one's last breath
			t.Errorf("while the agent is replaced (%d): %s", n, r)
		}
		select {
		case said := <-rolled:
			if !strings.Contains(said, "successfully rolled out") {
				t.Fatal(said)
			}
		default:
			continue
		}
		break
	}
	if err := long.wait(); err == nil {
		t.Error("the session of the old agent has ended well")
	}
	ann.says("here", "debug", "-n", "shop", "web", "--target", "main", "--", "echo", "here")
	unchanged(t, a)
	await(t, "nothing is left", func() bool { return len(debugProcesses(t)) == 0 })
}

// lost: of a node that does not answer it is said that it does not, and no pod is changed; when it is there again the
// session that was open goes on (DA-09, DA-10).
func lost(t *testing.T, a, ann user) {
	kubelet, err := strconv.Atoi(os.Getenv("CLUSTER_KUBELET"))
	if err != nil {
		t.Fatalf("CLUSTER_KUBELET: %v", err)
	}
	long := ann.begun("read x; echo after")
	all := append(agents(t), kubelet)
	signal := func(s syscall.Signal) {
		for _, pid := range all {
			if err := syscall.Kill(pid, s); err != nil {
				t.Errorf("process %d: %v", pid, err)
			}
		}
	}
	signal(syscall.SIGSTOP)
	r := ann.wherry("debug", "-n", "shop", "web", "--target", "main", "-m", "wherry.dev/toolbox", "--", "true")
	signal(syscall.SIGCONT)
	if r.code == 0 || !strings.Contains(r.err, "the agent of node "+os.Getenv("CLUSTER_NODE")) || !strings.Contains(r.err, "cannot be reached") {
		t.Errorf("on a node that is lost: %s", r)
	}
	unchanged(t, a)
	if _, err := io.WriteString(long.in, "go\n"); err != nil {
		t.Error(err)
	}
	if err := long.wait(); err != nil || !strings.Contains(long.out.String(), "after") {
		t.Errorf("the open session: %v, %q", err, long.out.String())
	}
}

// unchanged: no debugger was added to the pod.
func unchanged(t *testing.T, a user) {
	t.Helper()
	if added := a.kubectl("get", "pod", "-n", "shop", "web", "-o", "jsonpath={.spec.ephemeralContainers}"); added != "" {
		t.Errorf("the pod was changed: %s", added)
	}
}

// forged: who reaches an agent without being its API gets nothing, and not even the API gets the containers of another
// pod than it names (DA-07).
func forged(t *testing.T, a user) {
	secret := func(key string) []byte {
		text, err := base64.StdEncoding.DecodeString(a.kubectl("get", "secret", "-n", "wherry-debug", "wherry-debug-ca", "-o",
			"jsonpath={.data."+strings.ReplaceAll(key, ".", `\.`)+"}"))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	ca, err := pki.Parse(secret("ca.crt"), secret("ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	stranger, _, err := pki.New("wherry-debug-ca")
	if err != nil {
		t.Fatal(err)
	}
	node := os.Getenv("CLUSTER_NODE")
	address := a.kubectl("get", "pods", "-n", "wherry-debug", "-l", "app.kubernetes.io/name=wherry-debug-agent", "-o", "jsonpath={.items[0].status.podIP}")
	uid := a.kubectl("get", "pod", "-n", "shop", "web", "-o", "jsonpath={.metadata.uid}")
	other := a.kubectl("get", "pod", "-n", "infra", "web", "-o", "jsonpath={.metadata.uid}")
	ask := func(cert, key []byte, err error, pod wire.Pod) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		return get(address, node, ca.Pool(), pair, pod)
	}
	api := func() ([]byte, []byte, error) { return ca.Client(wire.APIName, nil, time.Hour) }
	web := wire.Pod{Namespace: "shop", Name: "web", UID: uid}
	cert, key, err := api()
	if got := ask(cert, key, err, web); !strings.Contains(got, `"name":"main"`) {
		t.Fatalf("the API itself: %s", got)
	}
	for what, pod := range map[string]wire.Pod{"a forged uid": {Namespace: "shop", Name: "web", UID: "00000000-0000-0000-0000-000000000000"},
		"another pod's uid": {Namespace: "shop", Name: "web", UID: other}, "another namespace's pod": {Namespace: "infra", Name: "web", UID: uid}} {
		if got := ask(cert, key, err, pod); !strings.Contains(got, wire.ReasonPodNotOnNode) {
			t.Errorf("%s: %s", what, got)
		}
	}
	for what, made := range map[string]func() ([]byte, []byte, error){
		"an agent's certificate":      func() ([]byte, []byte, error) { return ca.ServingFor([]string{wire.ServerName(node)}, nil, time.Hour) },
		"another name":                func() ([]byte, []byte, error) { return ca.Client("wherry-debug-agent:"+node, nil, time.Hour) },
		"another authority's":         func() ([]byte, []byte, error) { return stranger.Client(wire.APIName, nil, time.Hour) },
		"the name in another's place": func() ([]byte, []byte, error) { return stranger.ServingFor([]string{wire.APIName}, nil, time.Hour) },
	} {
		cert, key, err := made()
		if got := ask(cert, key, err, web); !strings.HasPrefix(got, "error: ") {
			t.Errorf("%s is let in: %s", what, got)
		}
	}
}

// get asks an agent for what it knows of a pod.
func get(address, node string, authority *x509.CertPool, own tls.Certificate, pod wire.Pod) string {
	q, err := wire.Query(pod)
	if err != nil {
		return fmt.Sprint("error: ", err)
	}
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: wire.ServerName(node), RootCAs: authority,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }}}}
	resp, err := client.Get("https://" + net.JoinHostPort(address, strconv.Itoa(wire.AgentPort)) + wire.PathEvidence + "?" + q.Encode())
	if err != nil {
		return fmt.Sprint("error: ", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Sprint("error: ", err)
	}
	var short bytes.Buffer
	if json.Compact(&short, text) != nil {
		return string(text)
	}
	return short.String()
}
