// SPDX-License-Identifier: Apache-2.0

package node

import (
	"github.com/wherryproject/wherry/internal/node/metrics"
	"github.com/wherryproject/wherry/internal/node/plan"
)

// present is what there is on the node, for the metrics.
func (a *Agent) present() metrics.Now {
	now := metrics.Now{Containers: map[string]int{}}
	for _, v := range (host{a}).views() {
		for i := range v.Seen.Sandboxes {
			if v.Seen.Sandboxes[i].Ready {
				now.Pods++
				break
			}
		}
		for i := range v.Seen.Containers {
			now.Containers[stateOf(&v.Seen.Containers[i])]++
		}
	}
	return now
}

// stateOf is a container's state in the runtime's words.
func stateOf(c *plan.Container) string {
	switch {
	case c.Lost:
		return "unknown"
	case c.Running():
		return "running"
	case c.Exited():
		return "exited"
	}
	return "created"
}
