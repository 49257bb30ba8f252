// SPDX-License-Identifier: Apache-2.0

package api

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/wherryproject/wherry/internal/api/validation"
)

func namespaceRules() rules {
	return typed[*corev1.Namespace]{
		prepareCreate: validation.PrepareNamespace,
		validate:      validation.ValidateNamespace,
		prepareUpdate: func(ns, old *corev1.Namespace) {
			ns.Spec.Finalizers = old.Spec.Finalizers
			ns.Status = old.Status
		},
		validateUpdate: validation.ValidateNamespaceUpdate,
		reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}.rules()
}

func namespaceStatusRules() rules {
	return typed[*corev1.Namespace]{
		prepareUpdate:  func(ns, old *corev1.Namespace) { ns.Spec = old.Spec },
		validateUpdate: validation.ValidateNamespaceStatusUpdate,
		reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("spec")),
	}.rules()
}

// namespaceFinalizeRules are those of the finalize subresource: only spec.finalizers changes.
func namespaceFinalizeRules() rules {
	return typed[*corev1.Namespace]{
		prepareUpdate:  func(ns, old *corev1.Namespace) { ns.Status = old.Status },
		validateUpdate: validation.ValidateNamespaceFinalizeUpdate,
		reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}.rules()
}

func namespaceFields(obj runtime.Object) fields.Set {
	return fields.Set{"status.phase": string(obj.(*corev1.Namespace).Status.Phase)}
}
