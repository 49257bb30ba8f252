// SPDX-License-Identifier: Apache-2.0

package podstore

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/podspec"
)

// KeepOwn puts back what of a pod only this server writes: the condition Tainted and the annotations about debug
// containers. A node that publishes a status does not know better.
func KeepOwn(pod, old *corev1.Pod) {
	is, was := TaintOf(pod), TaintOf(old)
	switch {
	case was == nil && is != nil:
		pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions,
			func(c corev1.PodCondition) bool { return c.Type == debugrun.Tainted })
	case was != nil && is != nil:
		*is = *was
	case was != nil:
		pod.Status.Conditions = append(pod.Status.Conditions, *was)
	}
	TakeOwn(pod, old)
}

// TakeOwn copies the stored annotations about debug containers to pod: what is wanted of them, and who added them.
func TakeOwn(pod, from *corev1.Pod) {
	for _, key := range OwnAnnotations() {
		podspec.TakeAnnotation(pod, from, key)
	}
}

// OwnAnnotations are those of pods that only this server writes.
func OwnAnnotations() []string { return []string{podspec.DebugAnnotation, podspec.AddedAnnotation} }

// DropOwn removes annotations about debug containers from a new pod, which has none (the copy of a debugged pod may
// have the annotations). Who added the containers is history that a copy does not have, and not worth a warning.
func DropOwn(pod, old *corev1.Pod) []string {
	if old != nil {
		return nil
	}
	_, asked := pod.Annotations[podspec.DebugAnnotation]
	for _, key := range OwnAnnotations() {
		delete(pod.Annotations, key)
	}
	if !asked {
		return nil
	}
	return []string{fmt.Sprintf("metadata.annotations[%s]: dropped: only the API server writes it",
		podspec.DebugAnnotation)}
}

// TaintOf is the condition that says who entered a pod last, if anybody did.
func TaintOf(pod *corev1.Pod) *corev1.PodCondition {
	return podspec.Condition(&pod.Status, debugrun.Tainted)
}
