// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Tolerates reports whether a pod tolerates a taint.
func Tolerates(pod *corev1.Pod, taint corev1.Taint) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return TolerationOf(t, taint) })
}

// TolerationOf reports whether a toleration is one of a taint: the same key (or any), the same value (or any), the same
// effect (or any).
func TolerationOf(t corev1.Toleration, taint corev1.Taint) bool {
	switch {
	case t.Effect != "" && t.Effect != taint.Effect, t.Key != "" && t.Key != taint.Key:
		return false
	case t.Operator == corev1.TolerationOpExists:
		return true
	}
	return t.Key != "" && (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Value == taint.Value
}
