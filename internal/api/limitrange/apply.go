// SPDX-License-Identifier: Apache-2.0

package limitrange

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Annotation records which requests and limits of a pod come from a LimitRange.
const Annotation = "kubernetes.io/limit-ranger"

// Apply gives the containers of a new pod the default requests and limits they do not set themselves. Where several
// ranges have a default for the same resource, the first one counts.
func Apply(pod *corev1.Pod, ranges []corev1.LimitRange) {
	var set []string
	for item := range items(ranges) {
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		for ref := range podspec.Containers(&pod.Spec) {
			if ref.Kind == podspec.Ephemeral {
				continue
			}
			r := &ref.Container.Resources
			for _, part := range []struct {
				word string
				list *corev1.ResourceList
				from corev1.ResourceList
			}{{"request", &r.Requests, item.DefaultRequest}, {"limit", &r.Limits, item.Default}} {
				if names := fill(part.list, part.from); len(names) > 0 {
					set = append(set, strings.Join(names, ", ")+" "+part.word+" for "+who(ref))
				}
			}
		}
	}
	if len(set) == 0 {
		return
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[Annotation] = "LimitRanger plugin set: " + strings.Join(set, "; ")
}

// fill adds to a list what it lacks and returns the names, sorted.
func fill(list *corev1.ResourceList, from corev1.ResourceList) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if _, ok := (*list)[name]; ok {
			continue
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		q := from[name]
		(*list)[name] = q.DeepCopy()
		names = append(names, string(name))
	}
	return names
}

func who(ref podspec.ContainerRef) string {
	if ref.Kind == podspec.Main {
		return "container " + ref.Container.Name
	}
	return "init container " + ref.Container.Name
}
