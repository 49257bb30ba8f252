// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// codes is a response that notes with what it was answered, as the audit log does.
type codes struct {
	http.ResponseWriter
	code chan int
}

func (c *codes) WriteHeader(code int) {
	c.code <- code
	c.ResponseWriter.WriteHeader(code)
}

func (c *codes) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c.code <- http.StatusSwitchingProtocols
	return http.NewResponseController(c.ResponseWriter).Hijack()
}

type unexpected struct{ t *testing.T }

func (r unexpected) Error(_ http.ResponseWriter, _ *http.Request, err error) { r.t.Error(err) }

// TestUpgrade proves that a refused switch of protocols is an ordinary answer (EC-22), and that a granted one loses
// nothing of what client and node say at once.
func TestUpgrade(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuse" {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, "not for you")
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello ")
		rw.Flush()
		line, _ := rw.ReadString('\n')
		fmt.Fprint(rw, line)
		rw.Flush()
	}))
	defer node.Close()
	code := make(chan int, 1)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, _ := url.Parse(node.URL + r.URL.Path)
		(&upgrades{location: u, transport: http.DefaultTransport, errors: unexpected{t}}).ServeHTTP(&codes{w, code}, r)
	}))
	defer front.Close()
	for path, want := range map[string]struct {
		code int
		body string
	}{"/refuse": {http.StatusForbidden, "not for you"}, "/": {http.StatusSwitchingProtocols, "hello early\n"}} {
		t.Run(path, func(t *testing.T) {
			conn, err := net.Dial("tcp", front.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			// The client does not wait for the answer.
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: echo\r\n\r\nearly\n", path)
			all, err := io.ReadAll(conn)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(all), fmt.Sprintf("HTTP/1.1 %d ", want.code)) || !strings.HasSuffix(strings.TrimSuffix(string(all), "\r\n0\r\n\r\n"), want.body) {
				t.Errorf("the client read %q", all)
			}
			if got := <-code; got != want.code {
				t.Errorf("on record with %d, want %d", got, want.code)
			}
		})
	}
}

// TestUpgradeKeepsTheQuery proves that what is proxied to a pod, a service or a node goes with the client's whole
// question, a WebSocket's too.
func TestUpgradeKeepsTheQuery(t *testing.T) {
	asked := make(chan string, 1)
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.RequestURI()
		w.WriteHeader(http.StatusForbidden)
	}))
	defer node.Close()
	to := target{host: node.Listener.Addr().String(), path: "/socket"}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		forward(to, http.DefaultTransport, nil, "pod p").ServeHTTP(w, r)
	}))
	defer front.Close()
	for _, upgrade := range []string{"", "websocket"} {
		req, err := http.NewRequest(http.MethodGet, front.URL+"/?room=a%2Fb&x", nil)
		if err != nil {
			t.Fatal(err)
		}
		if upgrade != "" {
			req.Header.Set("Connection", "Upgrade")
			req.Header.Set("Upgrade", upgrade)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := <-asked; got != "/socket/?room=a%2Fb&x" {
			t.Errorf("with upgrade %q the pod was asked for %s", upgrade, got)
		}
	}
}

// TestUpgradeToTheEnd proves that a client that still speaks hears the end of what a node says (PL-22).
func TestUpgradeToTheEnd(t *testing.T) {
	const much = 1 << 20
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: much\r\n\r\n")
		fmt.Fprint(rw, strings.Repeat("x", much))
		rw.Flush()
		_ = conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
	}))
	defer node.Close()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, _ := url.Parse(node.URL)
		(&upgrades{location: u, transport: http.DefaultTransport, errors: unexpected{t}}).ServeHTTP(w, r)
	}))
	defer front.Close()
	conn, err := net.Dial("tcp", front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: much\r\n\r\n")
	said := make(chan struct{})
	go func() {
		defer close(said)
		for {
			if _, err := conn.Write([]byte("still here\n")); err != nil {
				return
			}
		}
	}()
	from := bufio.NewReader(conn)
	if _, err := http.ReadResponse(from, nil); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(from)
	if err != nil || len(all) != much {
		t.Errorf("the client read %d bytes of %d, %v", len(all), much, err)
	}
	conn.Close()
	<-said
}
