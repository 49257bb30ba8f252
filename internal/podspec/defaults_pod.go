// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// DefaultPodResources completes the resources of the pod as a whole, where it has any (KEP-2837). It is not part of
// [SetDefaults]: it is for a pod as it is stored, when admission has completed its containers.
//
// Limits of huge pages are those of the containers; requests are what the containers ask for, else the pod's limit; a
// limit that is still missing is that of the containers, if every one of them has one, but not below the request.
func DefaultPodResources(pod *corev1.Pod) {
	r := pod.Spec.Resources
	if r == nil || len(r.Requests)+len(r.Limits) == 0 {
		return
	}
	limits := combine(pod, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Limits })
	for name, q := range limits {
		if _, asked := r.Requests[name]; isHugePages(name) && !asked {
			orSet(&r.Limits, name, q)
		}
	}
	for name, q := range combine(pod, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests }) {
		if isPodLevelResource(name) && !isHugePages(name) {
			orSet(&r.Requests, name, q)
		}
	}
	for name, q := range r.Limits {
		if isPodLevelResource(name) {
			orSet(&r.Requests, name, q)
		}
	}
	for name, asked := range r.Requests {
		if limit, ok := limits[name]; ok && isPodLevelResource(name) && allLimit(pod, name) {
			if asked.Cmp(limit) > 0 {
				limit = asked
			}
			orSet(&r.Limits, name, limit)
		}
	}
}

// allLimit reports whether every container limits a resource.
func allLimit(pod *corev1.Pod, name corev1.ResourceName) bool {
	return !slices.ContainsFunc(slices.Collect(Containers(&pod.Spec)), func(ref ContainerRef) bool {
		_, ok := ref.Container.Resources.Limits[name]
		return !ok
	})
}

func orSet(list *corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) {
	if _, ok := (*list)[name]; ok {
		return
	}
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = q.DeepCopy()
}
