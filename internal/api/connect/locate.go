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
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// PodGetter reads a pod; the namespace is in the context, as the API server puts it there.
type PodGetter func(ctx context.Context, name string) (*corev1.Pod, error)

// NodeGetter reads a node.
type NodeGetter func(ctx context.Context, name string) (*corev1.Node, error)

// ServiceGetter reads a service; the namespace is in the context.
type ServiceGetter func(ctx context.Context, name string) (*corev1.Service, error)

// SliceLister lists the endpoint slices of a service; the namespace is in the context. The result is the caller's.
type SliceLister func(ctx context.Context, service string) ([]*discoveryv1.EndpointSlice, error)

// NodeLocator says where a node's kubelet serves (scheme, host and port) and how to get there. The transport must be
// an *http.Transport or wrap one, since upgrades need its dialer and its TLS configuration; it speaks HTTP/1.1.
type NodeLocator func(ctx context.Context, nodeName string) (*url.URL, http.RoundTripper, error)

// dialTimeout bounds how long connecting to a node may take.
const dialTimeout = 10 * time.Second

// Kubelets finds kubelets by what their node objects say.
type Kubelets struct {
	get       NodeGetter
	transport *http.Transport

	mu    sync.Mutex
	local map[string]*http.Transport // of kubelets in this process, by node
}

// Dialer connects to one place.
type Dialer func(ctx context.Context) (net.Conn, error)

// NewKubelets makes a locator over node objects; the TLS configuration holds the client certificate that kubelets
// know the API server by, and the roots it knows them by.
func NewKubelets(get NodeGetter, client *tls.Config) *Kubelets {
	return &Kubelets{get: get, local: map[string]*http.Transport{}, transport: &http.Transport{
		TLSClientConfig:     client,
		DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: dialTimeout,
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     30 * time.Second,
	}}
}

// Serve has the kubelet of a node, which runs in this process, reached by dial, without TLS: a handshake each way costs
// more than the rest of a short exec. forget undoes it.
func (k *Kubelets) Serve(nodeName string, dial Dialer) (forget func()) {
	t := &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		ReadBufferSize:      64 << 10, // logs are long
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     30 * time.Second,
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.local[nodeName] = t
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.local[nodeName] == t {
			delete(k.local, nodeName)
		}
		t.CloseIdleConnections()
	}
}

func (k *Kubelets) inProcess(nodeName string) (*http.Transport, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t, ok := k.local[nodeName]
	return t, ok
}

// Locate is the NodeLocator.
func (k *Kubelets) Locate(ctx context.Context, nodeName string) (*url.URL, http.RoundTripper, error) {
	if t, ok := k.inProcess(nodeName); ok {
		return &url.URL{Scheme: "http", Host: nodeName}, t, nil
	}
	return k.Published(ctx, nodeName)
}

// Published is the NodeLocator that goes by the node's object always: the address other machines use.
func (k *Kubelets) Published(ctx context.Context, nodeName string) (*url.URL, http.RoundTripper, error) {
	node, err := k.get(ctx, nodeName)
	if apierrors.IsNotFound(err) {
		return nil, nil, apierrors.NewServiceUnavailable(fmt.Sprintf("node %q is not registered", nodeName))
	} else if err != nil {
		return nil, nil, fmt.Errorf("look up node %q: %w", nodeName, err)
	}
	host := kubeletHost(node)
	if host == "" {
		return nil, nil, apierrors.NewServiceUnavailable(fmt.Sprintf("node %q has published no address yet", nodeName))
	}
	port := node.Status.DaemonEndpoints.KubeletEndpoint.Port
	if port == 0 {
		return nil, nil, apierrors.NewServiceUnavailable(fmt.Sprintf("node %q has published no kubelet port yet",
			nodeName))
	}
	return &url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(int(port)))}, k.transport, nil
}

// Close lets go of idle connections.
func (k *Kubelets) Close() {
	k.transport.CloseIdleConnections()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, t := range k.local {
		t.CloseIdleConnections()
	}
}

// kubeletHost prefers addresses that need no name resolution.
func kubeletHost(node *corev1.Node) string {
	for _, t := range []corev1.NodeAddressType{
		corev1.NodeInternalIP, corev1.NodeExternalIP, corev1.NodeInternalDNS, corev1.NodeHostName,
		corev1.NodeExternalDNS,
	} {
		for _, a := range node.Status.Addresses {
			if a.Type == t && a.Address != "" {
				return a.Address
			}
		}
	}
	return ""
}

// Unreachable is the error of a kubelet that could not be talked to.
func Unreachable(nodeName string, err error) error {
	if _, ok := err.(apierrors.APIStatus); ok {
		return err
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("cannot reach the kubelet of node %q: %v", nodeName, err))
}
