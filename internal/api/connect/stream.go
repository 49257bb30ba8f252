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
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

var _ rest.Connecter = &PortForward{}

// Pods are pods as streams reach them: what exec, attach and port-forward share.
type Pods struct {
	pods  PodGetter
	nodes NodeLocator
}

// NewPods reaches pods by the kubelets of their nodes.
func NewPods(pods PodGetter, nodes NodeLocator) *Pods { return &Pods{pods, nodes} }

// Get reads a pod of the request's namespace.
func (s *Pods) Get(ctx context.Context, name string) (*corev1.Pod, error) { return s.pods(ctx, name) }

// Destroy implements rest.Storage.
func (*Pods) Destroy() {}

// ConnectMethods implements rest.Connecter: SPDY clients POST, WebSocket clients GET.
func (*Pods) ConnectMethods() []string { return []string{http.MethodGet, http.MethodPost} }

// Kubelet returns where a stream of the pod is served.
func (s *Pods) Kubelet(ctx context.Context, pod *corev1.Pod, path string,
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

// Command is a request for the streams of a process in a container.
type Command struct {
	Verb, Pod, Container string // exec or attach; no container: the pod's only one
	Argv                 []string
	Streams              proxy.Options
	// Chosen is told the container when it is known; may be nil.
	Chosen func(container string)
	// Before is called before the connection is handed over; may be nil.
	Before func(pod *corev1.Pod, container string) error
}

// Command finds the pod, and hands the connection to its node.
func (s *Pods) Command(ctx context.Context, c Command, r rest.Responder) (http.Handler, error) {
	if !c.Streams.Stdin && !c.Streams.Stdout && !c.Streams.Stderr {
		return nil, apierrors.NewBadRequest("you must specify at least 1 of stdin, stdout, stderr")
	}
	pod, err := s.pods(ctx, c.Pod)
	if err != nil {
		return nil, err
	}
	return s.Hand(ctx, pod, c, r)
}

// Hand hands the connection to the node of a pod.
func (s *Pods) Hand(ctx context.Context, pod *corev1.Pod, c Command, r rest.Responder) (http.Handler, error) {
	container, err := chooseContainer(pod, c.Container)
	if err != nil {
		return nil, err
	}
	if c.Chosen != nil {
		c.Chosen(container)
	}
	path := fmt.Sprintf("/%s/%s/%s/%s", c.Verb, pod.Namespace, pod.Name, container)
	query := c.Query()
	if c.Verb == "attach" {
		query = withReader(ctx, query)
	}
	location, transport, err := s.Kubelet(ctx, pod, path, query)
	if err != nil {
		return nil, err
	}
	over := HandOver(pod, location, transport, c.Streams, r)
	if c.Before == nil {
		return over, nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if AsksForStreams(req) { // else nothing will happen in the container
			if err := c.Before(pod, container); err != nil {
				r.Error(err)
				return
			}
		}
		over.ServeHTTP(w, req)
	}), nil
}

// HandOver proxies the streams of a process, in whichever protocol the client speaks.
func HandOver(pod *corev1.Pod, location *url.URL, transport http.RoundTripper, streams proxy.Options,
	r rest.Responder) http.Handler {
	through := passThrough(location, transport, r, pod.Spec.NodeName)
	sockets := &webSockets{location: location, transport: transport, streams: streams, to: r, node: pod.Spec.NodeName}
	return proxy.NewTranslatingHandler(through, sockets, wsstream.IsWebSocketRequestWithStreamCloseProtocol)
}

// Query is how a kubelet is asked for it.
func (c Command) Query() url.Values {
	q := url.Values{}
	if len(c.Argv) > 0 {
		q[corev1.ExecCommandParam] = c.Argv
	}
	for name, set := range map[string]bool{
		corev1.ExecStdinParam: c.Streams.Stdin, corev1.ExecStdoutParam: c.Streams.Stdout,
		corev1.ExecStderrParam: c.Streams.Stderr, corev1.ExecTTYParam: c.Streams.Tty,
	} {
		if set {
			q.Set(name, "1")
		}
	}
	return q
}

// PortForward serves pods/portforward.
type PortForward struct{ Pods }

// NewPortForward makes the storage of pods/portforward.
func NewPortForward(pods PodGetter, nodes NodeLocator) *PortForward {
	return &PortForward{Pods{pods, nodes}}
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
	location, transport, err := p.Kubelet(ctx, pod, path, query)
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
	n.to.Error(Unreachable(n.node, err))
}

// UpgradeFirst opens a stream for a client that asks for one. Whoever does not could not be given it, so nothing is
// made.
func UpgradeFirst(r rest.Responder, open func(*http.Request) (http.Handler, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !AsksForStreams(req) {
			r.Error(apierrors.NewBadRequest("Upgrade request required"))
			return
		}
		h, err := open(req)
		if err != nil {
			r.Error(err)
			return
		}
		h.ServeHTTP(w, req)
	})
}

// AsksForStreams reports whether a request asks for another protocol.
func AsksForStreams(req *http.Request) bool {
	return httpstream.IsUpgradeRequest(req) || wsstream.IsWebSocketRequest(req)
}
