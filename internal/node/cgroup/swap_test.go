// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TestSwap proves PL-30: with LimitedSwap containers of burstable pods may swap in proportion to what they request; with
// NoSwap nobody may, and where the kernel cannot tell swap apart, the limit of memory is that of both.
func TestSwap(t *testing.T) {
	limited := Node{V2: true, MemoryCapacity: 1000 << 20, Swap: Swap{Controlled: true, Limited: true, Capacity: 500 << 20}}
	none, blind, v1 := limited, limited, limited
	none.Swap.Limited, blind.Swap.Controlled, v1.V2 = false, false, false
	critical := pod("u", container("a", "memory=100Mi", "memory=200Mi"))
	critical.Spec.Priority = ptr.To[int32](2000000000)
	for _, c := range []struct {
		name  string
		pod   *corev1.Pod
		node  Node
		max   string
		whole int64 // of memory and swap
	}{
		{"a tenth", pod("u", container("a", "memory=100Mi", "memory=200Mi")), limited, "52428800", 0},
		{"without a limit", pod("u", container("a", "memory=100Mi", "")), limited, "52428800", 0},
		{"guaranteed", pod("u", container("a", "cpu=1 memory=100Mi", "cpu=1 memory=100Mi")), limited, "0", 100 << 20},
		{"best effort", pod("u", container("a", "", "")), limited, "0", 0},
		{"burstable by CPU", pod("u", container("a", "cpu=1", "")), limited, "0", 0},
		{"limit is the request", pod("u", container("a", "memory=100Mi", "memory=100Mi")), limited, "0", 100 << 20},
		{"more than the node", pod("u", container("a", "memory=2000Mi", "")), limited, "0", 0},
		{"critical", critical, limited, "0", 200 << 20},
		{"no swap", pod("u", container("a", "memory=100Mi", "memory=200Mi")), none, "0", 200 << 20},
		{"no controller", pod("u", container("a", "memory=100Mi", "memory=200Mi")), blind, "", 200 << 20},
		{"v1", pod("u", container("a", "memory=100Mi", "memory=200Mi")), v1, "", 0},
	} {
		r := ContainerResources(c.pod, &c.pod.Spec.Containers[0], c.node)
		if r.Unified["memory.swap.max"] != c.max || r.MemorySwapLimitInBytes != c.whole {
			t.Errorf("%s: swap.max %q, memory and swap %d", c.name, r.Unified["memory.swap.max"], r.MemorySwapLimitInBytes)
		}
	}
}
