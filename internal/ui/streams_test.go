// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"k8s.io/client-go/rest"
)

// UI-05: what happens is seen as it happens: each event of a watch goes on at once. UI-03: who signs out leaves no
// stream behind.
func TestWatchIsFlushed(t *testing.T) {
	for _, mode := range []SignIn{ByLink, ByToken} {
		more, gone := make(chan bool), make(chan bool, 1)
		k := newKit(t, mode, reviews(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for {
				select {
				case <-more:
					_, _ = io.WriteString(w, "{\"type\":\"ADDED\"}\n")
					w.(http.Flusher).Flush()
				case <-r.Context().Done():
					gone <- true
					return
				}
			}
		})).signedIn()
		resp := make(chan *http.Response, 1)
		go func() { resp <- k.ask("GET", "/ui/k8s/api/v1/pods?watch=true", "") }()
		more <- true
		events := bufio.NewReader(within(t, "the watch", resp).Body)
		for range 3 {
			lines := make(chan string, 1)
			go func() {
				line, _ := events.ReadString('\n')
				lines <- line
			}()
			if line := within(t, "an event", lines); line != "{\"type\":\"ADDED\"}\n" {
				t.Fatalf("%s: %q", mode, line)
			}
			more <- true
		}
		k.ask("DELETE", "/ui/session", "")
		within(t, "the end of the watch", gone)
	}
}

// echo is an API that talks WebSocket as exec does, and tells when a stream has ended.
func echo(t *testing.T, ended chan bool) http.HandlerFunc {
	up := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
	return func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended <- true }()
		// The Kubernetes API refuses a watch without an origin, and others look whether it is their own.
		if origin, err := url.Parse(r.Header.Get("Origin")); err != nil || origin.Host != r.Host {
			t.Errorf("a WebSocket to %s has the origin %q", r.Host, r.Header.Get("Origin"))
		}
		conn, err := up.Upgrade(w, r, http.Header{"Set-Cookie": {"of-the-pod=1"}})
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		for {
			kind, message, err := conn.ReadMessage()
			if err != nil || conn.WriteMessage(kind, append(message, r.URL.Query()["command"][0]...)) != nil {
				return
			}
		}
	}
}

// dial opens a WebSocket through the page, as its browser does.
func (k *kit) dial(path, origin string) (*websocket.Conn, *http.Response, error) {
	k.t.Helper()
	d := websocket.Dialer{Subprotocols: []string{"v5.channel.k8s.io"}}
	conn, resp, err := d.Dial("ws"+strings.TrimPrefix(k.front.URL, "http")+path, http.Header{
		"Cookie": {"wherry-ui-8001=" + k.cookie}, "Origin": {origin}, "Sec-Fetch-Site": {"same-origin"}})
	if resp != nil {
		k.t.Cleanup(func() { resp.Body.Close() })
	}
	return conn, resp, err
}

const execPath = "/ui/k8s/api/v1/namespaces/shop/pods/web/exec?command=sh&stdin=true"

// talk says something through a WebSocket, and hears it.
func talk(t *testing.T, conn *websocket.Conn) {
	t.Helper()
	for _, word := range []string{"\x00one ", "\x00" + strings.Repeat("x", 1<<20)} {
		if err := conn.WriteMessage(websocket.BinaryMessage, []byte(word)); err != nil {
			t.Fatal(err)
		}
		if _, got, err := conn.ReadMessage(); err != nil || string(got) != word+"sh" {
			t.Fatalf("%.20q, %v", got, err)
		}
	}
	if conn.Subprotocol() != "v5.channel.k8s.io" {
		t.Errorf("the protocol is %q", conn.Subprotocol())
	}
}

// UI-02 UI-03: exec by WebSocket, through the page, with the session's rights; only for the page's own origin, and until
// the session ends.
func TestExecByWebSocket(t *testing.T) {
	for _, mode := range []SignIn{ByLink, ByToken} {
		ended := make(chan bool, 1)
		k := newKit(t, mode, reviews(echo(t, ended))).signedIn()
		if _, resp, err := k.dial(execPath, "http://evil.example"); err == nil || resp.StatusCode != http.StatusForbidden {
			t.Fatalf("%s: another origin has a shell: %v", mode, err)
		}
		conn, resp, err := k.dial(execPath, k.front.URL)
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		if mode == ByLink && len(resp.Cookies()) > 0 {
			t.Errorf("%s: a stream sets cookies: %v", mode, resp.Cookies())
		}
		talk(t, conn)
		conn.Close()
		within(t, "the end of the stream", ended)
		if conn, _, err = k.dial(execPath, k.front.URL); err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		talk(t, conn)
		k.ask("DELETE", "/ui/session", "")
		within(t, "the end of the stream", ended)
		if _, _, err := conn.ReadMessage(); err == nil {
			t.Error("a shell goes on after its session")
		}
	}
}

// UI-02: through the transport that client-go makes for a kubeconfig, which speaks HTTP/2 for all but WebSockets.
func TestByAKubeconfig(t *testing.T) {
	ended := make(chan bool, 1)
	protocols := make(chan string, 1)
	shell := echo(t, ended)
	back := httptest.NewUnstartedServer(reviews(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/exec") {
			shell(w, r)
			return
		}
		protocols <- r.Proto + " " + r.URL.Path
	}))
	back.EnableHTTP2 = true
	back.StartTLS()
	defer back.Close()
	config := &rest.Config{Host: back.URL + "/k8s/clusters/c", BearerToken: "of-the-kubeconfig",
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		t.Fatal(err)
	}
	k := &kit{t: t, clock: newClock()}
	k.serve(Options{SignIn: ByLink, Port: 8001, Now: k.clock.now,
		API: Remote(base, transport, Words(base), slog.New(slog.DiscardHandler))})
	k.signedIn()
	k.text(http.StatusOK, k.ask("GET", "/ui/k8s/api/v1/pods", ""))
	if got := within(t, "a list", protocols); got != "HTTP/2.0 /k8s/clusters/c/api/v1/pods" {
		t.Errorf("a list is asked for by %s", got)
	}
	conn, _, err := k.dial(execPath, k.front.URL)
	if err != nil {
		t.Fatal(err)
	}
	talk(t, conn)
	conn.Close()
	within(t, "the end of the stream", ended)
	closeIdle(transport)
}

// closeIdle closes the idle connections of a transport that client-go has wrapped.
func closeIdle(rt http.RoundTripper) {
	for rt != nil {
		if c, ok := rt.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
		}
		w, ok := rt.(interface{ WrappedRoundTripper() http.RoundTripper })
		if !ok {
			return
		}
		rt = w.WrappedRoundTripper()
	}
}

// UI-05: an API that does not answer is told as the API itself would tell it, and the session outlives that.
func TestDeadUpstream(t *testing.T) {
	back := httptest.NewServer(http.NotFoundHandler())
	base, err := url.Parse(back.URL)
	if err != nil {
		t.Fatal(err)
	}
	back.Close()
	k := &kit{t: t, clock: newClock()}
	k.serve(Options{SignIn: ByLink, Port: 8001, Now: k.clock.now,
		API: Remote(base, &http.Transport{}, Words(base), slog.New(slog.DiscardHandler))})
	k.signedIn()
	for _, resp := range []*http.Response{k.ask("GET", "/ui/k8s/api/v1/pods?watch=true", ""), k.ask("POST", "/ui/k8s/api/v1/pods", "{}")} {
		if got := k.status(http.StatusBadGateway, resp); !strings.Contains(got, "the Kubernetes API at "+base.Host+" cannot be reached") ||
			!strings.Contains(got, "connection refused") {
			t.Error(got)
		}
	}
	if _, resp, err := k.dial(execPath, k.front.URL); err == nil || resp.StatusCode != http.StatusBadGateway {
		t.Errorf("a shell: %v", err)
	}
	if got := k.text(http.StatusOK, k.ask("GET", "/ui/session", "")); !strings.Contains(got, `"user":""`) ||
		!strings.Contains(got, "cannot be reached") {
		t.Error(got)
	}
}

// UI-02: a certificate that a browser has shown is not the session's.
func TestCertificateIsNotPassedOn(t *testing.T) {
	var shown []int
	page := New(Options{SignIn: ByToken, Port: 8001, AnyIP: true, API: Within(reviews(func(_ http.ResponseWriter, r *http.Request) {
		shown = append(shown, len(r.TLS.PeerCertificates), len(r.TLS.VerifiedChains))
	}))})
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	secret := page.sessions.add("jane-token", "jane")
	r := httptest.NewRequestWithContext(context.Background(), "GET", "https://192.0.2.1/ui/k8s/api/v1/pods", nil)
	r.AddCookie(&http.Cookie{Name: "wherry-ui-8001", Value: secret})
	r.TLS.PeerCertificates = append(r.TLS.PeerCertificates, server.Certificate())
	r.TLS.VerifiedChains = append(r.TLS.VerifiedChains, r.TLS.PeerCertificates)
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	if len(shown) != 2 || shown[0]+shown[1] != 0 || len(r.TLS.PeerCertificates) != 1 {
		t.Errorf("%d: the API is shown %v certificates", w.Code, shown)
	}
}
