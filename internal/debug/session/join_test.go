// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
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
	remotecommandconsts "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/api/connect/kubelettest"
	"github.com/wherryproject/wherry/internal/debug/options"
	"github.com/wherryproject/wherry/internal/debug/record"
	"github.com/wherryproject/wherry/internal/debug/wire"
	"github.com/wherryproject/wherry/internal/podspec"
)

func TestMain(m *testing.M) { kubelettest.Main(m) }

// cluster has pods in which a debug container is made at once.
type cluster struct {
	*kubelettest.Cluster
	made func(*Made) // changes what is made; may be nil
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Cluster: kubelettest.NewCluster(t)}
	kubelets := connect.NewKubelets(c.Node, c.TLS())
	t.Cleanup(kubelets.Close)
	j := &Joiner{pods: connect.NewPods(c.Pod, kubelets.Locate), make: c.add}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/namespaces/default/pods/{name}/exec", func(w http.ResponseWriter, req *http.Request) {
		to := kubelettest.Responder{W: w}
		connect.UpgradeFirst(to, func(req *http.Request) (http.Handler, error) {
			session := options.Session{DebugContainer: podspec.DebugContainer{Name: "debug", Image: "tools"}}
			return j.Serve(req.Context(), req.PathValue("name"), session, proxy.Options{Stdin: true, Stdout: true}, to,
				req)
		}).ServeHTTP(w, req)
	})
	c.Cluster.Serve(t, nil, mux, nil)
	return c
}

// add is a debug container that was made.
func (c *cluster) add(ctx context.Context, name string, s options.Session) (*Made, error) {
	pod, err := c.Pod(ctx, name)
	if err != nil {
		return nil, err
	}
	pod = pod.DeepCopy()
	pod.UID = "uid-1"
	pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: s.Name},
	})
	recorded := make(chan struct{})
	close(recorded)
	made := &Made{Pod: pod, Recorded: recorded, Begun: func(context.Context) (*corev1.Pod, error) { return pod, nil },
		Ended: func(context.Context, bool) record.End { return record.End{Reason: "left"} }}
	if c.made != nil {
		c.made(made)
	}
	return made, nil
}

const debugQuery = "/api/v1/namespaces/default/pods/plain/exec?stdin=true&stdout=true&ephemeralContainerName=debug&ephemeralContainerImage=tools"

// closeStdin is the message that closes the client's standard input in v5.channel.k8s.io.
var closeStdin = []byte{remotecommandconsts.StreamClose, remotecommandconsts.StreamStdIn}

// enterAs starts a debug session and returns what it printed.
func enterAs(t *testing.T, c *cluster, way string) (string, error) {
	t.Helper()
	c.Kubelet.V5.Store(way == kubelettest.Throughout)
	e, err := remotecommand.NewWebSocketExecutor(&rest.Config{Host: c.URL}, http.MethodGet, c.URL+debugQuery)
	if u, perr := url.Parse(c.URL + debugQuery); way == "spdy" && perr == nil {
		e, err = remotecommand.NewSPDYExecutor(&rest.Config{Host: c.URL}, http.MethodPost, u)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = e.StreamWithContext(kubelettest.Context(t), remotecommand.StreamOptions{Stdin: strings.NewReader("hello"), Stdout: &out})
	return out.String(), err
}

// DC-03: that a container closed its streams, which it does at its end, is told from a client that leaves it: its exit code is waited for
// longer.
func TestDebugEndsWhenClosed(t *testing.T) {
	for name, leaves := range map[string]bool{"the container closes": false, "the client leaves": true} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.Kubelet.Started = c.Kubelet.ServeRun
			c.Kubelet.V5.Store(true)
			closed := make(chan bool, 1)
			c.made = func(m *Made) {
				m.Ended = func(_ context.Context, by bool) record.End {
					closed <- by
					return record.End{}
				}
			}
			u := "ws" + strings.TrimPrefix(c.URL, "http") + debugQuery
			conn, _, err := (&websocket.Dialer{Subprotocols: []string{kubelettest.V5}}).DialContext(kubelettest.Context(t), u, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if leaves {
				conn.Close()
			} else if err := conn.WriteMessage(websocket.BinaryMessage, closeStdin); err != nil {
				t.Fatal(err)
			}
			select {
			case by := <-closed:
				if by == leaves {
					t.Errorf("closed: %v", by)
				}
			case <-kubelettest.Context(t).Done():
				t.Fatal("the end is not asked for")
			}
		})
	}
}

// DC-03: a client is let in as soon as the node has started the container, though its status is stored only later, or never; the wait
// for it is over then.
func TestDebugEntersWhenStarted(t *testing.T) {
	for _, way := range kubelettest.Ways() {
		t.Run(way, func(t *testing.T) {
			c := newCluster(t)
			c.Kubelet.Started = c.Kubelet.ServeRun
			over := make(chan struct{})
			c.made = func(m *Made) {
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
	c.Kubelet.Started = c.Kubelet.ServeRun
	c.made = func(m *Made) { m.Note = "to see the processes of one" }
	u := "ws" + strings.TrimPrefix(c.URL, "http") + debugQuery
	conn, resp, err := (&websocket.Dialer{Subprotocols: []string{kubelettest.V5}}).DialContext(kubelettest.Context(t), u, nil)
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
		for _, way := range kubelettest.Ways() {
			t.Run(name+" "+way, func(t *testing.T) {
				c := newCluster(t)
				c.Kubelet.Started = node
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
			c.Kubelet.Started = func(_ http.ResponseWriter, r *http.Request) {
				close(asked)
				<-r.Context().Done()
				close(ended)
			}
			c.made = func(m *Made) {
				m.Begun = func(ctx context.Context) (*corev1.Pod, error) {
					<-asked
					if leaves {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return nil, apierrors.NewBadRequest("it cannot start")
				}
			}
			d := websocket.Dialer{Subprotocols: []string{kubelettest.V5}, NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
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
	c.Kubelet.Started = func(w http.ResponseWriter, r *http.Request) {
		defer c.Kubelet.ServeRun(w, r)
		close(granted)
	}
	var recorded atomic.Bool
	c.made = func(m *Made) {
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
	d := websocket.Dialer{Subprotocols: []string{kubelettest.V5}}
	conn, _, err := d.DialContext(t.Context(), "ws"+strings.TrimPrefix(c.URL, "http")+debugQuery, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if !recorded.Load() {
		t.Error("the client was let in before it was on record")
	}
}
