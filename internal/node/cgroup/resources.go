// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/node/allot"
	"github.com/wherryproject/wherry/internal/podspec"
	"github.com/wherryproject/wherry/internal/quantities"
)

// Resources is what a pod's cgroup is given. Zero values of limits mean no limit.
type Resources struct {
	CPUShares uint64           // v1 units; v2's cpu.weight is derived from it
	CPUQuota  int64            // µs per 100 ms
	Memory    int64            // bytes
	PIDs      int64            // processes and threads
	HugePages map[string]int64 // bytes by page size as the kernel names it, e.g. "2MB"
}

// Limits of this node that pods are given whatever they ask for.
type Limits struct {
	// PodPIDs is the most processes and threads of a pod; 0 for no limit.
	PodPIDs int64
	// HugePageSizes are the sizes of huge pages the machine has, as the kernel names them; pods that do not ask for one
	// get none of it.
	HugePageSizes []string
}

// ResourcesOf decides what the cgroup of a pod is given, by its effective resources (SC-14): a weight by the CPU
// request; a quota and a memory limit only if every container of the pod has one, as otherwise those without one may
// use what the node has.
func ResourcesOf(pod *corev1.Pod, limits Limits) Resources {
	give := allot.Pod(pod)
	return Resources{CPUShares: uint64(give.Shares), CPUQuota: give.Quota, Memory: give.Memory, PIDs: limits.PodPIDs,
		HugePages: hugePages(podspec.EffectiveLimits(pod), limits.HugePageSizes)}
}

// hugePages spreads hugepages-* limits over the sizes of the machine; those not asked for are 0.
func hugePages(limits corev1.ResourceList, sizes []string) map[string]int64 {
	out := make(map[string]int64, len(sizes))
	for _, size := range sizes {
		out[size] = 0
	}
	for resourceName, q := range limits {
		asked, ok := strings.CutPrefix(string(resourceName), corev1.ResourceHugePagesPrefix)
		if !ok {
			continue
		}
		bytes, err := quantities.Parse(asked)
		if err != nil {
			continue // refused by validation
		}
		size := pageSize(bytes.Value())
		if _, known := out[size]; known { // of others the machine has none
			out[size] = q.Value()
		}
	}
	return out
}

// pageSize names a size of huge pages as the kernel does in hugetlb.<size>.*: whole KB, MB or GB.
func pageSize(bytes int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 30, "GB"}, {1 << 20, "MB"}, {1 << 10, "KB"}} {
		if bytes >= u.size && bytes%u.size == 0 {
			return resource.NewQuantity(bytes/u.size, resource.DecimalSI).String() + u.name
		}
	}
	return ""
}
