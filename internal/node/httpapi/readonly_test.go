// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/connlimit"
	"github.com/wherryproject/wherry/internal/connlimit/shed"
)

// TestReadOnlyPort proves PL-36: the read-only port shows pods, figures and health to anybody, and has nothing that
// starts or changes something or shows what pods print. ATTACK A13.
func TestReadOnlyPort(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Metrics = http.NotFoundHandler() })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.server.StartReadOnly(l)
	for _, c := range []struct {
		method, path string
		status       int
		has          string
	}{
		{"GET", "/pods", 200, "PodList"}, {"GET", "/pods/", 200, "PodList"}, {"GET", "/healthz", 200, "ok"},
		{"GET", "/metrics/resource", 200, ""}, {"GET", "/stats/summary", 200, "nodeName"},
		{"GET", "/exec/default/web/main?command=x&output=1", 404, ""},
		{"POST", "/exec/default/web/main?command=x&output=1", 404, ""},
		{"GET", "/containerLogs/default/web/main", 404, ""}, {"GET", "/logs/", 404, ""},
		{"GET", "/runningpods", 404, ""},
		{"GET", "/configz", 404, ""}, {"POST", "/checkpoint/default/web/main", 404, ""}, {"POST", "/pods", 405, ""},
		{"POST", "/portForward/default/web", 404, ""}, {"GET", "/imageExec/default/web?image=x", 404, ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+l.Addr().String()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.status || !strings.Contains(string(body), c.has) {
			t.Errorf("%s %s: %d %q", c.method, c.path, resp.StatusCode, body)
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// TestReadOnlyPortStrangers proves PL-36: those who come to the read-only port, however many, close no connection to
// the kubelet API, and no answer there waits for ever to be read.
func TestReadOnlyPortStrangers(t *testing.T) {
	one := func() *connlimit.Limiter {
		return connlimit.New(connlimit.Config{Limits: shed.Limits{Strangers: 1, PerAddress: 1, Known: 1}})
	}
	w := newWorld(t, func(c *Config) { c.Conns, c.ReadOnlyConns = one(), one() })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.server.StartReadOnly(l)
	if w.server.readOnly.WriteTimeout == 0 {
		t.Error("an answer that is not read holds its connection for ever")
	}
	early, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	resp, err := http.Get("http://" + l.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	conn := tls.Client(early, &tls.Config{RootCAs: w.ca.Pool(), ServerName: "localhost"})
	if err := conn.HandshakeContext(t.Context()); err != nil {
		t.Errorf("a stranger at the read-only port closed a connection to the kubelet API: %v", err)
	}
}

// TestSystemLogs proves PL-36: the machine's logs are shown and questions about them answered where that is on, to those
// who may read the node's log; where it is not there are pods' logs, and questions are passed over.
func TestSystemLogs(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "asked "+r.URL.Query().Get("query")+" of /"+r.URL.Path)
	})
	dir := t.TempDir()
	on := newWorld(t, func(c *Config) { c.LogDir, c.SystemLogs = dir, answer })
	off := newWorld(t, func(c *Config) { c.LogDir = dir })
	if status, body := on.get(on.masters, "/logs/?query=cron"); status != 200 || body != "asked cron of /" {
		t.Errorf("%d %q", status, body)
	}
	if status, body := on.get(on.masters, "/logs/some/file?query=cron"); status != http.StatusNotAcceptable ||
		!strings.Contains(body, "path not allowed in query mode") {
		t.Errorf("%d %q", status, body)
	}
	for path, want := range map[string]string{"/logs/": "asked  of /", "/logs/apt/history.log": "asked  of /apt/history.log"} {
		if status, body := on.get(on.masters, path); status != 200 || body != want {
			t.Errorf("files of the machine: %d %q", status, body)
		}
		if status, _ := on.get(on.client("jane"), path); status != 403 {
			t.Errorf("files of the machine for somebody without the right: %d", status)
		}
	}
	if status, body := on.get(on.client("jane"), "/logs/?query=cron"); status != 403 ||
		!strings.Contains(body, "subresource=log") {
		t.Errorf("%d %q", status, body)
	}
	if status, body := off.get(off.masters, "/logs/?query=cron"); status != 200 || strings.Contains(body, "asked") {
		t.Errorf("%d %q", status, body)
	}
}
