// SPDX-License-Identifier: Apache-2.0

package kubelettest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/leaktest"
)

// Cluster is pods, nodes and an API server of nothing but the storages that it is given.
type Cluster struct {
	*httptest.Server
	Kubelet *Kubelet
	Pods    map[string]*corev1.Pod
	Nodes   map[string]*corev1.Node
}

// NewCluster has pods of several kinds, on a node that works and on others that do not.
func NewCluster(t *testing.T) *Cluster {
	t.Helper()
	c := &Cluster{Kubelet: NewKubelet(t), Pods: map[string]*corev1.Pod{}, Nodes: map[string]*corev1.Node{}}
	c.Nodes["one"] = c.Kubelet.Node("one")
	dead := c.Kubelet.Node("dead")
	dead.Status.DaemonEndpoints.KubeletEndpoint.Port = closedPort(t)
	c.Nodes["dead"] = dead
	c.Nodes["mute"] = &corev1.Node{}
	for _, p := range []*corev1.Pod{
		NewPod("plain", "one", nil, "main"),
		NewPod("many", "one", []string{"setup"}, "a", "b"),
		NewPod("homeless", "", nil, "main"),
		NewPod("lost", "dead", nil, "main"),
		NewPod("unregistered", "nobody", nil, "main"),
		NewPod("early", "mute", nil, "main"),
		NewPod("new", "one", nil, "main"),
		NewPod("leaving", "one", nil, "gone"),
	} {
		c.Pods[p.Name] = p
	}
	return c
}

// Pod reads a pod.
func (c *Cluster) Pod(_ context.Context, name string) (*corev1.Pod, error) {
	if p, ok := c.Pods[name]; ok {
		return p, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
}

// Node reads a node.
func (c *Cluster) Node(_ context.Context, name string) (*corev1.Node, error) {
	if n, ok := c.Nodes[name]; ok {
		return n, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("nodes"), name)
}

// TLS is what a client knows the kubelet by.
func (c *Cluster) TLS() *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(c.Kubelet.Server.Certificate())
	return &tls.Config{RootCAs: roots}
}

// Serve serves subresources of pods, and what else is in mux, until the test ends.
func (c *Cluster) Serve(t *testing.T, scheme *runtime.Scheme, mux *http.ServeMux, of map[string]rest.Connecter) {
	t.Helper()
	for sub, s := range of {
		mux.Handle("/api/v1/namespaces/default/pods/{name}/"+sub, Handler(scheme, s))
	}
	c.Server = httptest.NewServer(mux)
	t.Cleanup(c.Close)
}

// NewPod has containers by their names.
func NewPod(name, node string, inits []string, mains ...string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: corev1.PodSpec{NodeName: node, InitContainers: named(inits), Containers: named(mains)}}
}

func named(names []string) (out []corev1.Container) {
	for _, name := range names {
		out = append(out, corev1.Container{Name: name})
	}
	return out
}

// Handler does what the API server's installer does with a connecter.
func Handler(scheme *runtime.Scheme, s rest.Connecter) http.Handler {
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
		if err := runtime.NewParameterCodec(scheme).DecodeParameters(query, corev1.SchemeGroupVersion,
			opts); err != nil {
			Responder{W: w}.Error(apierrors.NewBadRequest(err.Error()))
			return
		}
		h, err := s.Connect(r.Context(), r.PathValue("name"), opts, Responder{W: w})
		if err != nil {
			Responder{W: w}.Error(err)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Responder writes errors as the API server does.
type Responder struct{ W http.ResponseWriter }

// Object implements rest.Responder.
func (r Responder) Object(int, runtime.Object) {}

// Error implements rest.Responder.
func (r Responder) Error(err error) {
	status := apierrors.NewInternalError(err).ErrStatus
	if s, ok := err.(apierrors.APIStatus); ok {
		status = s.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	r.W.Header().Set("Content-Type", "application/json")
	r.W.WriteHeader(int(status.Code))
	json.NewEncoder(r.W).Encode(status)
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

// Main runs tests that must leave no goroutine behind.
func Main(m *testing.M) {
	leaktest.Main(m,
		// klog's flusher, started by the import.
		goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
		// spdystream keeps the error of a close for ten minutes, for a caller of Wait whom nobody sends.
		goleak.IgnoreTopFunction("github.com/moby/spdystream.(*Connection).shutdown"))
}
