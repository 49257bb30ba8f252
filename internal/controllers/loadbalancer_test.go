// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/controllers/loadbalancer"
)

// TestLoadBalancer: WL-09, WL-24: a service of type LoadBalancer gets an address and node ports; one that wants a port that another has is
// told so, and gets the address when that is gone. A finalizer stands for the address, and goes with it.
func TestLoadBalancer(t *testing.T) {
	client, ns := start(t), "default"
	services := client.CoreV1().Services(ns)
	made := func(name string, port int32) *corev1.Service {
		t.Helper()
		s, err := services.Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: port}}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = services.Delete(context.Background(), name, metav1.DeleteOptions{}) })
		return s
	}
	// becomes waits, from before an act, until a service is as it should be; nil: until it is gone.
	becomes := func(name, what string, act func() error, as func(*corev1.Service) bool) {
		t.Helper()
		w, err := services.Watch(t.Context(), metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		if err := act(); err != nil {
			t.Fatal(err)
		}
		for e := range w.ResultChan() {
			if e.Type == watch.Deleted && as == nil || as != nil && as(e.Object.(*corev1.Service)) {
				return
			}
		}
		t.Errorf("%s does not become %s", name, what)
	}
	marked := func(s *corev1.Service) bool { return slices.Contains(s.Finalizers, loadbalancer.Finalizer) }
	nothing := func() error { return nil }
	gets := func(name string) {
		t.Helper()
		becomes(name, "one with an address", nothing, func(s *corev1.Service) bool {
			in := s.Status.LoadBalancer.Ingress
			return len(in) == 1 && in[0].IP == balancer && ptr.Deref(in[0].IPMode, "") == corev1.LoadBalancerIPModeVIP && marked(s)
		})
	}
	first := made("first", 8443)
	if first.Spec.Ports[0].NodePort == 0 {
		t.Error("it has no node port")
	}
	gets("first")
	made("second", 8443)
	w, err := client.CoreV1().Events(ns).Watch(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=second"})
	if err != nil {
		t.Fatal(err)
	}
	for e := range w.ResultChan() {
		if ev := e.Object.(*corev1.Event); ev.Reason == "NoLoadBalancerAddress" && strings.Contains(ev.Message, "belongs to service default/first") {
			break
		}
	}
	w.Stop()
	if err := services.Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	gets("second")
	change := func(kind corev1.ServiceType) func() error {
		return func() error {
			patch := fmt.Sprintf(`{"spec": {"type": %q}}`, kind)
			_, err := services.Patch(t.Context(), "second", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return err
		}
	}
	becomes("second", "one of a cluster IP alone", change(corev1.ServiceTypeClusterIP), func(s *corev1.Service) bool {
		return s.Spec.Type == corev1.ServiceTypeClusterIP && !marked(s) && len(s.Status.LoadBalancer.Ingress) == 0
	})
	if err := change(corev1.ServiceTypeLoadBalancer)(); err != nil {
		t.Fatal(err)
	}
	gets("second")
	becomes("second", "gone", func() error {
		return services.Delete(t.Context(), "second", metav1.DeleteOptions{})
	}, nil)
}

// TestLoadBalancerAway: WL-09: what becomes of services while the controller is away is made up for when it is there
// again, also if it gives no addresses any more; what another has marked then is another's.
func TestLoadBalancerAway(t *testing.T) {
	client := admin(t)
	services := client.CoreV1().Services("default")
	balance := func(pool *loadbalancer.Pool) (stop func()) {
		t.Helper()
		config, err := server.As(rbac.LoadBalancer)
		if err != nil {
			t.Fatal(err)
		}
		user := kubernetes.NewForConfigOrDie(config)
		ctx, cancel := context.WithCancel(context.Background())
		factory := informers.NewSharedInformerFactory(client, 0)
		c := loadbalancer.New(user, factory, pool, slog.New(slog.DiscardHandler))
		factory.Start(ctx.Done())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		return sync.OnceFunc(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			factory.Shutdown()
		})
	}
	until := func(name, what string, is func(*corev1.Service) bool) { // nil: it is gone
		t.Helper()
		list, err := services.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) == 0 && is == nil || len(list.Items) == 1 && is != nil && is(&list.Items[0]) {
			return
		}
		w, err := services.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: list.ResourceVersion,
			TimeoutSeconds: ptr.To[int64](60)})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		for e := range w.ResultChan() {
			if e.Type == watch.Deleted && is == nil || is != nil && is(e.Object.(*corev1.Service)) {
				return
			}
		}
		t.Errorf("%s does not become %s", name, what)
	}
	marked := func(s *corev1.Service) bool { return slices.Contains(s.Finalizers, loadbalancer.Finalizer) }
	free := func(s *corev1.Service) bool { return !marked(s) && len(s.Status.LoadBalancer.Ingress) == 0 }
	served := func(s *corev1.Service) bool { return marked(s) && len(s.Status.LoadBalancer.Ingress) == 1 }
	for off, pool := range map[bool]*loadbalancer.Pool{true: nil, false: machinePool()} {
		t.Run(fmt.Sprintf("off=%t", off), func(t *testing.T) {
			stop := balance(machinePool())
			defer func() { stop() }()
			for i, name := range []string{"kept", "deleted", "typed", "classed", "given"} {
				if _, err := services.Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
					Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: int32(7000 + i)}}}}, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				until(name, "one with an address", served)
			}
			stop()
			patch := func(name, text string, sub ...string) {
				t.Helper()
				if _, err := services.Patch(t.Context(), name, types.MergePatchType, []byte(text), metav1.PatchOptions{}, sub...); err != nil {
					t.Fatal(err)
				}
			}
			patch("typed", `{"spec": {"type": "ClusterIP"}}`)
			for _, name := range []string{"classed", "given"} {
				patch(name, `{"spec": {"type": "ClusterIP"}}`)
				patch(name, `{"spec": {"type": "LoadBalancer", "loadBalancerClass": "example.com/lb"}}`)
			}
			patch("given", `{"status": {"loadBalancer": {"ingress": [{"ip": "198.51.100.7"}]}}}`, "status")
			if _, err := services.Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "cloud", Finalizers: []string{loadbalancer.Finalizer}},
				Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 7777}}}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"deleted", "cloud"} {
				if err := services.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			until("deleted", "one that waits for the controller", func(s *corev1.Service) bool { return marked(s) && s.DeletionTimestamp != nil })

			stop = balance(pool)
			until("deleted", "gone", nil)
			until("typed", "free", free)
			until("classed", "free", free)
			until("given", "free but for the address of another", func(s *corev1.Service) bool {
				return !marked(s) && len(s.Status.LoadBalancer.Ingress) == 1 && s.Status.LoadBalancer.Ingress[0].IP == "198.51.100.7"
			})
			until("kept", "as it was", served)
			if off {
				stop()
				until("cloud", "what it was", marked)
				stop = balance(machinePool()) // which takes it for its own
			}
			until("cloud", "gone", nil)
			for _, name := range []string{"kept", "typed", "classed", "given"} {
				if err := services.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				until(name, "gone", nil)
			}
		})
	}
}
