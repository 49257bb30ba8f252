// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/node/allot"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Node is what the resources of a container depend on besides the pod.
type Node struct {
	MemoryCapacity int64 // bytes
	V2             bool  // cgroup v2
	HugePageSizes  []string
	Swap           Swap
	Debug          Cap // of each debug container
}

// Swap is how this node swaps pods' memory out (PL-30).
type Swap struct {
	Controlled bool  // the kernel limits a cgroup's swap by itself; on v2 only
	Limited    bool  // burstable containers may swap in proportion to the memory they request; else nobody
	Capacity   int64 // bytes
}

// swap is how many bytes of a container's memory may be swapped out, beside its limit: with limited swap those of
// burstable pods share the machine's swap by the memory they request. Critical ones swap nothing, nor do containers
// whose limit is what they request.
func swap(pod *corev1.Pod, c *corev1.Container, node Node) int64 {
	request, limit := c.Resources.Requests.Memory(), c.Resources.Limits.Memory()
	switch {
	case !node.Swap.Limited || !node.Swap.Controlled || node.MemoryCapacity <= 0, podspec.Critical(pod),
		podspec.QOSClass(pod) != corev1.PodQOSBurstable, request.IsZero() && limit.IsZero(), request.Cmp(*limit) == 0,
		request.Value() > node.MemoryCapacity:
		return 0
	}
	return int64(float64(request.Value()) / float64(node.MemoryCapacity) * float64(node.Swap.Capacity))
}

// Cap is the most that one debug container may use, beside what its pod may (EC-19). Zero is no limit.
type Cap struct {
	MilliCPU int64
	Memory   int64 // bytes
	PIDs     int64 // processes and threads
}

// DebugResources decides what the runtime is asked to give a debug container, or the container of an image exec:
// nothing is requested for it, what it uses is its pod's (EC-18), and in its own cgroup below the pod's it has the
// node's cap (EC-19). When memory runs out it is killed before the containers it was made to look at.
func DebugResources(pod *corev1.Pod, c *corev1.Container, node Node) *runtimeapi.LinuxContainerResources {
	r := ContainerResources(pod, c, node)
	r.OomScoreAdj = oomBestEffort
	if node.Debug.MilliCPU > 0 {
		r.CpuQuota = allot.Quota(node.Debug.MilliCPU)
		// cgroup v1 refuses a quota that is larger than the parent's.
		if whole := ResourcesOf(pod, Limits{}).CPUQuota; whole > 0 {
			r.CpuQuota = min(r.CpuQuota, whole)
		}
	}
	if node.Debug.Memory > 0 {
		r.MemoryLimitInBytes = node.Debug.Memory
		if node.V2 {
			r.MemorySwapLimitInBytes = r.MemoryLimitInBytes
		}
	}
	if node.Debug.PIDs > 0 && node.V2 { // the CRI has no word for it; on v1 it is the driver's (LimitPIDs)
		r.Unified["pids.max"] = strconv.FormatInt(node.Debug.PIDs, 10)
	}
	return r
}

// ContainerResources decides what the runtime is asked to give a container: weight, quota and limits by its own
// requests and limits, and how readily the kernel kills it when memory runs out.
func ContainerResources(pod *corev1.Pod, c *corev1.Container, node Node) *runtimeapi.LinuxContainerResources {
	give := allot.Container(pod, c)
	r := &runtimeapi.LinuxContainerResources{
		CpuShares:          give.Shares,
		CpuPeriod:          allot.Period,
		CpuQuota:           give.Quota,
		MemoryLimitInBytes: give.Memory,
		OomScoreAdj:        OOMScoreAdj(pod, c, node.MemoryCapacity),
	}
	if node.V2 {
		// The kernel kills all of a container's processes together; half a container is of no use.
		r.Unified = map[string]string{"memory.oom.group": "1"}
		may := swap(pod, c, node)
		if node.Swap.Controlled {
			r.Unified["memory.swap.max"] = strconv.FormatInt(may, 10)
		}
		if may == 0 { // the limit of memory and swap together is the limit of memory
			r.MemorySwapLimitInBytes = r.MemoryLimitInBytes
		}
	}
	for size, bytes := range hugePages(pageLimits(pod, c), node.HugePageSizes) {
		r.HugepageLimits = append(r.HugepageLimits, &runtimeapi.HugepageLimit{PageSize: size, Limit: uint64(bytes)})
	}
	slices.SortFunc(r.HugepageLimits, func(a, b *runtimeapi.HugepageLimit) int {
		if a.PageSize < b.PageSize {
			return -1
		}
		return 1
	})
	return r
}

// pageLimits are a container's limits of huge pages: its own, or of sizes that it says nothing of the pod's.
func pageLimits(pod *corev1.Pod, c *corev1.Container) corev1.ResourceList {
	if pod.Spec.Resources == nil {
		return c.Resources.Limits
	}
	all := corev1.ResourceList{}
	for name, q := range pod.Spec.Resources.Limits {
		if strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			all[name] = q
		}
	}
	maps.Copy(all, c.Resources.Limits)
	return all
}

// oom_score_adj values of Kubernetes. The daemons of the node have -999.
const (
	oomGuaranteed = -997
	oomBestEffort = 1000
)

const nodeCritical = "system-node-critical"

// OOMScoreAdj decides the oom_score_adj of a container: best-effort pods go first, guaranteed and node-critical ones
// last, and of burstable ones those that use more than they asked for before those that asked for much. A sidecar's is
// no higher than the lowest of the main containers' (SC-13), so that it does not die before what it serves.
func OOMScoreAdj(pod *corev1.Pod, c *corev1.Container, capacity int64) int64 {
	if pod.Spec.PriorityClassName == nodeCritical {
		return oomGuaranteed
	}
	switch podspec.QOSClass(pod) {
	case corev1.PodQOSGuaranteed:
		return oomGuaranteed
	case corev1.PodQOSBestEffort:
		return oomBestEffort
	}
	spare := sparePerContainer(pod)
	adj := burstableAdj(c, spare, capacity)
	if ref, ok := podspec.FindContainer(&pod.Spec, c.Name); ok && ref.Kind == podspec.Sidecar {
		for i := range pod.Spec.Containers {
			adj = min(adj, burstableAdj(&pod.Spec.Containers[i], spare, capacity))
		}
	}
	return adj
}

func burstableAdj(c *corev1.Container, spare, capacity int64) int64 {
	adj := int64(oomBestEffort)
	if capacity > 0 {
		request := min(c.Resources.Requests.Memory().Value()+spare, capacity)
		adj -= int64(float64(request) / float64(capacity) * 1000)
	}
	// Above all guaranteed pods (a guaranteed pod with all of the memory has a score of 3), below best-effort ones.
	return min(max(adj, 1000+oomGuaranteed), oomBestEffort-1)
}

// sparePerContainer shares out what the pod as a whole requests beyond the sum of its containers (KEP-2837).
func sparePerContainer(pod *corev1.Pod) int64 {
	if pod.Spec.Resources == nil {
		return 0
	}
	whole, ok := pod.Spec.Resources.Requests[corev1.ResourceMemory]
	if !ok {
		return 0
	}
	var sum resource.Quantity
	var n int64
	for ref := range podspec.Containers(&pod.Spec) {
		if ref.Kind == podspec.Main || ref.Kind == podspec.Sidecar {
			sum.Add(*ref.Container.Resources.Requests.Memory())
			n++
		}
	}
	if whole.Cmp(sum) <= 0 || n == 0 {
		return 0
	}
	return (whole.Value() - sum.Value()) / n
}
