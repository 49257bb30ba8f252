// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// AddedEphemeral are the ephemeral containers that pod has and old has not, or has otherwise.
func AddedEphemeral(pod, old *corev1.Pod) (added []corev1.EphemeralContainer) {
	for _, c := range pod.Spec.EphemeralContainers {
		same := slices.ContainsFunc(old.Spec.EphemeralContainers, func(o corev1.EphemeralContainer) bool {
			return o.Name == c.Name && equality.Semantic.DeepEqual(o, c)
		})
		if !same {
			added = append(added, c)
		}
	}
	return added
}
