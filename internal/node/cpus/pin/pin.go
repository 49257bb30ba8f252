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

// Wish is a container's request.
type Wish struct {
	Need      int
	Container string
	Pod       Held            // what its pod has
	Before    map[string]bool // init containers that have ended when it starts: not sidecars
	Taken     cpuset.CPUSet   // by other pods
}

// Choose says which CPUs a container gets. One that has some keeps them; what init containers before it have had it
// takes over. Its error is a [*TooFew].
func (p Policy) Choose(w Wish) (cpuset.CPUSet, error) {
	if has := w.Pod[w.Container]; has.Size() > 0 {
		return has, nil
	}
	others := w.Pod.union(func(name string) bool { return !w.Before[name] })
	passed := w.Pod.union(func(name string) bool { return w.Before[name] }).Difference(others)
	free := p.Machine.All().Difference(p.Reserved).Difference(w.Taken).Difference(others)
	passed = passed.Intersection(free)
	if w.Need <= passed.Size() {
		return p.Machine.Take(passed, w.Need, p.FullPCPUsOnly)
	}
	more, err := p.Machine.Take(free.Difference(passed), w.Need-passed.Size(), p.FullPCPUsOnly)
	if few, ok := err.(*TooFew); ok {
		few.Need, few.Free = w.Need, few.Free+passed.Size()
	}
	return more.Union(passed), err
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
