// SPDX-License-Identifier: Apache-2.0

package schemes

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherryproject/wherry/internal/api/imagepolicy"
	"github.com/wherryproject/wherry/internal/api/validation"
	"github.com/wherryproject/wherry/internal/api/validation/admissionregistration"
	"github.com/wherryproject/wherry/internal/api/validation/flowcontrol"
	"github.com/wherryproject/wherry/internal/podspec"
)

// addDefaults registers what an absent field means. Defaults are applied to what clients send and to what is read from
// the store alike, so they must never depend on anything but the object.
func addDefaults(scheme *runtime.Scheme) {
	defaulter(scheme, podspec.SetDefaults)
	defaulter(scheme, func(t *corev1.PodTemplate) { podspec.SetDefaultsSpec(&t.Template.Spec) })
	defaulter(scheme, func(ns *corev1.Namespace) {
		validation.SetDefaultsNamespace(ns)
		if ns.Status.Phase == "" {
			ns.Status.Phase = corev1.NamespaceActive
		}
	})
	defaulter(scheme, validation.SetDefaultsNode)
	defaulter(scheme, validation.SetDefaultsService)
	defaulter(scheme, validation.SetDefaultsConfigMap)
	defaulter(scheme, validation.SetDefaultsSecret)
	defaulter(scheme, validation.SetDefaultsLimitRange)
	defaulter(scheme, func(q *corev1.ResourceQuota) {
		podspec.RoundAmounts(q.Spec.Hard)
		podspec.RoundAmounts(q.Status.Hard)
		podspec.RoundAmounts(q.Status.Used)
	})
	defaulter(scheme, validation.SetDefaultsEndpointSlice)
	defaulter(scheme, validation.SetDefaultsRoleBinding)
	defaulter(scheme, validation.SetDefaultsClusterRoleBinding)
	defaulter(scheme, admissionregistration.SetDefaultsMutatingWebhookConfiguration)
	defaulter(scheme, admissionregistration.SetDefaultsValidatingWebhookConfiguration)
	defaulter(scheme, admissionregistration.SetDefaultsValidatingAdmissionPolicy)
	defaulter(scheme, admissionregistration.SetDefaultsValidatingAdmissionPolicyBinding)
	defaulter(scheme, admissionregistration.SetDefaultsMutatingAdmissionPolicy)
	defaulter(scheme, admissionregistration.SetDefaultsMutatingAdmissionPolicyBinding)
	defaulter(scheme, flowcontrol.SetDefaultsFlowSchema)
	defaulter(scheme, flowcontrol.SetDefaultsPriorityLevelConfiguration)
	defaulter(scheme, validation.SetDefaultsPriorityClass)
	defaulter(scheme, imagepolicy.SetDefaults)
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

func defaulter[T any, P interface {
	*T
	runtime.Object
}](scheme *runtime.Scheme, set func(P)) {
	scheme.AddTypeDefaultingFunc(P(new(T)), func(obj any) { set(obj.(P)) })
}
