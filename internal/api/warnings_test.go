// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What is deprecated or has no effect here is told to who writes it (PL-15, WL-19), and nothing is told to who does
// neither.
func TestWarnings(t *testing.T) {
	config := adminConfig(t)
	said := &warned{}
	config.WarningHandler = said
	c := clientOf(t, config)
	ns := namespace(t, c)
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, row := range map[string]struct {
		do   func()
		want []string
	}{
		"plain pod": {do: func() { createPod(t, c, ns, pod("plain")) }},
		"pod with a variable twice": {func() {
			p := pod("twice")
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}
			createPod(t, c, ns, p)
		}, []string{`spec.containers[0].env[1]: hides previous definition of "A"`}},
		"pod with an old annotation": {func() {
			p := pod("old")
			p.Annotations = map[string]string{"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}
			createPod(t, c, ns, p)
		}, []string{"non-functional in v1.27+"}},
		"service": {do: func() {
			must(c.CoreV1().Services(ns).Create(t.Context(), service("plain"), metav1.CreateOptions{}))
		}},
		"headless service": {do: func() {
			s := service("headless")
			s.Spec.ClusterIP = corev1.ClusterIPNone
			must(c.CoreV1().Services(ns).Create(t.Context(), s, metav1.CreateOptions{}))
		}},
		"service elsewhere": {do: func() {
			s := service("elsewhere")
			s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "db.example.com"
			must(c.CoreV1().Services(ns).Create(t.Context(), s, metav1.CreateOptions{}))
		}},
		"load balancer": {do: func() {
			s := service("balanced")
			s.Spec.Type = corev1.ServiceTypeLoadBalancer
			must(c.CoreV1().Services(ns).Create(t.Context(), s, metav1.CreateOptions{}))
		}},
		"service account": {func() {
			a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "a",
				Annotations: map[string]string{"kubernetes.io/enforce-mountable-secrets": "true"}}}
			must(c.CoreV1().ServiceAccounts(ns).Create(t.Context(), a, metav1.CreateOptions{}))
		}, []string{"deprecated in v1.32+"}},
		"quota": {do: func() {
			must(c.CoreV1().ResourceQuotas(ns).Create(t.Context(),
				countQuota("plain", "count/pods", "count/boats.harbour.example.com",
					"count/roles.rbac.authorization.k8s.io", "pods"),
				metav1.CreateOptions{}))
		}},
		"quota of what is not counted": {func() {
			must(c.CoreV1().ResourceQuotas(ns).Create(t.Context(),
				countQuota("boats", "count/boats.apps"), metav1.CreateOptions{}))
		}, []string{"spec.hard[count/boats.apps]: has no effect"}},
		"network policy": {func() {
			p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "none"}}
			must(c.NetworkingV1().NetworkPolicies(ns).Create(t.Context(), p, metav1.CreateOptions{}))
		}, []string{"NetworkPolicy none is stored and not enforced"}},
		"endpoints read": {func() { must(c.CoreV1().Endpoints(ns).List(t.Context(), metav1.ListOptions{})) },
			[]string{"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"}},
		"endpoints written": {func() {
			must(c.CoreV1().Endpoints(ns).Create(t.Context(),
				&corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "e"}}, metav1.CreateOptions{}))
		}, []string{"v1 Endpoints is deprecated"}},
	} {
		t.Run(name, func(t *testing.T) {
			said.said = nil
			row.do()
			if len(said.said) != len(row.want) {
				t.Errorf("warnings %q, want %q", said.said, row.want)
				return
			}
			for i, want := range row.want {
				if !strings.Contains(said.said[i], want) {
					t.Errorf("warnings %q, want %q", said.said, row.want)
				}
			}
		})
	}
}

func countQuota(name string, entries ...corev1.ResourceName) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{}}}
	for _, e := range entries {
		q.Spec.Hard[e] = resource.MustParse("100")
	}
	return q
}
