// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	utilexec "k8s.io/utils/exec"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// klog's flusher, started by the import.
		goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
		// spdystream keeps the error of a close for ten minutes, for a caller of Wait whom nobody sends.
		goleak.IgnoreTopFunction("github.com/moby/spdystream.(*Connection).shutdown"))
}

// kubelet is a small one: it serves streams as the real one does, of containers that are Go functions.
type kubelet struct {
	server *httptest.Server
	// started answers who asks for the streams of a run as soon as it has started; nil: it does not know the request.
	started http.HandlerFunc
	v5      atomic.Bool // it speaks the newest WebSocket protocol
	// logs of containers, by path.
	logs func(w http.ResponseWriter, r *http.Request)
}

func newKubelet(t *testing.T) *kubelet {
	t.Helper()
	k := &kubelet{}
	mux := http.NewServeMux()
	const idle, creation = time.Minute, time.Minute
	mux.HandleFunc("/exec/default/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		opts, err := remotecommand.NewOptions(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if r.PathValue("container") == "gone" {
			http.Error(w, `container not found ("gone")`, http.StatusNotFound)
			return
		}
		if k.v5.Load() && wsstream.IsWebSocketRequestWithStreamCloseProtocol(r) {
			k.execV5(w, r, opts)
			return
		}
		remotecommand.ServeExec(w, r, k, r.PathValue("pod"), "", r.PathValue("container"), r.URL.Query()["command"], opts, idle, creation, remotecommand.SupportedStreamingProtocols)
	})
	mux.HandleFunc("/attach/default/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		opts, err := remotecommand.NewOptions(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if k.v5.Load() && wsstream.IsWebSocketRequestWithStreamCloseProtocol(r) {
			serveV5(w, r, opts, func(in io.Reader, out, stderr io.WriteCloser, resize <-chan remotecommand.TerminalSize) error {
				return k.AttachContainer(r.Context(), "", "", r.PathValue("container"), in, out, stderr, opts.TTY, resize)
			})
			return
		}
		remotecommand.ServeAttach(w, r, k, r.PathValue("pod"), "", r.PathValue("container"), opts, idle, creation, remotecommand.SupportedStreamingProtocols)
	})
	mux.HandleFunc("/attach/default/{pod}/{uid}/{container}/{run}", func(w http.ResponseWriter, r *http.Request) {
		if k.started == nil {
			http.NotFound(w, r) // as one that does not know it
			return
		}
		k.started(w, r)
	})
	mux.HandleFunc("/portForward/default/{pod}", func(w http.ResponseWriter, r *http.Request) {
		opts, err := portforward.NewV4Options(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		portforward.ServePortForward(w, r, k, r.PathValue("pod"), "", opts, idle, creation, portforward.SupportedProtocols)
	})
	mux.HandleFunc("/containerLogs/default/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) { k.logs(w, r) })
	mux.HandleFunc("/timeline/default/{pod}", func(w http.ResponseWriter, r *http.Request) {
		switch r.PathValue("pod") {
		case "plain", "former":
			fmt.Fprintf(w, `{"name":%q,"created":"2026-01-02T03:04:06Z","asked":%q}`+"\n", r.PathValue("pod"), r.URL.RawQuery)
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
	})
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	k.server = httptest.NewTLSServer(mux)
	t.Cleanup(k.server.Close)
	return k
}

// ExecInContainer runs the few commands that the tests need.
func (*kubelet) ExecInContainer(_ context.Context, _, _, container string, cmd []string, in io.Reader, out, stderr io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
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
func (*kubelet) AttachContainer(_ context.Context, _, _, container string, in io.Reader, out, _ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize) error {
	fmt.Fprintf(out, "attached to %s: ", container)
	if in == nil {
		return nil
	}
	_, err := io.Copy(out, in)
	return err
}

// PortForward is a server that answers with its port and what it was sent.
func (*kubelet) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	buf := make([]byte, 5)
	if _, err := io.ReadFull(stream, buf); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stream, "%d got %s", port, buf)
	return err
}

// node is the node object of the kubelet.
func (k *kubelet) node(name string) *corev1.Node {
	u, _ := url.Parse(k.server.URL)
	port, _ := strconv.Atoi(u.Port())
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "nowhere.invalid"}, {Type: corev1.NodeInternalIP, Address: u.Hostname()}}
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
	return n
}

// cluster is pods, nodes and an API server of nothing but this package.
type cluster struct {
	*httptest.Server
	kubelet   *kubelet
	pods      map[string]*corev1.Pod
	debugging *debugging
	nodes     map[string]*corev1.Node
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{kubelet: newKubelet(t), pods: map[string]*corev1.Pod{}, nodes: map[string]*corev1.Node{}}
	c.debugging = &debugging{ended: make(chan End, 1), cases: map[string]error{}, pods: c.pods}
	c.nodes["one"] = c.kubelet.node("one")
	dead := c.kubelet.node("dead")
	dead.Status.DaemonEndpoints.KubeletEndpoint.Port = closedPort(t)
	c.nodes["dead"] = dead
	c.nodes["mute"] = &corev1.Node{}
	for _, p := range []*corev1.Pod{
		newPod("plain", "one", nil, "main"),
		newPod("many", "one", []string{"setup"}, "a", "b"),
		newPod("homeless", "", nil, "main"),
		newPod("lost", "dead", nil, "main"),
		newPod("unregistered", "nobody", nil, "main"),
		newPod("early", "mute", nil, "main"),
		newPod("new", "one", nil, "main"),
		newPod("leaving", "one", nil, "gone"),
	} {
		c.pods[p.Name] = p
	}
	roots := x509.NewCertPool()
	roots.AddCert(c.kubelet.server.Certificate())
	kubelets := NewKubelets(func(_ context.Context, name string) (*corev1.Node, error) {
		if n, ok := c.nodes[name]; ok {
			return n, nil
		}
		return nil, apierrors.NewNotFound(corev1.Resource("nodes"), name)
	}, &tls.Config{RootCAs: roots})
	t.Cleanup(kubelets.Close)
	get := func(_ context.Context, name string) (*corev1.Pod, error) {
		if p, ok := c.pods[name]; ok {
			return p, nil
		}
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	transport := NewNodePortTransport()
	t.Cleanup(transport.CloseIdleConnections)
	scheme := newScheme(t)
	mux := http.NewServeMux()
	for sub, s := range map[string]rest.Connecter{
		"exec": NewExec(get, kubelets.Locate, c.debugging), "attach": NewAttach(get, kubelets.Locate),
		"timeline":    NewTimeline(get, c.namespace, kubelets.Locate, func(context.Context) ([]string, error) { return []string{"dead", "mute", "one"}, nil }),
		"portforward": NewPortForward(get, kubelets.Locate),
	} {
		mux.Handle("/api/v1/namespaces/default/pods/{name}/"+sub, connectHandler(scheme, s))
	}
	proxied := connectHandler(scheme, NewPodProxy(get, transport))
	mux.Handle("/api/v1/namespaces/default/pods/{name}/proxy", proxied)
	mux.Handle("/api/v1/namespaces/default/pods/{name}/proxy/{path...}", proxied)
	mux.Handle("/api/v1/nodes/{name}/proxy/{path...}", connectHandler(scheme, NewNodeProxy(kubelets.Locate, kubelets.Published, transport)))
	mux.Handle("/api/v1/namespaces/default/pods/{name}/log", logHandler(scheme, NewLog(get, kubelets.Locate)))
	c.Server = httptest.NewServer(mux)
	t.Cleanup(c.Server.Close)
	return c
}

// namespace is the one that the pods are in; it was made at 03:04:05.
func (*cluster) namespace(_ context.Context, name string) (*corev1.Namespace, error) {
	if name != "default" {
		return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}, nil
}

func newPod(name, node string, inits []string, mains ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	p.Spec.NodeName = node
	for _, c := range inits {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: c})
	}
	for _, c := range mains {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: c})
	}
	return p
}

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := RegisterConversions(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func closedPort(t *testing.T) int32 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return int32(l.Addr().(*net.TCPAddr).Port)
}

// connectHandler does what the API server's installer does with a connecter.
func connectHandler(scheme *runtime.Scheme, s rest.Connecter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(request.WithNamespace(r.Context(), "default"))
		opts, subpath, key := s.NewConnectOptions()
		query := r.URL.Query()
		if subpath {
			query.Set(key, "/"+r.PathValue("path"))
			if !strings.Contains(r.URL.Path, "/proxy/") {
				query.Set(key, "")
			}
		}
		if err := runtime.NewParameterCodec(scheme).DecodeParameters(query, corev1.SchemeGroupVersion, opts); err != nil {
			responder{w}.Error(apierrors.NewBadRequest(err.Error()))
			return
		}
		h, err := s.Connect(r.Context(), r.PathValue("name"), opts, responder{w})
		if err != nil {
			responder{w}.Error(err)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func logHandler(scheme *runtime.Scheme, s *Log) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		opts, _, _ := s.NewGetOptions()
		if err := runtime.NewParameterCodec(scheme).DecodeParameters(r.URL.Query(), corev1.SchemeGroupVersion, opts); err != nil {
			responder{w}.Error(apierrors.NewBadRequest(err.Error()))
			return
		}
		obj, err := s.Get(r.Context(), r.PathValue("name"), opts)
		if err != nil {
			responder{w}.Error(err)
			return
		}
		stream, flush, mime, err := obj.(rest.ResourceStreamer).InputStream(r.Context(), "", "")
		if err != nil {
			responder{w}.Error(err)
			return
		}
		if stream == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		defer stream.Close()
		w.Header().Set("Content-Type", mime)
		if flush {
			w.(http.Flusher).Flush() // what follows comes when it comes
		}
		io.Copy(w, stream)
	})
}

// responder writes errors as the API server does.
type responder struct{ w http.ResponseWriter }

func (r responder) Object(int, runtime.Object) {}

func (r responder) Error(err error) {
	status := apierrors.NewInternalError(err).ErrStatus
	if s, ok := err.(apierrors.APIStatus); ok {
		status = s.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	r.w.Header().Set("Content-Type", "application/json")
	r.w.WriteHeader(int(status.Code))
	json.NewEncoder(r.w).Encode(status)
}
