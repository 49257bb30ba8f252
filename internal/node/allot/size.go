// SPDX-License-Identifier: Apache-2.0

package allot

import corev1 "k8s.io/api/core/v1"

// Size is what a container was made with: CPU in thousandths, memory in bytes, 0 for none. It is more than [Amounts],
// since memory requests are not set in the kernel.
type Size struct {
	CPURequest    int64 `json:"cpuRequest,omitempty"`
	CPULimit      int64 `json:"cpuLimit,omitempty"`
	MemoryRequest int64 `json:"memoryRequest,omitempty"`
	MemoryLimit   int64 `json:"memoryLimit,omitempty"`
	Unbound       bool  `json:"unbound,omitempty"` // it was made with CPUs to itself, and no bound of CPU time
}

// SizeOf is the size of a container of the pod.
func SizeOf(pod *corev1.Pod, c *corev1.Container) Size {
	cpu, memory := limitOf(pod, c, corev1.ResourceCPU), limitOf(pod, c, corev1.ResourceMemory)
	return Size{CPURequest: c.Resources.Requests.Cpu().MilliValue(), CPULimit: cpu.MilliValue(),
		MemoryRequest: c.Resources.Requests.Memory().Value(), MemoryLimit: memory.Value()}
}

// Amounts is what a container of this size was given.
func (s Size) Amounts() Amounts {
	a := Amounts{Shares: Shares(s.CPURequest), Quota: Quota(s.CPULimit), Memory: s.MemoryLimit}
	if s.Unbound {
		return a.Unbound()
	}
	return a
}

// Restarts reports whether a container that was made with this size has to be made again to have another one, by its
// resize policy.
func (s Size) Restarts(to Size, policies []corev1.ContainerResizePolicy) bool {
	for _, p := range policies {
		if p.RestartPolicy != corev1.RestartContainer {
			continue
		}
		if p.ResourceName == corev1.ResourceCPU && (s.CPURequest != to.CPURequest || s.CPULimit != to.CPULimit) ||
			p.ResourceName == corev1.ResourceMemory &&
				(s.MemoryRequest != to.MemoryRequest || s.MemoryLimit != to.MemoryLimit) {
			return true
		}
	}
	return false
}
