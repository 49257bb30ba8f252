// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Sample is what a node had counted when it was asked.
type Sample struct {
	At      time.Time // by the clock of who asked: a node's own times are cut to seconds
	Summary statsapi.Summary
}

// Rates is what a node's containers used on average between two samples.
type Rates struct {
	At     time.Time
	Window time.Duration
	Node   corev1.ResourceList // nil: not known
	Pods   map[types.UID][]Container
}

// Container is what one container uses.
type Container struct {
	Name  string
	Usage corev1.ResourceList
}

// counter is one container of one pod in one life of it.
type counter struct {
	pod  string
	name string
	life time.Time
}

// Between says what was used from one sample to the next. A container that is in the later one only started in between;
// its average since then is taken.
func Between(from, to Sample) Rates {
	out := Rates{At: to.At, Window: to.At.Sub(from.At), Pods: map[types.UID][]Container{}}
	before := map[counter]*statsapi.CPUStats{}
	for _, p := range from.Summary.Pods {
		for _, c := range p.Containers {
			before[counter{p.PodRef.UID, c.Name, c.StartTime.Time}] = c.CPU
		}
	}
	for _, p := range to.Summary.Pods {
		uid := types.UID(p.PodRef.UID)
		for _, c := range p.Containers {
			old := before[counter{p.PodRef.UID, c.Name, c.StartTime.Time}]
			if u := list(rate(old, c.CPU, out.Window, to.At.Sub(c.StartTime.Time)), c.Memory); u != nil {
				out.Pods[uid] = append(out.Pods[uid], Container{Name: c.Name, Usage: u})
			}
		}
	}
	node := to.Summary.Node
	out.Node = list(rate(from.Summary.Node.CPU, node.CPU, out.Window, to.At.Sub(node.StartTime.Time)), node.Memory)
	return out
}

// rate is in nanoseconds of processor time per second; nil where it is not known.
func rate(from, to *statsapi.CPUStats, window, age time.Duration) *uint64 {
	if to == nil {
		return nil
	}
	if to.UsageCoreNanoSeconds == nil {
		return to.UsageNanoCores // a runtime that reports only its own average
	}
	used := *to.UsageCoreNanoSeconds
	switch {
	case from != nil && from.UsageCoreNanoSeconds != nil && *from.UsageCoreNanoSeconds <= used && window > 0:
		return perSecond(used-*from.UsageCoreNanoSeconds, window)
	case age > 0 && age < maxAge:
		// Its start is known to the second only.
		return perSecond(used, max(age, time.Second))
	}
	return to.UsageNanoCores
}

// maxAge is how long ago a start may be for the average since then to say something of the present. It also
// excludes a start that is not known, the year 1.
const maxAge = 10 * time.Minute

func perSecond(nanos uint64, window time.Duration) *uint64 {
	n := uint64(float64(nanos) / window.Seconds())
	return &n
}

// list is nil unless both figures are known: clients expect both.
func list(nanoCores *uint64, memory *statsapi.MemoryStats) corev1.ResourceList {
	if nanoCores == nil || memory == nil || memory.WorkingSetBytes == nil {
		return nil
	}
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewScaledQuantity(int64(*nanoCores), resource.Nano),
		corev1.ResourceMemory: *resource.NewQuantity(int64(*memory.WorkingSetBytes), resource.BinarySI),
	}
}

// Known reports whether a sample can stand as the earlier of two: it must not be older than a client would call the
// present.
func Known(s *Sample, now time.Time) bool {
	return s != nil && now.Sub(s.At) >= minWindow && now.Sub(s.At) <= maxWindow
}

const (
	minWindow = time.Second
	maxWindow = 2 * time.Minute
)
