// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestTwoVersions proves WL-01: an autoscaler is the same object in both versions, and v2 is the one clients prefer.
func TestTwoVersions(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	made, err := c.AutoscalingV1().HorizontalPodAutoscalers(ns).Create(t.Context(),
		&autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "h"},
			Spec: autoscalingv1.HorizontalPodAutoscalerSpec{MaxReplicas: 3,
				TargetCPUUtilizationPercentage: ptr.To[int32](70),
				ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{Kind: "Deployment", Name: "web",
					APIVersion: "apps/v1"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	same, err := c.AutoscalingV2().HorizontalPodAutoscalers(ns).Get(t.Context(), "h", metav1.GetOptions{})
	if err != nil || same.UID != made.UID || len(same.Spec.Metrics) != 1 ||
		*same.Spec.Metrics[0].Resource.Target.AverageUtilization != 70 {
		t.Errorf("%+v, %v", same, err)
	}
	groups, err := c.Discovery().ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups.Groups {
		if g.Name == "autoscaling" && (g.PreferredVersion.Version != "v2" || len(g.Versions) != 2) {
			t.Errorf("%+v", g)
		}
	}
}

// TestIngressClass proves WL-18: an Ingress without a class gets the default one, and who has none is told.
func TestIngressClass(t *testing.T) {
	said := &warned{}
	config := adminConfig(t)
	config.WarningHandler = said
	c := clientOf(t, config)
	ns := namespace(t, c)
	ingress := func(name string) *networkingv1.Ingress {
		made, err := c.NetworkingV1().Ingresses(ns).Create(t.Context(), &networkingv1.Ingress{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressSpec{
				DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web",
					Port: networkingv1.ServiceBackendPort{Number: 80}}}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	if made := ingress("none"); made.Spec.IngressClassName != nil || len(said.said) != 1 {
		t.Errorf("%v, warnings %q", made.Spec.IngressClassName, said.said)
	}
	class := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "of-" + ns,
		Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}},
		Spec: networkingv1.IngressClassSpec{Controller: "example.com/ingress"}}
	if _, err := c.NetworkingV1().IngressClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.NetworkingV1().IngressClasses().Delete(t.Context(), class.Name,
			metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}()
	if made := ingress("given"); ptr.Deref(made.Spec.IngressClassName, "") != class.Name || len(said.said) != 1 {
		t.Errorf("%v, warnings %q", made.Spec.IngressClassName, said.said)
	}
}

// TestServiceCIDR proves WL-01: the range of services' addresses is an object, as in any cluster.
func TestServiceCIDR(t *testing.T) {
	c := client(t)
	have, err := c.NetworkingV1().ServiceCIDRs().Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil || len(have.Spec.CIDRs) != 1 {
		t.Errorf("%+v, %v", have, err)
	}
	_, err = c.NetworkingV1().IPAddresses().Create(t.Context(), &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: "not-an-address"}}, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Error(err)
	}
}
