// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Resources are what a pod asks for, as a whole and by container: what a resize changes, and what a node sets aside for
// the pod. Ephemeral containers ask for nothing.
type Resources struct {
	Pod        *corev1.ResourceRequirements           `json:"pod,omitempty"`
	Containers map[string]corev1.ResourceRequirements `json:"containers"`
}

// ResourcesOf returns what a pod's spec asks for.
func ResourcesOf(pod *corev1.Pod) Resources {
	r := Resources{Pod: pod.Spec.Resources.DeepCopy(), Containers: map[string]corev1.ResourceRequirements{}}
	for ref := range OwnContainers(&pod.Spec) {
		r.Containers[ref.Container.Name] = *ref.Container.Resources.DeepCopy()
	}
	return r
}

// Of reports whether these are what the pod's spec asks for. A container that r does not know is no difference: it asks
// for what its spec says.
func (r Resources) Of(pod *corev1.Pod) bool {
	if !equality.Semantic.DeepEqual(r.Pod, pod.Spec.Resources) {
		return false
	}
	for ref := range OwnContainers(&pod.Spec) {
		if has, ok := r.Containers[ref.Container.Name]; ok &&
			!equality.Semantic.DeepEqual(has, ref.Container.Resources) {
			return false
		}
	}
	return true
}

// In returns the pod with these resources in the place of those in its spec. It is the pod itself if they are the same.
func (r Resources) In(pod *corev1.Pod) *corev1.Pod {
	if r.Of(pod) {
		return pod
	}
	out := pod.DeepCopy()
	out.Spec.Resources = r.Pod
	for ref := range OwnContainers(&out.Spec) {
		if has, ok := r.Containers[ref.Container.Name]; ok {
			ref.Container.Resources = has
		}
	}
	return out
}
