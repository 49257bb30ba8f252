// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/validation"
)

func namespaceRules() registry.Rules {
	return registry.Typed[*corev1.Namespace]{
		PrepareCreate: validation.PrepareNamespace,
		Validate:      validation.ValidateNamespace,
		PrepareUpdate: func(ns, old *corev1.Namespace) {
			ns.Spec.Finalizers = old.Spec.Finalizers
			ns.Status = old.Status
		},
		ValidateUpdate: validation.ValidateNamespaceUpdate,
		Reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}.Rules()
}

func namespaceStatusRules() registry.Rules {
	return registry.Typed[*corev1.Namespace]{
		PrepareUpdate:  func(ns, old *corev1.Namespace) { ns.Spec = old.Spec },
		ValidateUpdate: validation.ValidateNamespaceStatusUpdate,
		Reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("spec")),
	}.Rules()
}

// namespaceFinalizeRules are those of the finalize subresource: only spec.finalizers changes.
func namespaceFinalizeRules() registry.Rules {
	return registry.Typed[*corev1.Namespace]{
		PrepareUpdate:  func(ns, old *corev1.Namespace) { ns.Status = old.Status },
		ValidateUpdate: validation.ValidateNamespaceFinalizeUpdate,
		Reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}.Rules()
}

func namespaceFields(obj runtime.Object) fields.Set {
	return fields.Set{"status.phase": string(obj.(*corev1.Namespace).Status.Phase)}
}
