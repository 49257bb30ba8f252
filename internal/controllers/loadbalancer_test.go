// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// TestLoadBalancer: WL-09, WL-24: a service of type LoadBalancer gets an address and node ports; one that wants a port that another has is
// told so, and gets the address when that is gone.
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
	gets := func(name string) {
		t.Helper()
		w, err := services.Watch(t.Context(), metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		for e := range w.ResultChan() {
			if in := e.Object.(*corev1.Service).Status.LoadBalancer.Ingress; len(in) == 1 && in[0].IP == balancer {
				return
			}
		}
		t.Errorf("%s has no address", name)
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
}
