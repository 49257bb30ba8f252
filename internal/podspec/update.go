// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// updatable is what Kubernetes answers people who change too much.
const updatable = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`," +
	"`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations)," +
	"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

// ValidateUpdate says what is wrong with an ordinary update of a Pod: of its spec only images, the deadline
// (set or lowered), additional tolerations, a negative grace turned into 1 and, while it is held by scheduling
// gates, the gates and a narrower choice of nodes may change. Ephemeral containers never do (EC-03).
// Faults that the stored Pod already had are not held against the new one.
func ValidateUpdate(newPod, oldPod *corev1.Pod) field.ErrorList {
	all := validateMetaUpdate(newPod, oldPod)
	spec := field.NewPath("spec")
	all = append(all, newFaults(newPod, oldPod)...)
	if n, o := len(newPod.Spec.Containers), len(oldPod.Spec.Containers); n != o {
		return append(all, field.Forbidden(spec.Child("containers"), "pod updates may not add or remove containers"))
	}
	if n, o := len(newPod.Spec.InitContainers), len(oldPod.Spec.InitContainers); n != o {
		return append(all, field.Forbidden(spec.Child("initContainers"),
			"pod updates may not add or remove containers"))
	}
	if !equality.Semantic.DeepEqual(newPod.Spec.EphemeralContainers, oldPod.Spec.EphemeralContainers) {
		all = append(all, field.Forbidden(spec.Child("ephemeralContainers"),
			"may only be changed through the subresource pods/ephemeralcontainers"))
	}
	all = append(all, deadlineUpdate(newPod.Spec.ActiveDeadlineSeconds, oldPod.Spec.ActiveDeadlineSeconds,
		spec.Child("activeDeadlineSeconds"))...)
	all = append(all, tolerationsUpdate(newPod.Spec.Tolerations, oldPod.Spec.Tolerations, spec.Child("tolerations"))...)
	all = append(all, gatesUpdate(newPod, oldPod, spec)...)

	rest := newPod.Spec.DeepCopy()
	takeUpdatable(rest, &oldPod.Spec)
	return append(all, unchanged(spec, rest, &oldPod.Spec, updatable)...)
}

func validateMetaUpdate(newPod, oldPod *corev1.Pod) field.ErrorList {
	meta := field.NewPath("metadata")
	all := apivalidation.ValidateObjectMetaUpdate(&newPod.ObjectMeta, &oldPod.ObjectMeta, meta)
	all = append(all, finalizerNames(newPod.Finalizers, meta.Child("finalizers"))...)
	all = append(all, validatePodAnnotations(newPod, meta.Child("annotations"))...)
	return append(all, fixedAnnotations(newPod.Annotations, oldPod.Annotations, meta.Child("annotations"))...)
}

// fixedAnnotations: those that say how the Pod was made neither come, change nor go.
func fixedAnnotations(now, was map[string]string, path *field.Path) (all errs) {
	both := map[string]bool{}
	for key := range now {
		both[key] = true
	}
	for key := range was {
		both[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(both)) {
		is, there := now[key]
		old, had := was[key]
		if there == had && is == old {
			continue
		}
		switch {
		case key == DebugAnnotation:
			all = append(all, field.Forbidden(path.Key(key),
				"is managed by the API server: stop a debug container with DELETE on pods/debug, "+
					"and use its name again through pods/exec"))
		case key == corev1.MirrorPodAnnotationKey, strings.HasPrefix(key,
			corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix):
			all = append(all, field.Forbidden(path.Key(key), "may not be changed after the pod was created"))
		}
	}
	return all
}

// newFaults are those of the new spec that the old one did not have.
func newFaults(newPod, oldPod *corev1.Pod) (all errs) {
	path := field.NewPath("spec")
	old := map[string]bool{}
	for _, e := range validateSpec(&oldPod.Spec, path) {
		old[e.Error()] = true
	}
	for _, e := range validateSpec(&newPod.Spec, path) {
		if !old[e.Error()] {
			all = append(all, e)
		}
	}
	return all
}

// takeUpdatable gives spec the old values of all that may change.
func takeUpdatable(spec, old *corev1.PodSpec) {
	for i := range spec.Containers {
		spec.Containers[i].Image = old.Containers[i].Image
	}
	for i := range spec.InitContainers {
		spec.InitContainers[i].Image = old.InitContainers[i].Image
	}
	spec.EphemeralContainers = old.EphemeralContainers // has its own message
	spec.ActiveDeadlineSeconds = old.ActiveDeadlineSeconds
	spec.Tolerations = old.Tolerations
	spec.SchedulingGates = old.SchedulingGates
	if g, was := spec.TerminationGracePeriodSeconds, old.TerminationGracePeriodSeconds; g != nil && was != nil &&
		*was < 0 && *g == 1 {
		spec.TerminationGracePeriodSeconds = was
	}
	if len(old.SchedulingGates) == 0 {
		return
	}
	// A gated Pod may narrow the choice of nodes; gatesUpdate looks at how.
	spec.NodeSelector = old.NodeSelector
	if spec.Affinity == nil && old.Affinity == nil {
		return
	}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	spec.Affinity.NodeAffinity = nil
	if old.Affinity != nil {
		spec.Affinity.NodeAffinity = old.Affinity.NodeAffinity
	}
	if old.Affinity == nil && *spec.Affinity == (corev1.Affinity{}) {
		spec.Affinity = nil
	}
}

// unchanged says which fields of now differ from was, if any.
func unchanged(path *field.Path, now, was *corev1.PodSpec, words string) errs {
	if equality.Semantic.DeepEqual(now, was) {
		return nil
	}
	if changed := changedFields(was, now, path.String()); len(changed) > 0 {
		words += "\nchanged: " + strings.Join(changed, ", ")
	}
	return errs{field.Forbidden(path, words)}
}

// deadlineUpdate: it may be set or lowered, since it may have begun to count.
func deadlineUpdate(now, was *int64, path *field.Path) errs {
	switch {
	case was == nil:
		return nil
	case now == nil:
		return errs{field.Invalid(path, nil, "must not update from a positive integer to nil value")}
	case *now > *was:
		return errs{field.Invalid(path, *now, "must be less than or equal to previous value")}
	}
	return nil
}

func tolerationsUpdate(now, was []corev1.Toleration, path *field.Path) errs {
	for _, old := range was {
		kept := slices.ContainsFunc(now, func(t corev1.Toleration) bool {
			t.TolerationSeconds = old.TolerationSeconds
			return t == old
		})
		if !kept {
			return errs{field.Forbidden(path, "existing toleration can not be modified except its tolerationSeconds")}
		}
	}
	return nil
}

// finalizerNames: what has no domain must be one of Kubernetes' own.
func finalizerNames(names []string, path *field.Path) (all errs) {
	for i, name := range names {
		switch name {
		case string(corev1.FinalizerKubernetes), "orphan", "foregroundDeletion":
			continue
		}
		if !strings.Contains(name, "/") {
			all = append(all, field.Invalid(path.Index(i), name,
				"name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return all
}
