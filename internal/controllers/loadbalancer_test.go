// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

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
