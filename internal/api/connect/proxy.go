// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	utilproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/proxy"
)

var (
	_ rest.Connecter = &PodProxy{}
	_ rest.Connecter = &NodeProxy{}
	_ rest.Connecter = &ServiceProxy{}
)

// anyMethod is what ConnectMethods of a proxy returns.
type anyMethod struct{}

// Destroy implements rest.Storage.
func (anyMethod) Destroy() {}

// ConnectMethods implements rest.Connecter.
func (anyMethod) ConnectMethods() []string {
	return []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodHead, http.MethodOptions}
}

// NewProxyTransport makes the transport for pods and services. Their certificates are not checked: nothing says which
// they ought to have. It reaches neither this machine's loopback nor its link.
func NewProxyTransport() *http.Transport {
	return newProxyTransport(&net.Dialer{Timeout: dialTimeout, Control: onlyOutside})
}

// NewNodePortTransport makes the transport for ports of nodes other than the kubelet's. A node's address may be any.
func NewNodePortTransport() *http.Transport {
	return newProxyTransport(&net.Dialer{Timeout: dialTimeout})
}

func newProxyTransport(dialer *net.Dialer) *http.Transport {
	return &http.Transport{
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true},
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout:     30 * time.Second,
	}
}

// PodProxy serves pods/proxy: plain HTTP to a port of the pod.
type PodProxy struct {
	anyMethod
	pods      PodGetter
	transport http.RoundTripper
}

// NewPodProxy makes the storage of pods/proxy.
func NewPodProxy(pods PodGetter, transport http.RoundTripper) *PodProxy {
	return &PodProxy{pods: pods, transport: transport}
}

// New implements rest.Storage.
func (*PodProxy) New() runtime.Object { return &corev1.PodProxyOptions{} }

// NewConnectOptions implements rest.Connecter.
func (*PodProxy) NewConnectOptions() (runtime.Object, bool, string) {
	return &corev1.PodProxyOptions{}, true, "path"
}

// Connect implements rest.Connecter; id is [scheme:]name[:port].
func (p *PodProxy) Connect(ctx context.Context, id string, options runtime.Object,
	r rest.Responder) (http.Handler, error) {
	opts, ok := options.(*corev1.PodProxyOptions)
	if !ok {
		return nil, fmt.Errorf("invalid options object: %T", options)
	}
	scheme, name, port, ok := utilnet.SplitSchemeNamePort(id)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid pod request %q: it is [scheme:]name[:port]", id))
	}
	pod, err := p.pods(ctx, name)
	if err != nil {
		return nil, err
	}
	host, err := podHost(pod, port)
	if err != nil {
		return nil, err
	}
	return forward(target{scheme: scheme, host: host, path: opts.Path}, p.transport, r, "pod "+strconv.Quote(name)), nil
}

// podHost is the address of a pod's port: a number, the name of a container's port, or the first there is.
func podHost(pod *corev1.Pod, port string) (string, error) {
	ip := pod.Status.PodIP
	if len(pod.Status.PodIPs) > 0 {
		ip = pod.Status.PodIPs[0].IP
	}
	if ip == "" {
		return "", apierrors.NewServiceUnavailable(fmt.Sprintf("pod %s has no IP address yet", pod.Name))
	}
	if parsed := net.ParseIP(ip); parsed == nil || !parsed.IsGlobalUnicast() {
		return "", apierrors.NewBadRequest(fmt.Sprintf("pod %s: proxying to address %s is not allowed", pod.Name, ip))
	}
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			if port == "" || port == p.Name {
				return net.JoinHostPort(ip, strconv.Itoa(int(p.ContainerPort))), nil
			}
		}
	}
	if port == "" {
		return bracketed(ip), nil
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", apierrors.NewBadRequest(fmt.Sprintf("pod %s has no port named %q", pod.Name, port))
	}
	return net.JoinHostPort(ip, port), nil
}

func bracketed(ip string) string {
	if strings.Contains(ip, ":") {
		return "[" + ip + "]"
	}
	return ip
}

// NodeProxy serves nodes/proxy: the kubelet's API, or another port of the node.
type NodeProxy struct {
	anyMethod
	nodes, published NodeLocator
	transport        http.RoundTripper
}

// NewNodeProxy makes the storage of nodes/proxy. A request that names a port other than the kubelet's goes to the
// address that published tells, by transport.
func NewNodeProxy(nodes, published NodeLocator, transport http.RoundTripper) *NodeProxy {
	return &NodeProxy{nodes: nodes, published: published, transport: transport}
}

// New implements rest.Storage.
func (*NodeProxy) New() runtime.Object { return &corev1.NodeProxyOptions{} }

// NewConnectOptions implements rest.Connecter.
func (*NodeProxy) NewConnectOptions() (runtime.Object, bool, string) {
	return &corev1.NodeProxyOptions{}, true, "path"
}

// Connect implements rest.Connecter; id is [scheme:]name[:port].
func (n *NodeProxy) Connect(ctx context.Context, id string, options runtime.Object,
	r rest.Responder) (http.Handler, error) {
	opts, ok := options.(*corev1.NodeProxyOptions)
	if !ok {
		return nil, fmt.Errorf("invalid options object: %T", options)
	}
	scheme, name, port, ok := utilnet.SplitSchemeNamePort(id)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid node request %q: it is [scheme:]name[:port]", id))
	}
	locate := n.nodes
	if port != "" {
		locate = n.published
	}
	kubelet, transport, err := locate(ctx, name)
	if err == nil && port != "" && port == kubelet.Port() {
		port = ""
		kubelet, transport, err = n.nodes(ctx, name) // one in this process may listen where nobody else reaches it
	}
	if err != nil {
		return nil, err
	}
	to := target{scheme: kubelet.Scheme, host: kubelet.Host, path: opts.Path}
	if port != "" {
		transport = n.transport
		to.scheme, to.host = scheme, net.JoinHostPort(kubelet.Hostname(), port)
	}
	return forward(to, transport, r, "node "+strconv.Quote(name)), nil
}

// ServiceProxy serves services/proxy: HTTP to one of the service's ready endpoints.
type ServiceProxy struct {
	anyMethod
	services  ServiceGetter
	slices    SliceLister
	transport http.RoundTripper
}

// NewServiceProxy makes the storage of services/proxy.
func NewServiceProxy(services ServiceGetter, slices SliceLister, transport http.RoundTripper) *ServiceProxy {
	return &ServiceProxy{services: services, slices: slices, transport: transport}
}

// New implements rest.Storage.
func (*ServiceProxy) New() runtime.Object { return &corev1.ServiceProxyOptions{} }

// NewConnectOptions implements rest.Connecter.
func (*ServiceProxy) NewConnectOptions() (runtime.Object, bool, string) {
	return &corev1.ServiceProxyOptions{}, true, "path"
}

// Connect implements rest.Connecter; id is [scheme:]name[:port], the port by name or number.
func (s *ServiceProxy) Connect(ctx context.Context, id string, options runtime.Object,
	r rest.Responder) (http.Handler, error) {
	opts, ok := options.(*corev1.ServiceProxyOptions)
	if !ok {
		return nil, fmt.Errorf("invalid options object: %T", options)
	}
	scheme, name, port, ok := utilnet.SplitSchemeNamePort(id)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid service request %q: it is [scheme:]name[:port]", id))
	}
	service, err := s.services(ctx, name)
	if err != nil {
		return nil, err
	}
	portName, err := servicePort(service, port)
	if err != nil {
		return nil, err
	}
	slices, err := s.slices(ctx, name)
	if err != nil {
		return nil, err
	}
	host, err := proxy.RandomEndpoint(name, slices, portName, firstFamily(service), nil)
	if err != nil {
		return nil, err
	}
	return forward(target{scheme: scheme, host: host, path: opts.Path}, s.transport, r, "service "+strconv.Quote(name)),
		nil
}

// servicePort is the name of the port that a request means; without one, a service's unnamed or only port.
func servicePort(service *corev1.Service, port string) (string, error) {
	for _, p := range service.Spec.Ports {
		if p.Name == port || strconv.Itoa(int(p.Port)) == port {
			return p.Name, nil
		}
	}
	if port == "" && len(service.Spec.Ports) == 1 {
		return service.Spec.Ports[0].Name, nil
	}
	return "", apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %q found for service %q", port,
		service.Name))
}

func firstFamily(service *corev1.Service) corev1.IPFamily {
	if len(service.Spec.IPFamilies) > 0 {
		return service.Spec.IPFamilies[0]
	}
	return corev1.IPv4Protocol
}

// target is where a proxied request goes.
type target struct{ scheme, host, path string }

// forward proxies requests, upgraded ones too, and rewrites links in answers so that they lead back through the proxy.
// A GET without a path is redirected to the path "/", so that relative links work.
func forward(to target, transport http.RoundTripper, r rest.Responder, whom string) http.Handler {
	location := &url.URL{Scheme: to.scheme, Host: to.host, Path: to.path}
	if location.Scheme == "" {
		location.Scheme = "http"
	}
	failed := proxyErrors{r, whom}
	return &upgrades{location: location, client: true, transport: transport, errors: failed,
		plain: utilproxy.NewUpgradeAwareHandler(location, transport, true, false, failed)}
}

// proxyErrors answers errors on the way to whatever is proxied to.
type proxyErrors struct {
	to   rest.Responder
	whom string
}

// Error implements utilproxy.ErrorResponder.
func (p proxyErrors) Error(_ http.ResponseWriter, _ *http.Request, err error) {
	if _, ok := err.(apierrors.APIStatus); !ok {
		err = apierrors.NewServiceUnavailable(fmt.Sprintf("error trying to reach %s: %v", p.whom, err))
	}
	p.to.Error(err)
}
