// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// EffectiveRequests is what the scheduler counts for a Pod (SC-14):
//
//	max( max over inits i of (sidecars before i + use(i)), all sidecars + all mains ) + overhead
//
// where use is the larger of what the spec requests and what the node has allocated and gives (status) while a resize
// is under way; of one that the node cannot do (PL-14) the spec does not count. Pod-level requests, where given, stand
// in for the containers' sum, and are compared likewise (PL-23). Ephemeral containers play no part (EC-12).
func EffectiveRequests(pod *corev1.Pod) corev1.ResourceList {
	infeasible := ResizeInfeasible(&pod.Status)
	total := combine(pod, func(c *corev1.Container) corev1.ResourceList {
		use := corev1.ResourceList{}
		s := FindStatus(&pod.Status, c.Name)
		if !infeasible || s == nil || s.AllocatedResources == nil {
			raise(use, c.Resources.Requests)
		}
		if s != nil {
			raise(use, s.AllocatedResources)
			if s.Resources != nil {
				raise(use, s.Resources.Requests)
			}
		}
		return use
	})
	if r := pod.Spec.Resources; r != nil {
		whole, s := corev1.ResourceList{}, &pod.Status
		if !infeasible || s.AllocatedResources == nil {
			raise(whole, r.Requests)
		}
		for name := range r.Requests { // of others the status shows the containers' sum
			for _, list := range []corev1.ResourceList{s.AllocatedResources, statusRequests(s)} {
				if q, ok := list[name]; ok {
					raise(whole, corev1.ResourceList{name: q})
				}
			}
		}
		override(total, whole)
	}
	add(total, pod.Spec.Overhead)
	return total
}

func statusRequests(s *corev1.PodStatus) corev1.ResourceList {
	if s.Resources == nil {
		return nil
	}
	return s.Resources.Requests
}

// ResizeInfeasible reports whether the node has reported that it will never give the pod what its spec asks for.
func ResizeInfeasible(s *corev1.PodStatus) bool {
	for i := range s.Conditions {
		if c := &s.Conditions[i]; c.Type == corev1.PodResizePending {
			return c.Reason == corev1.PodReasonInfeasible
		}
	}
	return false
}

// EffectiveLimits combines the limits by the formula of EffectiveRequests. A container without a limit
// counts as nothing here: see BoundedLimits for what may be enforced on the Pod as a whole. The overhead is
// added only to resources that have a limit at all; one of 0 is none.
func EffectiveLimits(pod *corev1.Pod) corev1.ResourceList {
	total := combine(pod, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Limits })
	if r := pod.Spec.Resources; r != nil {
		override(total, r.Limits)
	}
	for name, q := range pod.Spec.Overhead {
		if limit, ok := total[name]; ok && !limit.IsZero() {
			addQuantity(total, name, q)
		}
	}
	return total
}

// BoundedLimits returns of the effective limits those that every main, init and sidecar container declares
// (or the Pod as a whole): the ones a Pod's own cgroup can carry.
func BoundedLimits(pod *corev1.Pod) corev1.ResourceList {
	limits := EffectiveLimits(pod)
	for name := range limits {
		if r := pod.Spec.Resources; r != nil {
			if _, ok := r.Limits[name]; ok {
				continue
			}
		}
		for ref := range Containers(&pod.Spec) {
			if q, ok := ref.Container.Resources.Limits[name]; ref.Kind != Ephemeral && (!ok || q.IsZero()) {
				delete(limits, name)
				break
			}
		}
	}
	return limits
}

// combine walks the containers in their order of starting, carrying the sum of the sidecars seen so far.
func combine(pod *corev1.Pod, use func(*corev1.Container) corev1.ResourceList) corev1.ResourceList {
	peak := corev1.ResourceList{} // the most an init needed, with the sidecars before it
	sum := corev1.ResourceList{}  // sidecars, then mains too
	for ref := range Containers(&pod.Spec) {
		switch ref.Kind {
		case Init:
			need := maps.Clone(sum)
			add(need, use(ref.Container))
			raise(peak, need)
		case Sidecar, Main:
			add(sum, use(ref.Container))
		case Ephemeral:
		}
	}
	raise(sum, peak)
	return sum
}

func add(sum, list corev1.ResourceList) {
	for name, q := range list {
		addQuantity(sum, name, q)
	}
}

// raise lifts every entry of list to that of least.
func raise(list, least corev1.ResourceList) {
	for name, q := range least {
		if old, ok := list[name]; !ok || old.Cmp(q) < 0 {
			list[name] = q.DeepCopy()
		}
	}
}

// override puts pod-level amounts in the place of the sums (KEP-2837); other resources stay.
func override(total, list corev1.ResourceList) {
	for name, q := range list {
		if isPodLevelResource(name) {
			total[name] = q.DeepCopy()
		}
	}
}

func isPodLevelResource(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || isHugePages(name)
}

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}
