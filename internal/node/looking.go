// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/plan"
)

// Observe is part of [work.Node]: what the runtime and the node's folders show of a pod, and which of its containers
// somebody looks at by image exec.
func (a *Agent) Observe(ctx context.Context, pod *corev1.Pod) (plan.Seen, error) {
	seen, err := a.Runner.Observe(ctx, pod)
	for i := range seen.Containers {
		seen.Containers[i].Held = a.execs.Holds(seen.Containers[i].ID)
	}
	return seen, err
}

// podOf is a pod as its worker has it, or nil.
func (a *Agent) podOf(uid types.UID) *corev1.Pod {
	if a.workers == nil {
		return nil
	}
	if v, ok := a.workers.View(uid); ok {
		return v.Pod
	}
	return nil
}

// released has a pod looked at again: what was kept for somebody to look at may go.
func (a *Agent) released(uid types.UID) {
	if a.workers != nil {
		a.workers.Nudge(uid)
	}
}
