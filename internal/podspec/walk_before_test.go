// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Sidecars live on beside the containers after them: what they have is not passed on.
func TestEndedBefore(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "a"},
		{Name: "side", RestartPolicy: &always}, {Name: "b"}}, Containers: []corev1.Container{{Name: "m"}}}}
	for container, want := range map[string][]string{"a": nil, "side": {"a"}, "b": {"a"}, "m": {"a", "b"}} {
		if got := EndedBefore(&pod.Spec, container); !slices.Equal(got, want) {
			t.Errorf("before %s: %v, want %v", container, got, want)
		}
	}
}
