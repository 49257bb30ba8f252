// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

var (
	_ rest.Connecter = &Exec{}
	_ rest.Connecter = &Attach{}
	_ rest.Connecter = &PortForward{}
)

// podStream is what exec, attach and port-forward share.
type podStream struct {
	pods  PodGetter
	nodes NodeLocator
}

// Destroy implements rest.Storage.
func (*podStream) Destroy() {}

// ConnectMethods implements rest.Connecter: SPDY clients POST, WebSocket clients GET.
func (*podStream) ConnectMethods() []string { return []string{http.MethodGet, http.MethodPost} }

// kubelet returns where a stream of the pod is served.
func (s *podStream) kubelet(ctx context.Context, pod *corev1.Pod, path string,
	query url.Values) (*url.URL, http.RoundTripper, error) {
	if err := scheduled(pod); err != nil {
		return nil, nil, err
	}
	location, transport, err := s.nodes(ctx, pod.Spec.NodeName)
	if err != nil {
		return nil, nil, err
	}
	u := *location
	u.Path, u.RawQuery = path, query.Encode()
	return &u, transport, nil
}

// Exec serves pods/exec, also what it has beyond Kubernetes: exec++ (DC-03) and image exec (IX-01).
type Exec struct {
	podStream
	debugging Debugging
}

// NewExec makes the storage of pods/exec.
func NewExec(pods PodGetter, nodes NodeLocator, debugging Debugging) *Exec {
	return &Exec{podStream{pods, nodes}, debugging}
}

// New implements rest.Storage: what admission is shown.
func (*Exec) New() runtime.Object { return &corev1.PodExecOptions{} }

// NewConnectOptions implements rest.Connecter.
func (*Exec) NewConnectOptions() (runtime.Object, bool, string) {
	return &ExecOptions{}, false, ""
}

// Connect implements rest.Connecter.
func (e *Exec) Connect(ctx context.Context, name string, options runtime.Object,
	r rest.Responder) (http.Handler, error) {
	opts, ok := options.(*ExecOptions)
	switch {
	case !ok:
		return nil, fmt.Errorf("invalid options object: %T", options)
	case opts.wants(debugParams()):
		return upgradeFirst(r,
			func(req *http.Request) (http.Handler, error) { return e.debugSession(ctx, name, opts, r, req) }), nil
	case opts.wants(imageParams()):
		return upgradeFirst(r, func(*http.Request) (http.Handler, error) { return e.imageExec(ctx, name, opts, r) }),
			nil
	case len(opts.Command) == 0:
		return nil, apierrors.NewBadRequest("you must specify at least one command for the container")
	}
	h, err := e.command(ctx, command{verb: "exec", pod: name, container: opts.Container, argv: opts.Command,
		streams: opts.Streams(), before: func(pod *corev1.Pod, container string) error {
			return e.debugging.Entered(ctx, pod, container, opts.Command)
		}}, r)
	if err != nil {
		return nil, err
	}
	return &recorded{next: h, finish: func(end End) { noteEnd(ctx, end) }}, nil
}

// Attach serves pods/attach.
type Attach struct{ podStream }

// NewAttach makes the storage of pods/attach.
func NewAttach(pods PodGetter, nodes NodeLocator) *Attach { return &Attach{podStream{pods, nodes}} }

// New implements rest.Storage: what admission is shown.
func (*Attach) New() runtime.Object { return &corev1.PodAttachOptions{} }

// NewConnectOptions implements rest.Connecter.
func (*Attach) NewConnectOptions() (runtime.Object, bool, string) {
	return &corev1.PodAttachOptions{}, false, ""
}

// Connect implements rest.Connecter.
func (a *Attach) Connect(ctx context.Context, name string, options runtime.Object,
	r rest.Responder) (http.Handler, error) {
	opts, ok := options.(*corev1.PodAttachOptions)
	if !ok {
		return nil, fmt.Errorf("invalid options object: %T", options)
	}
	streams := proxy.Options{Stdin: opts.Stdin, Stdout: opts.Stdout, Stderr: opts.Stderr, Tty: opts.TTY}
	return a.command(ctx, command{verb: "attach", pod: name, container: opts.Container, streams: streams}, r)
}

// command is a request for the streams of a process in a container.
type command struct {
	verb, pod, container string
	argv                 []string
	streams              proxy.Options
	session              bool // a debug container's own, just made
	// called before the connection is handed over; may be nil
	before func(pod *corev1.Pod, container string) error
}

func (s *podStream) command(ctx context.Context, c command, r rest.Responder) (http.Handler, error) {
	if !c.streams.Stdin && !c.streams.Stdout && !c.streams.Stderr {
		return nil, apierrors.NewBadRequest("you must specify at least 1 of stdin, stdout, stderr")
	}
	pod, err := s.pods(ctx, c.pod)
	if err != nil {
		return nil, err
	}
	return s.hand(ctx, pod, c, r)
}

// hand hands the connection to the node of a pod.
func (s *podStream) hand(ctx context.Context, pod *corev1.Pod, c command, r rest.Responder) (http.Handler, error) {
	container, err := chooseContainer(pod, c.container)
	if err != nil {
		return nil, err
	}
	noteEntry(ctx, c, container)
	path := fmt.Sprintf("/%s/%s/%s/%s", c.verb, pod.Namespace, pod.Name, container)
	query := c.query()
	if c.verb == "attach" {
		query = withReader(ctx, query)
	}
	location, transport, err := s.kubelet(ctx, pod, path, query)
	if err != nil {
		return nil, err
	}
	over := handOver(pod, location, transport, c.streams, r)
	if c.before == nil {
		return over, nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if asksForStreams(req) { // else nothing will happen in the container
			if err := c.before(pod, container); err != nil {
				r.Error(err)
				return
			}
		}
		over.ServeHTTP(w, req)
	}), nil
}

// handOver proxies the streams of a process, in whichever protocol the client speaks.
func handOver(pod *corev1.Pod, location *url.URL, transport http.RoundTripper, streams proxy.Options,
	r rest.Responder) http.Handler {
	through := passThrough(location, transport, r, pod.Spec.NodeName)
	sockets := &webSockets{location: location, transport: transport, streams: streams, to: r, node: pod.Spec.NodeName}
	return proxy.NewTranslatingHandler(through, sockets, wsstream.IsWebSocketRequestWithStreamCloseProtocol)
}

func (c command) query() url.Values {
	q := url.Values{}
	if len(c.argv) > 0 {
		q[corev1.ExecCommandParam] = c.argv
	}
	for name, set := range map[string]bool{
		corev1.ExecStdinParam: c.streams.Stdin, corev1.ExecStdoutParam: c.streams.Stdout,
		corev1.ExecStderrParam: c.streams.Stderr, corev1.ExecTTYParam: c.streams.Tty,
	} {
		if set {
			q.Set(name, "1")
		}
	}
	return q
}

// PortForward serves pods/portforward.
type PortForward struct{ podStream }

// NewPortForward makes the storage of pods/portforward.
func NewPortForward(pods PodGetter, nodes NodeLocator) *PortForward {
	return &PortForward{podStream{pods, nodes}}
}

// New implements rest.Storage: what admission is shown.
func (*PortForward) New() runtime.Object { return &corev1.PodPortForwardOptions{} }

// NewConnectOptions implements rest.Connecter.
func (*PortForward) NewConnectOptions() (runtime.Object, bool, string) {
	return &corev1.PodPortForwardOptions{}, false, ""
}

// Connect implements rest.Connecter.
func (p *PortForward) Connect(ctx context.Context, name string, options runtime.Object,
	r rest.Responder) (http.Handler, error) {
	opts, ok := options.(*corev1.PodPortForwardOptions)
	if !ok {
		return nil, fmt.Errorf("invalid options object: %T", options)
	}
	pod, err := p.pods(ctx, name)
	if err != nil {
		return nil, err
	}
	query := url.Values{}
	for _, port := range opts.Ports {
		query.Add(corev1.PortHeader, strconv.Itoa(int(port)))
	}
	path := fmt.Sprintf("/portForward/%s/%s", pod.Namespace, pod.Name)
	location, transport, err := p.kubelet(ctx, pod, path, query)
	if err != nil {
		return nil, err
	}
	through := passThrough(location, transport, r, pod.Spec.NodeName)
	return proxy.NewTranslatingHandler(through, proxy.NewTunnelingHandler(through),
		wsstream.IsWebSocketRequestWithTunnelingProtocol), nil
}

// passThrough hands an upgraded connection on as it is.
func passThrough(location *url.URL, transport http.RoundTripper, r rest.Responder, node string) http.Handler {
	failed := nodeErrors{r, node}
	return &upgrades{location: location, transport: transport, errors: failed,
		plain: utilproxy.NewUpgradeAwareHandler(location, transport, false, true, failed)}
}

// nodeErrors answers errors on the way to a node.
type nodeErrors struct {
	to   rest.Responder
	node string
}

// Error implements utilproxy.ErrorResponder.
func (n nodeErrors) Error(_ http.ResponseWriter, _ *http.Request, err error) {
	n.to.Error(unreachable(n.node, err))
}
