// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestServiceOfOtherType: who changes only the type of a service gets rid of what the server had filled in for the old type, and of nothing else.
func TestServiceOfOtherType(t *testing.T) {
	single, allocate, class, cluster := corev1.IPFamilyPolicySingleStack, true, "example.com/lb", corev1.ServiceInternalTrafficPolicyCluster
	old := corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.96.0.9", ClusterIPs: []string{"10.96.0.9"}, HealthCheckNodePort: 30100,
		IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, IPFamilyPolicy: &single, AllocateLoadBalancerNodePorts: &allocate, LoadBalancerClass: &class,
		ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, InternalTrafficPolicy: &cluster, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080}}}
	update := func(change func(*corev1.ServiceSpec)) *corev1.Service {
		was := &corev1.Service{Spec: *old.DeepCopy(), Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{
			Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}}}}
		now := was.DeepCopy()
		change(&now.Spec)
		serviceRules().PrepareUpdate(now, was)
		return now
	}
	plain := corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: old.ClusterIP, ClusterIPs: old.ClusterIPs, IPFamilies: old.IPFamilies,
		IPFamilyPolicy: &single, InternalTrafficPolicy: &cluster, Ports: []corev1.ServicePort{{Port: 80}}}
	nodePort := *plain.DeepCopy()
	nodePort.Type, nodePort.ExternalTrafficPolicy, nodePort.Ports[0].NodePort = corev1.ServiceTypeNodePort, corev1.ServiceExternalTrafficPolicyLocal, 30080
	name := corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, InternalTrafficPolicy: &cluster, Ports: []corev1.ServicePort{{Port: 80}}}
	for _, want := range []corev1.ServiceSpec{plain, nodePort, name} {
		got := update(func(s *corev1.ServiceSpec) { s.Type = want.Type })
		if !reflect.DeepEqual(got.Spec, want) || len(got.Status.LoadBalancer.Ingress) > 0 {
			t.Errorf("to %s: %+v, status %+v", want.Type, got.Spec, got.Status)
		}
	}
	if got := update(func(s *corev1.ServiceSpec) { s.ClusterIP = "" }); !reflect.DeepEqual(got.Spec, old) || len(got.Status.LoadBalancer.Ingress) != 1 {
		t.Errorf("the same type: %+v, status %+v", got.Spec, got.Status)
	}
	got := update(func(s *corev1.ServiceSpec) { s.Type, s.Ports[0].NodePort = corev1.ServiceTypeClusterIP, 30081 })
	if got.Spec.Ports[0].NodePort != 30081 {
		t.Error("a node port that was asked for is dropped without a word")
	}
}
