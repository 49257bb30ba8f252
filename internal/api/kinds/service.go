// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/serviceips"
	"github.com/wherryproject/wherry/internal/api/validation"
)

func serviceRules() registry.Rules {
	return registry.Typed[*corev1.Service]{
		PrepareCreate: func(s *corev1.Service) { s.Status = corev1.ServiceStatus{} },
		Validate:      validation.ValidateService,
		PrepareUpdate: func(s, old *corev1.Service) {
			s.Status = old.Status
			keepServiceAddress(s, old)
			dropOfOtherType(&s.Spec, &old.Spec)
			if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
				s.Status.LoadBalancer = corev1.LoadBalancerStatus{}
			}
		},
		ValidateUpdate: validation.ValidateServiceUpdate,
		Warn:           serviceWarnings,
		CreateOnUpdate: true,
		Reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}.Rules()
}

func serviceStatusRules() registry.Rules {
	return registry.Typed[*corev1.Service]{
		PrepareUpdate:  func(s, old *corev1.Service) { s.Spec = old.Spec },
		ValidateUpdate: validation.ValidateServiceStatusUpdate,
		Reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("spec")),
	}.Rules()
}

// keepServiceAddress fills in what the server allocated and the client left out, as a PUT of a hand-written manifest
// does.
func keepServiceAddress(s, old *corev1.Service) {
	if !serviceips.HasAddress(s) {
		if serviceips.HasAddress(old) {
			dropAddress(&s.Spec, &old.Spec)
		}
		return
	}
	if !serviceips.HasAddress(old) {
		return
	}
	if s.Spec.ClusterIP == "" && (len(s.Spec.ClusterIPs) == 0 || s.Spec.ClusterIPs[0] == old.Spec.ClusterIP) {
		s.Spec.ClusterIP, s.Spec.ClusterIPs = old.Spec.ClusterIP, old.Spec.ClusterIPs
	}
	if len(s.Spec.ClusterIPs) == 0 && s.Spec.ClusterIP == old.Spec.ClusterIP {
		s.Spec.ClusterIPs = old.Spec.ClusterIPs
	}
	if s.Spec.IPFamilyPolicy == nil {
		s.Spec.IPFamilyPolicy = old.Spec.IPFamilyPolicy
	}
	if len(s.Spec.IPFamilies) == 0 {
		s.Spec.IPFamilies = old.Spec.IPFamilies
	}
}

// dropAddress takes away what a service that is a name has not, unless the client changed it too.
func dropAddress(s, old *corev1.ServiceSpec) {
	if s.ClusterIP == old.ClusterIP && slices.Equal(s.ClusterIPs, old.ClusterIPs) {
		s.ClusterIP, s.ClusterIPs = "", nil
	}
	if slices.Equal(s.IPFamilies, old.IPFamilies) {
		s.IPFamilies = nil
	}
	if ptr.Equal(s.IPFamilyPolicy, old.IPFamilyPolicy) {
		s.IPFamilyPolicy = nil
	}
}

// dropOfOtherType clears fields that have no meaning for the new type, unless the client has changed them too: then
// validation refuses them. A client that reads a service and changes only its type cannot know which fields the server
// has filled in for the old one.
func dropOfOtherType(s, old *corev1.ServiceSpec) {
	usesNodePorts := func(s *corev1.ServiceSpec) bool {
		return s.Type == corev1.ServiceTypeNodePort || s.Type == corev1.ServiceTypeLoadBalancer
	}
	balanced := func(s *corev1.ServiceSpec) bool { return s.Type == corev1.ServiceTypeLoadBalancer }
	checked := func(s *corev1.ServiceSpec) bool {
		return balanced(s) && s.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
	}
	if usesNodePorts(old) && !usesNodePorts(s) && sameNodePorts(s.Ports, old.Ports) {
		for i := range s.Ports {
			s.Ports[i].NodePort = 0
		}
	}
	if checked(old) && !checked(s) && s.HealthCheckNodePort == old.HealthCheckNodePort {
		s.HealthCheckNodePort = 0
	}
	if balanced(old) && !balanced(s) {
		if ptr.Equal(s.AllocateLoadBalancerNodePorts, old.AllocateLoadBalancerNodePorts) {
			s.AllocateLoadBalancerNodePorts = nil
		}
		if ptr.Equal(s.LoadBalancerClass, old.LoadBalancerClass) {
			s.LoadBalancerClass = nil
		}
	}
	if validation.IsExternallyAccessible(old) && !validation.IsExternallyAccessible(s) &&
		s.ExternalTrafficPolicy == old.ExternalTrafficPolicy {
		s.ExternalTrafficPolicy = ""
	}
}

// sameNodePorts: no port has a node port that was not there before.
func sameNodePorts(ports, old []corev1.ServicePort) bool {
	for _, p := range ports {
		if p.NodePort != 0 &&
			!slices.ContainsFunc(old, func(o corev1.ServicePort) bool { return o.NodePort == p.NodePort }) {
			return false
		}
	}
	return true
}

func serviceFields(obj runtime.Object) fields.Set {
	s := obj.(*corev1.Service)
	return fields.Set{"spec.clusterIP": s.Spec.ClusterIP, "spec.type": string(s.Spec.Type)}
}
