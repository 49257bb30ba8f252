// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// panics is the count of a controller's panics in the metrics.
func panics(t *testing.T, controller string) (count float64) {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "wherry_controller_panics_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == controller {
				count += m.GetCounter().GetValue()
			}
		}
	}
	return count
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// TestPanicOfKubernetesController: WL-06, one of Kubernetes' own controllers that panics in a goroutine of its own is
// counted, started again, and does what it was to do; nothing else ends.
func TestPanicOfKubernetesController(t *testing.T) {
	client := start(t)
	var once atomic.Bool
	startWorkloads(t, func(name string, c *rest.Config) {
		if name == "endpointslice-controller" {
			c.Wrap(func(inner http.RoundTripper) http.RoundTripper {
				return transport(func(r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/endpointslices") &&
						once.CompareAndSwap(false, true) {
						panic("injected")
					}
					return inner.RoundTrip(r)
				})
			})
		}
	})
	before := panics(t, "endpointslice-controller")
	ns := newNamespace(t, client)
	slices, err := client.DiscoveryV1().EndpointSlices(ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer slices.Stop()
	if _, err := client.CoreV1().Services(ns).Create(t.Context(),
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"},
				Ports: []corev1.ServicePort{{Port: 80}}}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-slices.ResultChan():
		if e.Type != watch.Added {
			t.Errorf("got %v", e)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("no slice comes")
	}
	if n := panics(t, "endpointslice-controller") - before; !once.Load() || n != 1 {
		t.Errorf("%v panics were counted", n)
	}
}

// TestPanicsAnywhere: WL-06, wherever a controller panics that Kubernetes' libraries let be caught, it is made anew,
// and leaves nothing in the informers that it shares.
func TestPanicsAnywhere(t *testing.T) {
	client := start(t)
	ns := newNamespace(t, client)
	for where, fail := range map[string]struct {
		made func(k *ondemand.Kit)                  // while it is made
		runs func(ctx context.Context, work func()) // its own goroutine
		each func()                                 // in a handler
	}{
		"making":  {made: func(*ondemand.Kit) { panic("injected") }},
		"running": {runs: func(context.Context, func()) { panic("injected") }},
		"worker": {runs: func(ctx context.Context, work func()) {
			wait.UntilWithContext(ctx, func(context.Context) { work() }, time.Second)
		}},
		"worker, no context": {runs: func(ctx context.Context,
			work func()) {
			wait.Until(work, time.Second, ctx.Done())
		}},
		"handler": {each: func() { panic("injected") }},
	} {
		t.Run(where, func(t *testing.T) {
			name := "test-" + strings.ReplaceAll(strings.ReplaceAll(where, " ", "-"), ",", "")
			var lives atomic.Int32
			works := make(chan struct{}, 1)
			row := ondemand.Controller{
				Name: name,
				Starts: []ondemand.Start{{Kind: corev1.SchemeGroupVersion.WithResource("configmaps"),
					There: func(context.Context, ondemand.Looking) (bool, error) { return false, nil }}},
				Code: "github.com/wherryproject/wherry/internal/controllers_test",
				New: func(ctx context.Context, k *ondemand.Kit) (func(context.Context), error) {
					first := lives.Add(1) == 1
					if first && fail.made != nil {
						fail.made(k)
					}
					_,
						err := k.Informers.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
						if first && fail.each != nil {
							fail.each()
						}
					}})
					return func(ctx context.Context) {
						if first && fail.runs != nil {
							done := make(chan struct{})
							if where == "running" {
								fail.runs(ctx, nil)
							}
							go func() {
								defer close(done)
								fail.runs(ctx, func() { panic("injected") })
							}()
							<-done
						}
						if !first {
							works <- struct{}{}
						}
						<-ctx.Done()
					}, err
				},
			}
			ctx, cancel := context.WithCancel(t.Context())
			as, err := server.As(rbac.Controllers)
			if err != nil {
				t.Fatal(err)
			}
			factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(as), 0)
			m := ondemand.New([]ondemand.Controller{row}, ondemand.Config{
				As:      func(string) (*rest.Config, error) { return as, nil },
				Looking: ondemand.Looking{Client: client, Metadata: metadata.NewForConfigOrDie(as)}, Informers: factory,
				Firsts: server.Firsts(), Crashes: crashes(), Log: slog.New(slog.DiscardHandler),
			})
			before := panics(t, name)
			ended := make(chan error, 1)
			go func() { ended <- m.Run(ctx) }()
			for ctx.Err() == nil && !m.Started(name) { // Run may not have begun to wait
				if _, err := client.CoreV1().ConfigMaps(ns).Create(ctx,
					&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"}},
					metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case <-works:
			case <-time.After(20 * time.Second):
				t.Error("it is not made anew")
			}
			if n := panics(t, name) - before; n < 1 {
				t.Errorf("%v panics were counted", n)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			factory.Shutdown()
		})
	}
}
