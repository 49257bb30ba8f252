// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

// SetDefaultsNamespace gives the namespace the label of its name (unless a name is still to be generated) and,
// when it is new, the finalizer that lets its contents be removed first.
func SetDefaultsNamespace(n *corev1.Namespace) {
	if n.Name != "" {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[corev1.LabelMetadataName] = n.Name
	}
}

// PrepareNamespace is for creation only: phase Active and the finalizer "kubernetes".
func PrepareNamespace(n *corev1.Namespace) {
	n.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
	if !slices.Contains(n.Spec.Finalizers, corev1.FinalizerKubernetes) {
		n.Spec.Finalizers = append(n.Spec.Finalizers, corev1.FinalizerKubernetes)
	}
}

// ValidateNamespace checks name and finalizers.
func ValidateNamespace(n *corev1.Namespace) field.ErrorList {
	all := rules.ClusterMeta(&n.ObjectMeta, apivalidation.ValidateNamespaceName)
	return append(all, namespaceFinalizers(n)...)
}

func namespaceFinalizers(n *corev1.Namespace) (all rules.Errs) {
	for i, f := range n.Spec.Finalizers {
		path := field.NewPath("spec", "finalizers").Index(i)
		all = append(all, apivalidation.ValidateFinalizerName(string(f), path)...)
		all = append(all, rules.FinalizerName(path, string(f))...)
	}
	return all
}

// ValidateNamespaceUpdate is for ordinary updates: finalizers have their own subresource.
func ValidateNamespaceUpdate(now, was *corev1.Namespace) field.ErrorList {
	return rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta)
}

// ValidateNamespaceFinalizeUpdate is for namespaces/finalize.
func ValidateNamespaceFinalizeUpdate(now, was *corev1.Namespace) field.ErrorList {
	return append(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta), namespaceFinalizers(now)...)
}

// ValidateNamespaceStatusUpdate ties the phase to the deletion: Terminating if and only if it is being deleted.
func ValidateNamespaceStatusUpdate(now, was *corev1.Namespace) field.ErrorList {
	all := rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta)
	phase := field.NewPath("status", "phase")
	switch {
	case now.DeletionTimestamp.IsZero() && now.Status.Phase != corev1.NamespaceActive:
		all = append(all, field.Invalid(phase, now.Status.Phase,
			"may only be 'Active' if `deletionTimestamp` is empty"))
	case !now.DeletionTimestamp.IsZero() && now.Status.Phase != corev1.NamespaceTerminating:
		all = append(all, field.Invalid(phase, now.Status.Phase,
			"may only be 'Terminating' if `deletionTimestamp` is not empty"))
	}
	return all
}
