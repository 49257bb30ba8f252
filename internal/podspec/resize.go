// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateResize says what is wrong with an update through pods/resize (KEP-1287): CPU and memory of mains and
// sidecars may change, not appear or vanish, and the QoS class stays.
func ValidateResize(newPod, oldPod *corev1.Pod) field.ErrorList {
	all := apivalidation.ValidateObjectMetaUpdate(&newPod.ObjectMeta, &oldPod.ObjectMeta, field.NewPath("metadata"))
	spec := field.NewPath("spec")
	if _, static := oldPod.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return append(all, field.Forbidden(spec, "static pods cannot be resized"))
	}
	if oldPod.Spec.OS != nil && oldPod.Spec.OS.Name == corev1.Windows {
		return append(all, field.Forbidden(spec, "windows pods cannot be resized"))
	}
	all = append(all, newFaults(newPod, oldPod)...)
	if QOSClass(newPod) != QOSClass(oldPod) {
		all = append(all, field.Invalid(spec, QOSClass(newPod), "Pod QOS Class may not change as a result of resizing"))
	}
	rest := newPod.Spec.DeepCopy()
	for ref := range Containers(rest) {
		was, ok := FindContainer(&oldPod.Spec, ref.Container.Name)
		if !ok || was.Kind != ref.Kind || ref.Kind == Ephemeral || ref.Kind == Init {
			continue // if anything differs here, the comparison below says so
		}
		now, path := &ref.Container.Resources, ref.Path.Child("resources")
		all = append(all, stillGiven(now.Requests, was.Container.Resources.Requests, path.Child("requests"), "resource requests cannot be removed")...)
		all = append(all, stillGiven(now.Limits, was.Container.Resources.Limits, path.Child("limits"), "resource limits cannot be removed")...)
		restore(&now.Requests, was.Container.Resources.Requests)
		restore(&now.Limits, was.Container.Resources.Limits)
	}
	if !equality.Semantic.DeepEqual(rest, &oldPod.Spec) {
		all = append(all, unchanged(spec, rest, &oldPod.Spec, "only cpu and memory resources are mutable")...)
	}
	return all
}

func isResizable(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory
}

func stillGiven(now, was corev1.ResourceList, path *field.Path, words string) (all errs) {
	for _, name := range sortedNames(was) {
		if _, ok := now[name]; !ok && isResizable(name) {
			all = append(all, field.Forbidden(path.Key(string(name)), words))
		}
	}
	return all
}

// restore puts the old CPU and memory back, so that the rest can be compared.
func restore(list *corev1.ResourceList, was corev1.ResourceList) {
	out := corev1.ResourceList{}
	for name, q := range *list {
		if !isResizable(name) {
			out[name] = q
		}
	}
	for name, q := range was {
		if isResizable(name) {
			out[name] = q
		}
	}
	*list = out
}
