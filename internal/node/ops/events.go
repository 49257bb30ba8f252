// SPDX-License-Identifier: Apache-2.0

package ops

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/plan"
)

// Announce is part of [work.Node]: it records what the planner tells.
func (r *Runner) Announce(pod *corev1.Pod, container string, e plan.Event) {
	path, kind := "", corev1.EventTypeNormal
	if container != "" {
		c, err := containerOf(pod, container)
		if err != nil {
			return // a container that only the runtime knows: there is no one to tell
		}
		path = c.path
	}
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	r.Events.Event(pod, path, kind, e.Reason, e.Message)
}
