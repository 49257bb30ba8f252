// SPDX-License-Identifier: Apache-2.0

package pin

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/utils/cpuset"
)

// CPU is a logical CPU and where it lies. Core and socket numbers are the machine's.
type CPU struct{ ID, Core, Socket int }

// core names a core: its number is of its socket.
type core struct{ socket, core int }

// Machine are the CPUs that are online.
type Machine []CPU

// All are the machine's CPUs.
func (m Machine) All() cpuset.CPUSet { return m.where(func(CPU) bool { return true }) }

func (m Machine) where(is func(CPU) bool) cpuset.CPUSet {
	var ids []int
	for _, c := range m {
		if is(c) {
			ids = append(ids, c.ID)
		}
	}
	return cpuset.New(ids...)
}

// ThreadsPerCore is how many CPUs the largest core has; 1 where there is no hyper-threading.
func (m Machine) ThreadsPerCore() int {
	n := 1
	for _, set := range m.cores() {
		n = max(n, set.Size())
	}
	return n
}

func (m Machine) cores() map[core]cpuset.CPUSet {
	out := map[core]cpuset.CPUSet{}
	for _, c := range m {
		at := core{c.Socket, c.Core}
		out[at] = out[at].Union(cpuset.New(c.ID))
	}
	return out
}

func (m Machine) sockets() map[int]cpuset.CPUSet {
	out := map[int]cpuset.CPUSet{}
	for _, c := range m {
		out[c.Socket] = out[c.Socket].Union(cpuset.New(c.ID))
	}
	return out
}

// TooFew says that there are not as many CPUs as a container asks for.
type TooFew struct {
	Need, Free int
	Whole      bool // of those in cores of which all is free
}

func (t *TooFew) Error() string {
	if t.Whole {
		return fmt.Sprintf("not enough free physical CPUs available: requested %d CPUs, %d are free in whole cores",
			t.Need, t.Free)
	}
	return fmt.Sprintf("not enough cpus available to satisfy request: requested=%d, available=%d", t.Need, t.Free)
}

// Take chooses n of the free CPUs: whole sockets first, then whole cores, then the rest of cores that others have
// begun; of several that would do, where least is left free. With whole it takes whole cores only. Its error is a
// [*TooFew].
func (m Machine) Take(free cpuset.CPUSet, n int, whole bool) (cpuset.CPUSet, error) {
	if whole {
		free = m.inWholeCores(free)
	}
	if free.Size() < n {
		return cpuset.CPUSet{}, &TooFew{n, free.Size(), whole}
	}
	var out cpuset.CPUSet
	out = m.takeSets(out, free, n, values(m.sockets()))
	out = m.takeSets(out, free, n, values(m.cores()))
	for out.Size() < n {
		out = out.Union(cpuset.New(m.next(out, free.Difference(out))))
	}
	return out, nil
}

// inWholeCores are the free CPUs whose cores are free.
func (m Machine) inWholeCores(free cpuset.CPUSet) (out cpuset.CPUSet) {
	for _, set := range m.cores() {
		if set.IsSubsetOf(free) {
			out = out.Union(set)
		}
	}
	return out
}

// takeSets adds to what is taken those of the sets that are free and not larger than what is missing.
func (m Machine) takeSets(out, free cpuset.CPUSet, n int, sets []cpuset.CPUSet) cpuset.CPUSet {
	for {
		left := free.Difference(out)
		sets = slices.DeleteFunc(sets, func(s cpuset.CPUSet) bool {
			return s.Size() > n-out.Size() || !s.IsSubsetOf(left)
		})
		if len(sets) == 0 {
			return out
		}
		best := slices.MinFunc(sets, func(a, b cpuset.CPUSet) int {
			return cmp.Or(m.nearer(out, left, a, b), cmp.Compare(a.List()[0], b.List()[0]))
		})
		out = out.Union(best)
	}
}

// nearer compares two sets: first comes the one in a socket that something is taken in already, then the one in the
// socket with least left free, and of CPUs in one socket the one in the core with least left free.
func (m Machine) nearer(out, left, a, b cpuset.CPUSet) int {
	sockets, cores := m.sockets(), m.cores()
	rank := func(s cpuset.CPUSet) (begun, inSocket, inCore int) {
		for _, set := range sockets {
			if s.IsSubsetOf(set) {
				if begun = 1; set.Intersection(out).Size() > 0 {
					begun = 0
				}
				inSocket = set.Intersection(left).Size()
			}
		}
		for _, set := range cores {
			if s.IsSubsetOf(set) {
				inCore = set.Intersection(left).Size()
			}
		}
		return begun, inSocket, inCore
	}
	a1, a2, a3 := rank(a)
	b1, b2, b3 := rank(b)
	return cmp.Or(cmp.Compare(a1, b1), cmp.Compare(a2, b2), cmp.Compare(a3, b3))
}

// next is the CPU to take next, one by one.
func (m Machine) next(out, left cpuset.CPUSet) int {
	return slices.MinFunc(left.List(), func(a, b int) int {
		return cmp.Or(m.nearer(out, left, cpuset.New(a), cpuset.New(b)), cmp.Compare(a, b))
	})
}

func values[K comparable](sets map[K]cpuset.CPUSet) (out []cpuset.CPUSet) {
	for _, s := range sets {
		out = append(out, s)
	}
	return out
}
