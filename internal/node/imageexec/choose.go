// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/podspec"
)

// shown is a container of the pod whose files the command is to see, and the attempt of it that is meant.
type shown struct {
	Name string
	Kind podspec.Kind
	plan.Container
}

// choose decides which attempt of each container is shown: the newest that was started, or could not be, whether it
// runs or not. Containers without one are left out, with the reason for the client (IX-10).
func choose(pod *corev1.Pod, seen plan.Seen) (show []shown, left []string) {
	for ref := range podspec.Containers(&pod.Spec) {
		name := ref.Container.Name
		var newest, created *plan.Container
		for i := range seen.Containers {
			c := &seen.Containers[i]
			switch {
			case c.Name != name:
			case c.StartedAt.IsZero() && c.FinishedAt.IsZero():
				created = c
			case newest == nil || c.Attempt > newest.Attempt:
				newest = c
			}
		}
		switch {
		case newest != nil:
			show = append(show, shown{Name: name, Kind: ref.Kind, Container: *newest})
		case created != nil:
			left = append(left, fmt.Sprintf("container %s is left out: it was created but has not started", name))
		default:
			left = append(left, fmt.Sprintf("container %s is left out: %s", name, absence(pod, name)))
		}
	}
	return show, left
}

// absence says why the runtime has nothing of a container.
func absence(pod *corev1.Pod, name string) string {
	s := podspec.FindStatus(&pod.Status, name)
	switch {
	case s == nil || s.State.Terminated == nil && s.LastTerminationState.Terminated == nil:
		if s != nil && s.State.Waiting != nil && s.State.Waiting.Reason != "" {
			return "it has not run yet (" + s.State.Waiting.Reason + ")"
		}
		return "it has not run yet"
	}
	return "its remains have been removed"
}
