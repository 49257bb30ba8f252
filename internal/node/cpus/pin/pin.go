// SPDX-License-Identifier: Apache-2.0

package pin

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/cpuset"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Options are the policy's, by the kubelet's names.
type Options struct {
	FullPCPUsOnly        bool // full-pcpus-only: whole cores, or nothing
	StrictCPUReservation bool // strict-cpu-reservation: pods without CPUs of their own do not use the reserved ones
	// distribute-cpus-across-numa: where one NUMA node has too few, as many of each of several
	DistributeCPUsAcrossNUMA bool
	// align-by-socket: CPUs in several NUMA nodes of one socket are as good as those in one
	AlignBySocket bool
	// distribute-cpus-across-cores: one of each core before a second of any
	DistributeCPUsAcrossCores bool
	// prefer-align-cpus-by-uncorecache: in as few caches as can be
	PreferAlignByUncoreCache bool
}

// Policy is what holds for all containers.
type Policy struct {
	Machine  Machine
	Reserved cpuset.CPUSet // that nobody has to himself
	Options
}

// Whole is how many CPUs a container gets to itself: those of containers that ask for whole ones in guaranteed pods; 0
// for all others, and where the pod as a whole has resources.
func Whole(pod *corev1.Pod, c *corev1.Container) int {
	if pod.Spec.Resources != nil || podspec.QOSClass(pod) != corev1.PodQOSGuaranteed {
		return 0
	}
	q, asks := c.Resources.Requests[corev1.ResourceCPU]
	if !asks || q.MilliValue()%1000 != 0 {
		return 0
	}
	return int(q.Value())
}

// Misaligned says why a pod can never have its CPUs in whole cores, in the kubelet's words; "" if it can.
func (p Policy) Misaligned(pod *corev1.Pod) string {
	threads := p.Machine.ThreadsPerCore()
	if !p.FullPCPUsOnly || threads == 1 {
		return ""
	}
	for c := range podspec.OwnContainers(&pod.Spec) {
		if n := Whole(pod, c.Container); n%threads != 0 {
			return fmt.Sprintf("SMT Alignment Error: requested %d cpus not multiple cpus per core = %d", n, threads)
		}
	}
	return ""
}

// Held are the CPUs that a pod's containers have to themselves, by container.
type Held map[string]cpuset.CPUSet

// union is all of them, of the named containers, or of all but those.
func (h Held) union(in func(container string) bool) (out cpuset.CPUSet) {
	for name, set := range h {
		if in(name) {
			out = out.Union(set)
		}
	}
	return out
}

// Request is a container's request.
type Request struct {
	Need      int
	Container string
	Pod       Held            // what its pod has
	Before    map[string]bool // init containers that have ended when it starts: not sidecars
	Taken     cpuset.CPUSet   // by other pods
	Near      cpuset.CPUSet   // it had better have some of these; none: it does not matter
}

// Choose says which CPUs a container gets. One that has some keeps them; what init containers before it have had it
// takes over. Its error is a [*TooFew].
func (p Policy) Choose(w Request) (cpuset.CPUSet, error) {
	if has := w.Pod[w.Container]; has.Size() > 0 {
		return has, nil
	}
	free, passed := p.Free(w)
	if w.Need <= passed.Size() {
		return p.near(passed, w.Need, w.Near)
	}
	more, err := p.near(free.Difference(passed), w.Need-passed.Size(), w.Near)
	if few, ok := err.(*TooFew); ok {
		few.Need, few.Free = w.Need, few.Free+passed.Size()
	}
	return more.Union(passed), err
}

// Free are the CPUs that a container may get, and those of them that it takes over.
func (p Policy) Free(w Request) (free, passed cpuset.CPUSet) {
	others := w.Pod.union(func(name string) bool { return !w.Before[name] })
	passed = w.Pod.union(func(name string) bool { return w.Before[name] }).Difference(others)
	free = p.Machine.All().Difference(p.Reserved).Difference(w.Taken).Difference(others)
	return free, passed.Intersection(free)
}

// near takes n of the free CPUs, as many as can be of those that are near.
func (p Policy) near(free cpuset.CPUSet, n int, near cpuset.CPUSet) (cpuset.CPUSet, error) {
	aligned := free.Intersection(near)
	if p.FullPCPUsOnly {
		aligned = p.Machine.inWholeCores(aligned)
	}
	if aligned.Size() >= n {
		return p.Machine.Take(aligned, n, p.Options)
	}
	rest, err := p.Machine.Take(free.Difference(aligned), n-aligned.Size(), p.Options)
	if few, ok := err.(*TooFew); ok {
		few.Need, few.Free = n, few.Free+aligned.Size()
	}
	return rest.Union(aligned), err
}

// Shared are the CPUs of containers that have none to themselves, when these are taken.
func (p Policy) Shared(taken cpuset.CPUSet) cpuset.CPUSet {
	shared := p.Machine.All().Difference(taken)
	if p.StrictCPUReservation {
		if rest := shared.Difference(p.Reserved); rest.Size() > 0 { // else they would have none at all
			return rest
		}
	}
	return shared
}
