// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Admit says why a node under pressure does not begin a pod, or "". Under memory pressure only it still takes pods that
// have requested something, and those that tolerate it; critical pods always.
func Admit(pod *corev1.Pod, s State) string {
	if len(s.Pressed) == 0 || Critical(pod) {
		return ""
	}
	if s.Under(corev1.NodeMemoryPressure) && len(s.Pressed) == 1 {
		if podspec.QOSClass(pod) != corev1.PodQOSBestEffort || tolerates(pod, corev1.TaintNodeMemoryPressure) {
			return ""
		}
	}
	var names []string
	for c := range s.Pressed {
		names = append(names, string(c))
	}
	slices.Sort(names)
	return fmt.Sprintf("The node had condition: [%s]. ", strings.Join(names, " "))
}

// tolerates reports whether a pod says of itself that it may run beside a NoSchedule taint.
func tolerates(pod *corev1.Pod, key string) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return (t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule) &&
			(t.Key == key && (t.Operator == corev1.TolerationOpExists || t.Value == "") ||
				t.Key == "" && t.Operator == corev1.TolerationOpExists)
	})
}
