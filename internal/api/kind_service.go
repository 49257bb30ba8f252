// SPDX-License-Identifier: Apache-2.0

package api

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/validation"
)

func serviceRules() registry.Rules {
	return registry.Typed[*corev1.Service]{
		PrepareCreate: func(s *corev1.Service) { s.Status = corev1.ServiceStatus{} },
		Validate:      validation.ValidateService,
		PrepareUpdate: func(s, old *corev1.Service) {
			s.Status = old.Status
			keepServiceAddress(s, old)
		},
		ValidateUpdate: validation.ValidateServiceUpdate,
		Warn:           serviceWarnings,
		CreateOnUpdate: true,
		Reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}.Rules()
}

func serviceStatusRules() registry.Rules {
	return registry.Typed[*corev1.Service]{
		PrepareUpdate: func(s, old *corev1.Service) { s.Spec = old.Spec },
		Reset:         fieldpath.NewSet(fieldpath.MakePathOrDie("spec")),
	}.Rules()
}

// hasAddress says whether a service is of a type that lives behind an address of the service range.
func hasAddress(s *corev1.Service) bool { return s.Spec.Type != corev1.ServiceTypeExternalName }

// keepServiceAddress fills in what the server allocated and the client left out, as a PUT of a hand-written manifest does.
func keepServiceAddress(s, old *corev1.Service) {
	if !hasAddress(s) {
		if hasAddress(old) && s.Spec.ClusterIP == old.Spec.ClusterIP {
			s.Spec.ClusterIP, s.Spec.ClusterIPs, s.Spec.IPFamilies, s.Spec.IPFamilyPolicy = "", nil, nil, nil
		}
		return
	}
	if !hasAddress(old) {
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

func serviceFields(obj runtime.Object) fields.Set {
	s := obj.(*corev1.Service)
	return fields.Set{"spec.clusterIP": s.Spec.ClusterIP, "spec.type": string(s.Spec.Type)}
}
