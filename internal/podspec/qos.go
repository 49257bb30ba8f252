// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// QOSClass derives the quality of service class from the spec alone: Guaranteed when every main, init and
// sidecar container (SC-15) has CPU and memory limits and equal requests, BestEffort when none asks for
// anything, else Burstable. Pod-level resources, where given, decide instead of the containers'.
// Ephemeral containers play no part (EC-12).
func QOSClass(pod *corev1.Pod) corev1.PodQOSClass {
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	bounded := true // every container limits both
	count := func(r *corev1.ResourceRequirements) {
		addCompute(requests, r.Requests)
		if addCompute(limits, r.Limits) < 2 {
			bounded = false
		}
	}
	if r := pod.Spec.Resources; r != nil && len(r.Requests)+len(r.Limits) > 0 {
		count(r)
	} else {
		for ref := range Containers(&pod.Spec) {
			if ref.Kind != Ephemeral {
				count(&ref.Container.Resources)
			}
		}
	}
	switch {
	case len(requests) == 0 && len(limits) == 0:
		return corev1.PodQOSBestEffort
	case bounded && sameQuantities(requests, limits):
		return corev1.PodQOSGuaranteed
	default:
		return corev1.PodQOSBurstable
	}
}

// addCompute adds the non-zero CPU and memory of list to sum and returns how many of the two there were.
func addCompute(sum, list corev1.ResourceList) (n int) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		q, ok := list[name]
		if !ok || q.Sign() <= 0 {
			continue
		}
		n++
		addQuantity(sum, name, q)
	}
	return n
}

func sameQuantities(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, q := range a {
		other, ok := b[name]
		if !ok || q.Cmp(other) != 0 {
			return false
		}
	}
	return true
}

// addQuantity adds without touching memory that other lists may share.
func addQuantity(sum corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) {
	total := q.DeepCopy()
	if old, ok := sum[name]; ok {
		total.Add(old)
	}
	sum[name] = total
}
