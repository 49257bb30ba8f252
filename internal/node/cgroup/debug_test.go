// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/allot"
)

// TestDebugResources proves EC-19 and EC-18: a debug container asks for nothing, has the node's cap, and is the first to go.
func TestDebugResources(t *testing.T) {
	bounded := pod("u", container("a", "cpu=100m memory=64Mi", "cpu=200m memory=64Mi"))
	free := pod("u", container("a", "", ""))
	debug := corev1.Container{Name: "debug"}
	for _, c := range []struct {
		name          string
		pod           *corev1.Pod
		node          Node
		quota, memory int64
		swap          int64
	}{
		{"EC-18 without a cap the pod's cgroup bounds it", bounded, Node{}, 0, 0, 0},
		{"EC-19 with one it has less", free, Node{Debug: Cap{MilliCPU: 500, Memory: 128 << 20}}, 50000, 128 << 20, 0},
		{"EC-19 no more CPU than its pod, which cgroup v1 would refuse", bounded, Node{Debug: Cap{MilliCPU: 500}}, 20000, 0, 0},
		{"EC-19 less CPU than its pod", bounded, Node{Debug: Cap{MilliCPU: 50}}, 5000, 0, 0},
		{"EC-19 cgroup v2 counts swap apart", free, Node{V2: true, Debug: Cap{Memory: 128 << 20}}, 0, 128 << 20, 128 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.node.MemoryCapacity = 1 << 30
			r := DebugResources(c.pod, &debug, c.node)
			if r.CpuQuota != c.quota || r.MemoryLimitInBytes != c.memory || r.MemorySwapLimitInBytes != c.swap || r.CpuShares != allot.MinShares {
				t.Errorf("%v", r)
			}
			if r.OomScoreAdj != oomBestEffort {
				t.Errorf("oom_score_adj is %d", r.OomScoreAdj)
			}
		})
	}
}
