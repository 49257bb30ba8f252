// SPDX-License-Identifier: Apache-2.0

package api

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// addDefaults registers what an absent field means. Defaults are applied to what clients send and to what is read from the
// store alike, so they must never depend on anything but the object.
func addDefaults(scheme *runtime.Scheme) {
	defaulter(scheme, podspec.SetDefaults)
	defaulter(scheme, func(l *corev1.PodList) {
		for i := range l.Items {
			podspec.SetDefaults(&l.Items[i])
		}
	})
	defaulter(scheme, defaultNamespace)
	defaulter(scheme, defaultNode)
	defaulter(scheme, defaultService)
	defaulter(scheme, func(s *corev1.Secret) {
		if s.Type == "" {
			s.Type = corev1.SecretTypeOpaque
		}
	})
	defaulter(scheme, func(s *discoveryv1.EndpointSlice) {
		for i := range s.Ports {
			p := &s.Ports[i]
			if p.Name == nil {
				p.Name = ptr.To("")
			}
			if p.Protocol == nil {
				p.Protocol = ptr.To(corev1.ProtocolTCP)
			}
		}
	})
	defaulter(scheme, func(e *corev1.Endpoints) {
		for i := range e.Subsets {
			for j := range e.Subsets[i].Ports {
				if p := &e.Subsets[i].Ports[j]; p.Protocol == "" {
					p.Protocol = corev1.ProtocolTCP
				}
			}
		}
	})
}

func defaulter[T any](scheme *runtime.Scheme, set func(*T)) {
	obj, ok := any(new(T)).(runtime.Object)
	if !ok {
		panic("defaulter of a type that is no API object") // programmer error, at start
	}
	scheme.AddTypeDefaultingFunc(obj, func(o any) { set(o.(*T)) })
}

func defaultNamespace(ns *corev1.Namespace) {
	if ns.Status.Phase == "" {
		ns.Status.Phase = corev1.NamespaceActive
	}
	if ns.Name == "" {
		return
	}
	if ns.Labels == nil {
		ns.Labels = map[string]string{}
	}
	ns.Labels[corev1.LabelMetadataName] = ns.Name
}

func defaultNode(n *corev1.Node) {
	if n.Status.Allocatable != nil || n.Status.Capacity == nil {
		return
	}
	n.Status.Allocatable = n.Status.Capacity.DeepCopy()
}

func defaultService(s *corev1.Service) {
	spec := &s.Spec
	if spec.SessionAffinity == "" {
		spec.SessionAffinity = corev1.ServiceAffinityNone
	}
	if spec.SessionAffinity == corev1.ServiceAffinityNone {
		spec.SessionAffinityConfig = nil
	}
	if spec.SessionAffinity == corev1.ServiceAffinityClientIP && spec.SessionAffinityConfig == nil {
		spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](10800)}}
	}
	if spec.Type == "" {
		spec.Type = corev1.ServiceTypeClusterIP
	}
	for i := range spec.Ports {
		p := &spec.Ports[i]
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	if spec.Type != corev1.ServiceTypeExternalName && spec.InternalTrafficPolicy == nil {
		spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyCluster)
	}
	if spec.Type == corev1.ServiceTypeNodePort || spec.Type == corev1.ServiceTypeLoadBalancer {
		if spec.ExternalTrafficPolicy == "" {
			spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
		}
		if spec.Type == corev1.ServiceTypeLoadBalancer && spec.AllocateLoadBalancerNodePorts == nil {
			spec.AllocateLoadBalancerNodePorts = ptr.To(true)
		}
	}
}
