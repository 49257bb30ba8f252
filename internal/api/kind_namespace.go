// SPDX-License-Identifier: Apache-2.0

package api

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func namespaceRules() rules {
	return typed[*corev1.Namespace]{
		prepareCreate: func(ns *corev1.Namespace) {
			ns.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
			for _, f := range ns.Spec.Finalizers {
				if f == corev1.FinalizerKubernetes {
					return
				}
			}
			ns.Spec.Finalizers = append(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
		},
		validate: func(ns *corev1.Namespace) field.ErrorList {
			return validateMeta(ns, false, validation.ValidateNamespaceName)
		},
		prepareUpdate: func(ns, old *corev1.Namespace) {
			ns.Spec.Finalizers = old.Spec.Finalizers
			ns.Status = old.Status
		},
		reset: fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}.rules()
}

func namespaceStatusRules() rules {
	return typed[*corev1.Namespace]{
		prepareUpdate: func(ns, old *corev1.Namespace) { ns.Spec = old.Spec },
		validateUpdate: func(ns, _ *corev1.Namespace) field.ErrorList {
			path := field.NewPath("status", "phase")
			if ns.DeletionTimestamp.IsZero() && ns.Status.Phase != corev1.NamespaceActive {
				return field.ErrorList{field.Invalid(path, ns.Status.Phase, "may only be 'Active' if `deletionTimestamp` is empty")}
			}
			if !ns.DeletionTimestamp.IsZero() && ns.Status.Phase != corev1.NamespaceTerminating {
				return field.ErrorList{field.Invalid(path, ns.Status.Phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")}
			}
			return nil
		},
		reset: fieldpath.NewSet(fieldpath.MakePathOrDie("spec")),
	}.rules()
}

// namespaceFinalizeRules are those of the finalize subresource: only spec.finalizers changes.
func namespaceFinalizeRules() rules {
	return typed[*corev1.Namespace]{
		prepareUpdate: func(ns, old *corev1.Namespace) { ns.Status = old.Status },
		validateUpdate: func(ns, _ *corev1.Namespace) (errs field.ErrorList) {
			for i, f := range ns.Spec.Finalizers {
				for _, msg := range validation.ValidateFinalizerName(string(f), field.NewPath("spec", "finalizers").Index(i)) {
					if f != corev1.FinalizerKubernetes {
						errs = append(errs, msg)
					}
				}
			}
			return errs
		},
		reset: fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}.rules()
}

func namespaceFields(obj runtime.Object) fields.Set {
	return fields.Set{"status.phase": string(obj.(*corev1.Namespace).Status.Phase)}
}
