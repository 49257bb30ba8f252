// SPDX-License-Identifier: Apache-2.0

package static

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// IsMirror reports whether a pod of the API server is the picture of a static pod, and runs nothing itself.
func IsMirror(pod *corev1.Pod) bool {
	_, yes := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return yes
}

// MirrorOf is the mirror pod of a static pod, as it is to be created.
func MirrorOf(pod *corev1.Pod, node metav1.Object) *corev1.Pod {
	m := &corev1.Pod{Spec: *pod.Spec.DeepCopy(), ObjectMeta: metav1.ObjectMeta{Name: pod.Name,
		Namespace: pod.Namespace, Labels: maps.Clone(pod.Labels), Annotations: maps.Clone(pod.Annotations)}}
	m.Annotations[corev1.MirrorPodAnnotationKey] = pod.Annotations[HashAnnotation]
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.GetName(),
		UID: node.GetUID(), Controller: new(true)}}
	m.Spec.Priority = nil // the API server computes it of the class, and takes no other
	return m
}

// Step is what is to be done about a mirror pod.
type Step int

// Steps.
const (
	Nothing Step = iota
	Create
	Delete
	Publish // the static pod's status
)

// Mirror decides the next step. Pod is the static pod, or nil; have is the API server's pod of that name, or nil; sent
// says whether the API server has been given the status that pod has.
func Mirror(pod, have *corev1.Pod, sent bool) Step {
	switch {
	case have == nil && pod != nil:
		return Create
	case have == nil, !IsMirror(have): // a pod of somebody else's, which stands in the way for as long as it is there
		return Nothing
	case pod == nil, have.DeletionTimestamp != nil,
		have.Annotations[corev1.MirrorPodAnnotationKey] != pod.Annotations[HashAnnotation]:
		return Delete
	case !sent:
		return Publish
	}
	return Nothing
}

// MirrorStatus is what a mirror pod shows of its static pod's status: nobody can change the pod in the API server, so
// there is no generation that was observed. Conditions that others have written stay.
func MirrorStatus(s *corev1.PodStatus, have *corev1.PodStatus) *corev1.PodStatus {
	out := s.DeepCopy()
	out.ObservedGeneration = 0
	known := map[corev1.PodConditionType]bool{}
	for i := range out.Conditions {
		out.Conditions[i].ObservedGeneration = 0
		known[out.Conditions[i].Type] = true
	}
	for _, c := range have.Conditions {
		if !known[c.Type] {
			out.Conditions = append(out.Conditions, c)
		}
	}
	return out
}

// Translate maps the UID that the API server knows a static pod by, which is its mirror pod's, to its own.
func Translate(mirror *corev1.Pod) types.UID {
	return types.UID(mirror.Annotations[corev1.MirrorPodAnnotationKey])
}
