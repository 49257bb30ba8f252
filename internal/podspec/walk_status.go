// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
)

// Statuses walks the statuses of a Pod's containers in the order of [Containers]. The Kind gives the list; a status
// does not distinguish sidecars from other init containers, so it is Init for both. A status points into s.
func Statuses(s *corev1.PodStatus) iter.Seq2[Kind, *corev1.ContainerStatus] {
	return func(yield func(Kind, *corev1.ContainerStatus) bool) {
		for kind, list := range statusLists(s) {
			for i := range list {
				if !yield(kind, &list[i]) {
					return
				}
			}
		}
	}
}

// OwnStatuses walks the statuses of [OwnContainers].
func OwnStatuses(s *corev1.PodStatus) iter.Seq2[Kind, *corev1.ContainerStatus] {
	return func(yield func(Kind, *corev1.ContainerStatus) bool) {
		for kind, c := range Statuses(s) {
			if kind == Ephemeral || !yield(kind, c) {
				return
			}
		}
	}
}

// FindStatus returns the status of the container of that name, of whatever kind, or nil. It is not a copy.
func FindStatus(s *corev1.PodStatus, name string) *corev1.ContainerStatus {
	for _, c := range Statuses(s) {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func statusLists(s *corev1.PodStatus) iter.Seq2[Kind, []corev1.ContainerStatus] {
	return func(yield func(Kind, []corev1.ContainerStatus) bool) {
		_ = yield(Init, s.InitContainerStatuses) && yield(Main, s.ContainerStatuses) &&
			yield(Ephemeral, s.EphemeralContainerStatuses)
	}
}
