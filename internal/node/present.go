// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/wherryproject/wherry/internal/node/metrics"
	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/podspec"
)

// present is what there is on the node, for the metrics.
func (a *Agent) present() metrics.Now {
	now := metrics.Now{Node: a.cfg.NodeName, Containers: map[string]int{}, Claims: a.claims(host{a}.Pods())}
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

// claimsPatience bounds how long a scrape of /metrics waits for CSI drivers, all of them together: it has other figures
// to give, and Prometheus waits for ten seconds by default.
const claimsPatience = 3 * time.Second

// claims is how full the claims of pods are, in the pods' order: the figures that /stats/summary has of them.
func (a *Agent) claims(pods []*corev1.Pod) []statsapi.VolumeStats {
	ctx, cancel := context.WithTimeout(context.Background(), claimsPatience)
	defer cancel()
	return ofClaims(pods, func(p *corev1.Pod) []statsapi.VolumeStats { return a.claimStats(ctx, p) })
}

// ofClaims asks about the pods that have claims, at the same time, so that one whose driver hangs keeps only its own
// figures from being seen.
func ofClaims(pods []*corev1.Pod, ask func(*corev1.Pod) []statsapi.VolumeStats) []statsapi.VolumeStats {
	found := make([][]statsapi.VolumeStats, len(pods))
	var asking sync.WaitGroup
	for i, p := range pods {
		if len(podspec.ClaimNames(p)) > 0 {
			asking.Go(func() { found[i] = ask(p) })
		}
	}
	asking.Wait()
	return slices.Concat(found...)
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
