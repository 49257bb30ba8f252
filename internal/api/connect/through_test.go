// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/client-go/tools/remotecommand"
	serverremote "k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	utilexec "k8s.io/utils/exec"
)

const v5 = "v5.channel.k8s.io"

// serveV5 is what a node does that speaks the protocol itself.
func serveV5(w http.ResponseWriter, r *http.Request, o *serverremote.Options,
	run func(in io.Reader, out, stderr io.WriteCloser, resize <-chan serverremote.TerminalSize) error) {
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{v5: {Binary: true, Channels: []wsstream.ChannelType{
		wsstream.ReadChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.ReadChannel,
	}}})
	_, channels, err := conn.Open(w, r)
	if err != nil {
		return
	}
	defer conn.Close()
	channels[1].Write(nil)
	sizes := make(chan serverremote.TerminalSize, 1)
	if o.TTY {
		var size serverremote.TerminalSize
		if json.NewDecoder(channels[4]).Decode(&size) == nil {
			sizes <- size
		}
	}
	status := `{"metadata":{},"status":"Success"}`
	var in io.Reader
	if o.Stdin {
		in = channels[0]
	}
	if err := run(in, channels[1], channels[2], sizes); err != nil {
		status = fmt.Sprintf(`{"status":"Failure","reason":"InternalError","message":%q}`, err)
		if exit, ok := errors.AsType[utilexec.CodeExitError](err); ok {
			status = fmt.Sprintf(`{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"%d"}]}}`, exit.Code)
		}
	}
	channels[3].Write([]byte(status))
}

func (k *kubelet) execV5(w http.ResponseWriter, r *http.Request, o *serverremote.Options) {
	serveV5(w, r, o, func(in io.Reader, out, stderr io.WriteCloser, resize <-chan serverremote.TerminalSize) error {
		return k.ExecInContainer(r.Context(), "", "", r.PathValue("container"), r.URL.Query()["command"], in, out, stderr, o.TTY, resize, 0)
	})
}

// frontOf is an API server of nothing but a hand over to one node; ended is told how each stream ended.
func frontOf(t *testing.T, node http.HandlerFunc) (front *httptest.Server, ended <-chan End) {
	t.Helper()
	back := httptest.NewServer(node)
	t.Cleanup(back.Close)
	location, err := url.Parse(back.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	ends := make(chan End, 1)
	front = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pod := newPod("plain", "one", nil, "main")
		over := handOver(pod, location, transport, proxy.Options{Stdin: true, Stdout: true}, responder{w})
		(&recorded{next: over, finish: func(end End) { ends <- end }}).ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front, ends
}

func dialFront(t *testing.T, front *httptest.Server) *websocket.Conn {
	t.Helper()
	d := websocket.Dialer{Subprotocols: []string{v5}, TLSClientConfig: front.Client().Transport.(*http.Transport).TLSClientConfig, WriteBufferSize: 128 << 10}
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
				up := websocket.Upgrader{Subprotocols: []string{v5}}
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
		up := websocket.Upgrader{Subprotocols: []string{v5}}
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

// A few hundred commands that print one word and end at once: none is lost.
func TestThroughLosesNothing(t *testing.T) {
	c := newCluster(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				var out, errOut bytes.Buffer
				err := executor(t, c, throughout, "many", "exec", &corev1.PodExecOptions{Stdout: true, Stderr: true, Container: "b", Command: []string{"both"}}).
					StreamWithContext(testContext(t), remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut})
				if err != nil || out.String() != "out of b" || errOut.String() != "err" {
					t.Errorf("%q %q %v", &out, &errOut, err)
				}
			}
		})
	}
	all.Wait()
}
