// SPDX-License-Identifier: Apache-2.0

package podspec

import corev1 "k8s.io/api/core/v1"

// Condition is the condition of that type in a pod's status, or nil. It is not a copy.
func Condition(s *corev1.PodStatus, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}

// IsTrue reports whether a pod's status has the condition of that type, and it is True.
func IsTrue(s *corev1.PodStatus, t corev1.PodConditionType) bool {
	c := Condition(s, t)
	return c != nil && c.Status == corev1.ConditionTrue
}
