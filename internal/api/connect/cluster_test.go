// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/api/connect/kubelettest"
)

// cluster has the storages of this package.
type cluster struct{ *kubelettest.Cluster }

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{kubelettest.NewCluster(t)}
	kubelets := NewKubelets(c.Node, c.TLS())
	t.Cleanup(kubelets.Close)
	transport := NewNodePortTransport()
	t.Cleanup(transport.CloseIdleConnections)
	scheme, mux := newScheme(t), http.NewServeMux()
	proxied := kubelettest.Handler(scheme, NewPodProxy(c.Pod, transport))
	mux.Handle("/api/v1/namespaces/default/pods/{name}/proxy", proxied)
	mux.Handle("/api/v1/namespaces/default/pods/{name}/proxy/{path...}", proxied)
	mux.Handle("/api/v1/nodes/{name}/proxy/{path...}",
		kubelettest.Handler(scheme, NewNodeProxy(kubelets.Locate, kubelets.Published, transport)))
	mux.Handle("/api/v1/namespaces/default/pods/{name}/log", logHandler(scheme, NewLog(c.Pod, kubelets.Locate)))
	c.Serve(t, scheme, mux, map[string]rest.Connecter{
		"timeline": NewTimeline(c.Pod, c.namespace, kubelets.Locate,
			func(context.Context) ([]string, error) { return []string{"dead", "mute", "one"}, nil }),
		"portforward": NewPortForward(c.Pod, kubelets.Locate),
	})
	return c
}

func TestMain(m *testing.M) { kubelettest.Main(m) }

// namespace is the one that the pods are in; it was made at 03:04:05.
func (*cluster) namespace(_ context.Context, name string) (*corev1.Namespace, error) {
	if name != "default" {
		return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}, nil
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

func logHandler(scheme *runtime.Scheme, s *Log) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		opts, _, _ := s.NewGetOptions()
		if err := runtime.NewParameterCodec(scheme).DecodeParameters(r.URL.Query(), corev1.SchemeGroupVersion, opts); err != nil {
			kubelettest.Responder{W: w}.Error(apierrors.NewBadRequest(err.Error()))
			return
		}
		obj, err := s.Get(r.Context(), r.PathValue("name"), opts)
		if err != nil {
			kubelettest.Responder{W: w}.Error(err)
			return
		}
		stream, flush, mime, err := obj.(rest.ResourceStreamer).InputStream(r.Context(), "", "")
		if err != nil {
			kubelettest.Responder{W: w}.Error(err)
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
