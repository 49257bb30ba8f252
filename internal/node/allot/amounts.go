// SPDX-License-Identifier: Apache-2.0

package allot

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/podspec"
)

// The CPU controller's units, as Kubernetes uses them.
const (
	MinShares = 2      // the least the kernel accepts; what a container without CPU request gets
	MaxShares = 262144 // the most
	Period    = 100000 // of the CPU quota, in µs: 100 ms
	minQuota  = 1000   // in µs: the kernel refuses less
)

// Amounts is what a cgroup gives. The zero value of a limit is no limit.
type Amounts struct {
	Shares int64 // cgroup v1's cpu.shares; v2's cpu.weight is derived from it
	Quota  int64 // µs of CPU time per 100 ms
	Memory int64 // bytes
}

// Shares converts thousandths of a CPU to cgroup v1 cpu.shares: 1024 for a CPU.
func Shares(milli int64) int64 {
	if milli <= 0 {
		return MinShares
	}
	if milli >= MaxShares*1000/1024 {
		return MaxShares
	}
	return max(milli*1024/1000, MinShares)
}

// Quota converts thousandths of a CPU to µs of CPU time in every 100 ms. 0 means no limit, for 0.
func Quota(milli int64) int64 {
	if milli <= 0 {
		return 0
	}
	const most = 1 << 40 / Period // far above any machine, far below an overflow
	return max(min(milli, most)*Period/1000, minQuota)
}

// Container is what a container of the pod is given.
func Container(pod *corev1.Pod, c *corev1.Container) Amounts {
	cpu, asked := c.Resources.Requests[corev1.ResourceCPU]
	limit := limitOf(pod, c, corev1.ResourceCPU)
	if !asked {
		cpu = limit // as the defaults have it; the spec may come from elsewhere
	}
	memory := limitOf(pod, c, corev1.ResourceMemory)
	return Amounts{Shares: Shares(cpu.MilliValue()), Quota: Quota(limit.MilliValue()), Memory: memory.Value()}
}

// limitOf is a container's own limit, else that of the pod as a whole.
func limitOf(pod *corev1.Pod, c *corev1.Container, name corev1.ResourceName) resource.Quantity {
	q := c.Resources.Limits[name]
	if r := pod.Spec.Resources; q.IsZero() && r != nil {
		return r.Limits[name]
	}
	return q
}

// Pod is what the pod's own cgroup is given, by its effective resources (SC-14): a weight by the CPU request; a quota
// and a memory limit only if every container of the pod has one, as otherwise those without one may use what the node
// has. Its status does not count: pod is what has been set aside for it.
func Pod(pod *corev1.Pod) Amounts {
	pod = &corev1.Pod{Spec: pod.Spec}
	if podspec.QOSClass(pod) == corev1.PodQOSBestEffort {
		return Amounts{Shares: MinShares}
	}
	requests, bounded := podspec.EffectiveRequests(pod), podspec.BoundedLimits(pod)
	return Amounts{Shares: Shares(requests.Cpu().MilliValue()), Quota: Quota(bounded.Cpu().MilliValue()),
		Memory: bounded.Memory().Value()}
}

// Unbound is without a bound of CPU time, as who has CPUs to himself is given it: those are bound enough (PL-33).
func (a Amounts) Unbound() Amounts {
	a.Quota = 0
	return a
}

// Same reports whether the kernel gives the same. Weights of cgroup v2 are coarser than shares.
func (a Amounts) Same(b Amounts) bool {
	return a.Quota == b.Quota && a.Memory == b.Memory && (a.Shares == b.Shares || Weight(a.Shares) == Weight(b.Shares))
}

// Raised is of each amount the larger one.
func (a Amounts) Raised(to Amounts) Amounts {
	return Amounts{Shares: max(a.Shares, to.Shares), Quota: looser(a.Quota, to.Quota),
		Memory: looser(a.Memory, to.Memory)}
}

// looser returns the larger of two limits, where 0 is none.
func looser(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}

// Tightens reports whether to has a limit that is below a's.
func (a Amounts) Tightens(to Amounts) bool {
	return looser(a.Quota, to.Quota) != to.Quota || looser(a.Memory, to.Memory) != to.Memory
}

// Weight converts cpu.shares to cpu.weight, as runtimes do: 1 to 10000, 100 for 1024 shares.
func Weight(shares int64) int64 {
	switch {
	case shares <= 0:
		return 0
	case shares <= MinShares:
		return 1
	case shares >= MaxShares:
		return 10000
	}
	l := math.Log2(float64(shares))
	return int64(math.Ceil(math.Pow(10, (l*l+125*l)/612.0-7.0/34.0)))
}

// OfWeight finds shares that have a weight.
func OfWeight(weight int64) int64 {
	low, high := int64(MinShares), int64(MaxShares)
	for low < high {
		if middle := (low + high) / 2; Weight(middle) < weight {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}
