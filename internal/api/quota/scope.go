// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Matches says whether an object is in all scopes of a quota. Scopes are about pods: nothing else is in one.
func Matches(q *corev1.ResourceQuota, i Item) bool {
	var all []corev1.ScopedResourceSelectorRequirement
	for _, scope := range q.Spec.Scopes {
		all = append(all, corev1.ScopedResourceSelectorRequirement{ScopeName: scope,
			Operator: corev1.ScopeSelectorOpExists})
	}
	if q.Spec.ScopeSelector != nil {
		all = append(all, q.Spec.ScopeSelector.MatchExpressions...)
	}
	if len(all) == 0 {
		return true
	}
	pod, ok := i.Object.(*corev1.Pod)
	return ok &&
		!slices.ContainsFunc(all, func(r corev1.ScopedResourceSelectorRequirement) bool { return !inScope(pod, r) })
}

func inScope(pod *corev1.Pod, r corev1.ScopedResourceSelectorRequirement) bool {
	switch r.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return pod.Spec.ActiveDeadlineSeconds != nil
	case corev1.ResourceQuotaScopeNotTerminating:
		return pod.Spec.ActiveDeadlineSeconds == nil
	case corev1.ResourceQuotaScopeBestEffort:
		return podspec.QOSClass(pod) == corev1.PodQOSBestEffort
	case corev1.ResourceQuotaScopeNotBestEffort:
		return podspec.QOSClass(pod) != corev1.PodQOSBestEffort
	case corev1.ResourceQuotaScopePriorityClass:
		return ofPriority(pod.Spec.PriorityClassName, r)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return slices.ContainsFunc(affinityTerms(pod.Spec.Affinity), func(t corev1.PodAffinityTerm) bool {
			return len(t.Namespaces) > 0 || t.NamespaceSelector != nil
		})
	}
	return false // a scope of volume claims
}

func ofPriority(class string, r corev1.ScopedResourceSelectorRequirement) bool {
	switch r.Operator {
	case corev1.ScopeSelectorOpIn:
		return slices.Contains(r.Values, class)
	case corev1.ScopeSelectorOpNotIn:
		return !slices.Contains(r.Values, class)
	case corev1.ScopeSelectorOpExists:
		return class != ""
	default:
		return class == ""
	}
}

func affinityTerms(a *corev1.Affinity) (all []corev1.PodAffinityTerm) {
	if a == nil {
		return nil
	}
	var preferred []corev1.WeightedPodAffinityTerm
	if p := a.PodAffinity; p != nil {
		all = append(all, p.RequiredDuringSchedulingIgnoredDuringExecution...)
		preferred = append(preferred, p.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	if p := a.PodAntiAffinity; p != nil {
		all = append(all, p.RequiredDuringSchedulingIgnoredDuringExecution...)
		preferred = append(preferred, p.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	for _, w := range preferred {
		all = append(all, w.PodAffinityTerm)
	}
	return all
}
