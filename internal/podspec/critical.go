// SPDX-License-Identifier: Apache-2.0

package podspec

import corev1 "k8s.io/api/core/v1"

// criticalPriority is the least priority of the system-critical classes.
const criticalPriority = 2_000_000_000

// Critical reports whether a pod has a system-critical priority. Nothing that a pod says of itself in annotations
// counts: every pod here comes from the API server, where its owner could write that it is a static one.
func Critical(pod *corev1.Pod) bool { return Priority(pod) >= criticalPriority }

// Priority is a pod's priority; 0 for one that has none.
func Priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}
