// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Matches reports whether an object is in all scopes of a quota. Scopes are about pods and volume claims: nothing else
// is in one.
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
	var in func(r corev1.ScopedResourceSelectorRequirement) bool
	switch obj := i.Object.(type) {
	case *corev1.Pod:
		in = func(r corev1.ScopedResourceSelectorRequirement) bool { return inScope(obj, r) }
	case *corev1.PersistentVolumeClaim:
		in = func(r corev1.ScopedResourceSelectorRequirement) bool { return claimInScope(obj, r) }
	default:
		return false
	}
	return !slices.ContainsFunc(all, func(r corev1.ScopedResourceSelectorRequirement) bool { return !in(r) })
}

// claimInScope: a claim is of the class that it asks for, the one that it has, and the one that it is being changed to
// (KEP-3751).
func claimInScope(c *corev1.PersistentVolumeClaim, r corev1.ScopedResourceSelectorRequirement) bool {
	if r.ScopeName != corev1.ResourceQuotaScopeVolumeAttributesClass {
		return false
	}
	classes := attributesClasses(c)
	if len(classes) == 0 {
		return ofClass("", r)
	}
	return slices.ContainsFunc(classes, func(class string) bool { return ofClass(class, r) })
}

// attributesClasses are the volume attributes classes that a claim refers to.
func attributesClasses(c *corev1.PersistentVolumeClaim) (all []string) {
	add := func(class *string) {
		if class != nil && *class != "" && !slices.Contains(all, *class) {
			all = append(all, *class)
		}
	}
	add(c.Spec.VolumeAttributesClassName)
	add(c.Status.CurrentVolumeAttributesClassName)
	if m := c.Status.ModifyVolumeStatus; m != nil {
		add(&m.TargetVolumeAttributesClassName)
	}
	return all
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
		return ofClass(pod.Spec.PriorityClassName, r)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return slices.ContainsFunc(affinityTerms(pod.Spec.Affinity), func(t corev1.PodAffinityTerm) bool {
			return len(t.Namespaces) > 0 || t.NamespaceSelector != nil
		})
	}
	return false // a scope of volume claims
}

func ofClass(class string, r corev1.ScopedResourceSelectorRequirement) bool {
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
