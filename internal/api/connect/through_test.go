// SPDX-License-Identifier: Apache-2.0

package connect_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/apiserver/pkg/util/proxy"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/api/connect/kubelettest"
	"github.com/wherryproject/wherry/internal/debug/record"
)

// frontOf is an API server of nothing but a hand over to one node; ended is told how each stream ended.
func frontOf(t *testing.T, node http.HandlerFunc) (front *httptest.Server, ended <-chan record.End) {
	t.Helper()
	back := httptest.NewServer(node)
	t.Cleanup(back.Close)
	location, err := url.Parse(back.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	ends := make(chan record.End, 1)
	front = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pod := kubelettest.NewPod("plain", "one", nil, "main")
		over := connect.HandOver(pod, location, transport, proxy.Options{Stdin: true, Stdout: true}, kubelettest.Responder{W: w})
		record.Stream(over, func(end record.End) { ends <- end }).ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front, ends
}

func dialFront(t *testing.T, front *httptest.Server) *websocket.Conn {
	t.Helper()
	d := websocket.Dialer{Subprotocols: []string{kubelettest.V5}, TLSClientConfig: front.Client().Transport.(*http.Transport).TLSClientConfig, WriteBufferSize: 128 << 10}
	c, _, err := d.DialContext(t.Context(), "wss"+strings.TrimPrefix(front.URL, "https"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetReadDeadline(time.Now().Add(time.Minute))
	return c
}

// readAll returns what came on a channel, and how the connection ended.
func readAll(c *websocket.Conn, channel byte) (string, error) {
	var out bytes.Buffer
	for {
		_, p, err := c.ReadMessage()
		if err != nil {
			return out.String(), err
		}
		if p[0] == channel {
			out.Write(p[1:])
		}
	}
}

// A node's refusal is heard by a WebSocket client as it always was, after the switch of protocols, and the node is asked once. One
// that does not know the protocol is asked again, in SPDY.
func TestThroughRefused(t *testing.T) {
	var asked []string
	answer := func(w http.ResponseWriter) { http.Error(w, "no such luck", http.StatusBadGateway) }
	front, ended := frontOf(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.Header.Get("Upgrade"))
		answer(w)
	})
	said, err := readAll(dialFront(t, front), 3)
	if !strings.Contains(said, "Internal error occurred: unable to upgrade connection: no such luck") || !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("the client reads %q, %v", said, err)
	}
	if len(asked) != 1 || asked[0] != "GET websocket" {
		t.Errorf("the node was asked %q", asked)
	}
	if end := <-ended; end.ExitCode != nil || !strings.Contains(end.Message, "no such luck") {
		t.Errorf("on record: %+v", end)
	}
	asked, answer = nil, func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) }
	if said, _ = readAll(dialFront(t, front), 3); !strings.Contains(said, "unable to upgrade connection") || len(asked) != 2 || asked[1] != "POST SPDY/3.1" {
		t.Errorf("the client reads %q, the node was asked %q", said, asked)
	}
	<-ended
}

// A node that is lost before it said how the command ended is an error to the client, and no exit code on record; so it is when the
// node closes the connection as one that has failed.
func TestThroughCutIsNoSuccess(t *testing.T) {
	for name, cut := range map[string]func(net.Conn){
		"cut":    func(c net.Conn) { c.Close() },
		"failed": func(c net.Conn) { c.Write([]byte{0x88, 2, 0x03, 0xf3}); c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			front, ended := frontOf(t, func(w http.ResponseWriter, r *http.Request) {
				up := websocket.Upgrader{Subprotocols: []string{kubelettest.V5}}
				c, err := up.Upgrade(w, r, nil)
				if err != nil {
					t.Error(err)
					return
				}
				c.WriteMessage(websocket.BinaryMessage, []byte("\x01out"))
				cut(c.NetConn())
			})
			client := dialFront(t, front)
			out, err := readAll(client, 1)
			client.Close()
			if out != "out" || websocket.IsCloseError(err, websocket.CloseNormalClosure) {
				t.Errorf("the client reads %q, %v", out, err)
			}
			if end := <-ended; end.ExitCode != nil {
				t.Errorf("on record: exit code %d", *end.ExitCode)
			}
		})
	}
}

// All output and the end reach a client that is still saying something when the command ends, and one that reads late; the node's
// side is over when the client is gone.
func TestThroughEnds(t *testing.T) {
	const size = 8 << 20
	gone := make(chan struct{})
	front, ended := frontOf(t, func(w http.ResponseWriter, r *http.Request) {
		up := websocket.Upgrader{Subprotocols: []string{kubelettest.V5}}
		c, err := up.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		if _, p, err := c.ReadMessage(); err == nil && string(p) == "\x00long" {
			for range size / (64 << 10) {
				c.WriteMessage(websocket.BinaryMessage, append([]byte{1}, make([]byte, 64<<10)...))
			}
			c.WriteMessage(websocket.BinaryMessage, []byte("\x03"+`{"status":"Success"}`))
			c.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
			c.NetConn().(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, c.NetConn())
			return
		}
		io.Copy(io.Discard, c.NetConn())
		close(gone)
	})
	c := dialFront(t, front)
	c.WriteMessage(websocket.BinaryMessage, []byte("\x00long"))
	talked := make(chan struct{})
	go func() {
		defer close(talked)
		for c.WriteMessage(websocket.BinaryMessage, make([]byte, 64<<10)) == nil {
		}
	}()
	var out, said int
	for {
		_, p, err := c.ReadMessage()
		if err != nil {
			break
		}
		switch p[0] {
		case 1:
			out += len(p) - 1
		case 3:
			said += len(p) - 1
		}
	}
	if out != size || said == 0 {
		t.Errorf("%d bytes of output and %d of status came", out, said)
	}
	c.Close()
	<-talked
	if end := <-ended; end.ExitCode == nil || *end.ExitCode != 0 {
		t.Errorf("on record: %+v", end)
	}

	c = dialFront(t, front)
	c.WriteMessage(websocket.BinaryMessage, []byte("\x00wait"))
	c.NetConn().Close()
	<-gone
	if end := <-ended; end.ExitCode != nil {
		t.Errorf("on record: %+v", end)
	}
}

// A client that leaves before the node has answered is not waited for, and the node hears of it, whatever protocol was
// asked for (EC-14).
func TestUpgradeClientLeavesEarly(t *testing.T) {
	for how, request := range map[string]string{
		"SPDY": "POST / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n" +
			"X-Stream-Protocol-Version: v4.channel.k8s.io\r\nContent-Length: 0\r\n\r\n",
		"WebSocket": "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
			"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: " + kubelettest.V5 + "\r\n\r\n",
	} {
		t.Run(how, func(t *testing.T) {
			asked, gone := make(chan struct{}), make(chan struct{})
			front, ended := frontOf(t, func(_ http.ResponseWriter, r *http.Request) {
				close(asked)
				<-r.Context().Done()
				close(gone)
			})
			conn, err := net.Dial("tcp", front.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			known := front.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
			known.ServerName = "example.com"
			if _, err = fmt.Fprint(tls.Client(conn, known), request); err != nil {
				t.Fatal(err)
			}
			<-asked
			conn.Close()
			<-gone
			if end := <-ended; end.ExitCode != nil {
				t.Errorf("on record: %+v", end)
			}
		})
	}
}
