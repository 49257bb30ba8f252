// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	serverremote "k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/wherryproject/wherry/internal/debug/wire"
)

const debugQuery = "/api/v1/namespaces/default/pods/plain/exec?stdin=true&stdout=true&ephemeralContainerName=debug&ephemeralContainerImage=tools"

// enterAs starts a debug session and returns what it printed.
func enterAs(t *testing.T, c *cluster, way string) (string, error) {
	t.Helper()
	c.kubelet.v5.Store(way == throughout)
	e, err := remotecommand.NewWebSocketExecutor(&rest.Config{Host: c.URL}, http.MethodGet, c.URL+debugQuery)
	if u, perr := url.Parse(c.URL + debugQuery); way == "spdy" && perr == nil {
		e, err = remotecommand.NewSPDYExecutor(&rest.Config{Host: c.URL}, http.MethodPost, u)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = e.StreamWithContext(testContext(t), remotecommand.StreamOptions{Stdin: strings.NewReader("hello"), Stdout: &out})
	return out.String(), err
}

// serve is what a node does once the run has started.
func (k *kubelet) serve(w http.ResponseWriter, r *http.Request) {
	opts := &serverremote.Options{Stdin: true, Stdout: true}
	run := func(in io.Reader, out io.Writer) error {
		fmt.Fprintf(out, "run %s of %s/%s: ", r.PathValue("run"), r.PathValue("uid"), r.PathValue("container"))
		_, err := io.Copy(out, in)
		return err
	}
	if wsstream.IsWebSocketRequestWithStreamCloseProtocol(r) {
		serveV5(w, r, opts, func(in io.Reader, out, _ io.WriteCloser, _ <-chan serverremote.TerminalSize) error {
			return run(in, out)
		})
		return
	}
	serverremote.ServeAttach(w, r, attaches(run), "", "", "", opts, time.Minute, time.Minute, serverremote.SupportedStreamingProtocols)
}

// attaches is a container of a node.
type attaches func(in io.Reader, out io.Writer) error

// AttachContainer is part of serverremote.Attacher.
func (a attaches) AttachContainer(_ context.Context, _, _, _ string, in io.Reader, out, _ io.WriteCloser, _ bool, _ <-chan serverremote.TerminalSize) error {
	return a(in, out)
}

// DC-03: a client is let in as soon as the node has started the container, though its status is stored only later, or never; the wait
// for it is over then.
func TestDebugEntersWhenStarted(t *testing.T) {
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			c := newCluster(t)
			c.kubelet.started = c.kubelet.serve
			over := make(chan struct{})
			c.debugging.made = func(m *Made) {
				m.Run = 3
				m.Begun = func(ctx context.Context) (*corev1.Pod, error) {
					<-ctx.Done()
					close(over)
					return nil, ctx.Err()
				}
			}
			out, err := enterAs(t, c, way)
			if err != nil || out != "run 3 of uid-1/debug: hello" {
				t.Errorf("%q, %v", out, err)
			}
			<-over
		})
	}
}

// DC-15: what is not to be seen in a debug container is told with the streams.
func TestDebugNote(t *testing.T) {
	c := newCluster(t)
	c.kubelet.started = c.kubelet.serve
	c.debugging.made = func(m *Made) { m.Note = "to see the processes of one" }
	u := "ws" + strings.TrimPrefix(c.URL, "http") + debugQuery
	conn, resp, err := (&websocket.Dialer{Subprotocols: []string{v5}}).DialContext(testContext(t), u, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := resp.Header.Get(wire.HeaderNote); got != "to see the processes of one" {
		t.Errorf("%q", got)
	}
}

// DC-03: a node that does not know the request is asked when the status says that the container has begun, and one that refuses too.
func TestDebugEntersOldNode(t *testing.T) {
	for name, node := range map[string]http.HandlerFunc{
		"knows it not": nil,
		"refuses":      func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusConflict) },
		"breaks off":   func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		for _, way := range ways {
			t.Run(name+" "+way, func(t *testing.T) {
				c := newCluster(t)
				c.kubelet.started = node
				out, err := enterAs(t, c, way)
				if err != nil || out != "attached to debug: hello" {
					t.Errorf("%q, %v", out, err)
				}
			})
		}
	}
}

// DC-03: what cannot start is refused before the switch of protocols, in the words of who says so, and the node's request ends; so it
// does when the client leaves.
func TestDebugEnterFails(t *testing.T) {
	for name, leaves := range map[string]bool{"refused": false, "client leaves": true} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			asked, ended := make(chan struct{}), make(chan struct{})
			c.kubelet.started = func(_ http.ResponseWriter, r *http.Request) {
				close(asked)
				<-r.Context().Done()
				close(ended)
			}
			c.debugging.made = func(m *Made) {
				m.Begun = func(ctx context.Context) (*corev1.Pod, error) {
					<-asked
					if leaves {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return nil, apierrors.NewBadRequest("it cannot start")
				}
			}
			d := websocket.Dialer{Subprotocols: []string{v5}, NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
				if err == nil && leaves {
					go func() { <-asked; conn.Close() }()
				}
				return conn, err
			}}
			_, resp, err := d.DialContext(t.Context(), "ws"+strings.TrimPrefix(c.URL, "http")+debugQuery, nil)
			if err == nil {
				t.Fatal("the client is in")
			}
			if !leaves {
				said, _ := io.ReadAll(resp.Body)
				if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(said), "it cannot start") {
					t.Errorf("%d %s", resp.StatusCode, said)
				}
			}
			<-ended
		})
	}
}

// DC-05: nobody is let in before it is on record, though the node is ready for them.
func TestDebugEntersRecorded(t *testing.T) {
	c := newCluster(t)
	granted := make(chan struct{})
	c.kubelet.started = func(w http.ResponseWriter, r *http.Request) {
		defer c.kubelet.serve(w, r)
		close(granted)
	}
	var recorded atomic.Bool
	c.debugging.made = func(m *Made) {
		stored := make(chan struct{})
		m.Recorded = stored
		m.Begun = func(ctx context.Context) (*corev1.Pod, error) { <-ctx.Done(); return nil, ctx.Err() }
		go func() {
			<-granted
			time.Sleep(20 * time.Millisecond) // time for a client to get in too early
			recorded.Store(true)
			close(stored)
		}()
	}
	d := websocket.Dialer{Subprotocols: []string{v5}}
	conn, _, err := d.DialContext(t.Context(), "ws"+strings.TrimPrefix(c.URL, "http")+debugQuery, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if !recorded.Load() {
		t.Error("the client was let in before it was on record")
	}
}
