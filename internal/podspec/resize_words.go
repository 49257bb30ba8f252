// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
)

// ResizeWords is what events say of a resize: what the pod's containers ask for, of which generation, and what is
// wrong with it, if anything, as JSON.
func ResizeWords(pod *corev1.Pod, fault string) string {
	type container struct {
		Name      string                      `json:"name"`
		Resources corev1.ResourceRequirements `json:"resources"`
	}
	var all struct {
		InitContainers []container `json:"initContainers,omitempty"`
		Containers     []container `json:"containers,omitempty"`
		Generation     int64       `json:"generation"`
		Error          string      `json:"error,omitempty"`
	}
	all.Generation, all.Error = pod.Generation, fault
	for ref := range OwnContainers(&pod.Spec) {
		list := &all.InitContainers
		if ref.Kind == Main {
			list = &all.Containers
		}
		*list = append(*list, container{ref.Container.Name, ref.Container.Resources})
	}
	text, err := json.Marshal(all)
	if err != nil {
		return fault
	}
	return string(text)
}
