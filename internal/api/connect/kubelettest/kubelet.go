// SPDX-License-Identifier: Apache-2.0

package kubelettest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	utilexec "k8s.io/utils/exec"
)

// Kubelet is a small one: it serves streams as the real one does, of containers that are Go functions.
type Kubelet struct {
	Server *httptest.Server
	// Started answers who asks for the streams of a run as soon as it has started; nil: it does not know the request.
	Started http.HandlerFunc
	V5      atomic.Bool // it speaks the newest WebSocket protocol
	// Logs of containers, by path.
	Logs func(w http.ResponseWriter, r *http.Request)
}

// NewKubelet serves until the test ends.
func NewKubelet(t *testing.T) *Kubelet {
	t.Helper()
	k := &Kubelet{}
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/default/{pod}/{container}", k.exec)
	mux.HandleFunc("/attach/default/{pod}/{container}", k.attach)
	mux.HandleFunc("/attach/default/{pod}/{uid}/{container}/{run}", func(w http.ResponseWriter, r *http.Request) {
		if k.Started == nil {
			http.NotFound(w, r) // as one that does not know it
			return
		}
		k.Started(w, r)
	})
	mux.HandleFunc("/portForward/default/{pod}", k.forward)
	mux.HandleFunc("/containerLogs/default/{pod}/{container}",
		func(w http.ResponseWriter, r *http.Request) { k.Logs(w, r) })
	mux.HandleFunc("/timeline/default/{pod}", timelineOf)
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	k.Server = httptest.NewTLSServer(mux)
	t.Cleanup(k.Server.Close)
	return k
}

// How long streams may be silent, and may take to be made.
const idle, creation = time.Minute, time.Minute

func (k *Kubelet) exec(w http.ResponseWriter, r *http.Request) {
	opts, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.PathValue("container") == "gone" {
		http.Error(w, `container not found ("gone")`, http.StatusNotFound)
		return
	}
	if k.V5.Load() && wsstream.IsWebSocketRequestWithStreamCloseProtocol(r) {
		k.execV5(w, r, opts)
		return
	}
	remotecommand.ServeExec(w, r, k, r.PathValue("pod"), "", r.PathValue("container"), r.URL.Query()["command"],
		opts, idle, creation, remotecommand.SupportedStreamingProtocols)
}

func (k *Kubelet) attach(w http.ResponseWriter, r *http.Request) {
	opts, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if k.V5.Load() && wsstream.IsWebSocketRequestWithStreamCloseProtocol(r) {
		ServeV5(w, r, opts, func(in io.Reader, out, stderr io.WriteCloser,
			resize <-chan remotecommand.TerminalSize) error {
			return k.AttachContainer(r.Context(), "", "", r.PathValue("container"), in, out, stderr, opts.TTY, resize)
		})
		return
	}
	remotecommand.ServeAttach(w, r, k, r.PathValue("pod"), "", r.PathValue("container"), opts, idle, creation,
		remotecommand.SupportedStreamingProtocols)
}

func (k *Kubelet) forward(w http.ResponseWriter, r *http.Request) {
	opts, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, k, r.PathValue("pod"), "", opts, idle, creation, portforward.SupportedProtocols)
}

// timelineOf answers as a node does, by the pod's name.
func timelineOf(w http.ResponseWriter, r *http.Request) {
	switch r.PathValue("pod") {
	case "plain", "former":
		fmt.Fprintf(w, `{"name":%q,"created":"2026-01-02T03:04:06Z","asked":%q}`+"\n", r.PathValue("pod"),
			r.URL.RawQuery)
		fmt.Fprintln(w, "and more")
	case "foreign":
		fmt.Fprint(w, `{"name":"foreign","created":"2026-01-02T03:04:04Z"}`)
	case "odd":
		fmt.Fprint(w, "no timeline")
	case "leaving":
		http.NotFound(w, r) // as a node of another make
	case "many":
		http.Error(w, "out of order", http.StatusInternalServerError)
	default:
		http.Error(w, "this node keeps no timeline of it", http.StatusNotFound)
	}
}

// ExecInContainer runs the few commands that the tests need.
func (*Kubelet) ExecInContainer(_ context.Context, _, _, container string, cmd []string, in io.Reader, out,
	stderr io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	switch cmd[0] {
	case "cat":
		_, err := io.Copy(out, in)
		return err
	case "both":
		fmt.Fprintf(out, "out of %s", container)
		if stderr != nil {
			fmt.Fprint(stderr, "err")
		}
		return nil
	case "exit":
		code, _ := strconv.Atoi(cmd[1])
		return utilexec.CodeExitError{Err: fmt.Errorf("exit %d", code), Code: code}
	case "size":
		size := <-resize
		fmt.Fprintf(out, "tty=%v %dx%d", tty, size.Width, size.Height)
		return nil
	}
	return fmt.Errorf("no such program %q", cmd[0])
}

// AttachContainer is a container that says what it hears.
func (*Kubelet) AttachContainer(_ context.Context, _, _, container string, in io.Reader, out, _ io.WriteCloser, _ bool,
	_ <-chan remotecommand.TerminalSize) error {
	fmt.Fprintf(out, "attached to %s: ", container)
	if in == nil {
		return nil
	}
	_, err := io.Copy(out, in)
	return err
}

// PortForward is a server that answers with its port and what it was sent.
func (*Kubelet) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	buf := make([]byte, 5)
	if _, err := io.ReadFull(stream, buf); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stream, "%d got %s", port, buf)
	return err
}

// Node is the node object of the kubelet.
func (k *Kubelet) Node(name string) *corev1.Node {
	u, _ := url.Parse(k.Server.URL)
	port, _ := strconv.Atoi(u.Port())
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "nowhere.invalid"},
		{Type: corev1.NodeInternalIP, Address: u.Hostname()}}
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
	return n
}
