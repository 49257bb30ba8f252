// SPDX-License-Identifier: Apache-2.0

package pin

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/utils/cpuset"
)

// CPU is a logical CPU and where it lies. Core, socket and node numbers are the machine's; Cache is that of the last
// cache that cores share.
type CPU struct{ ID, Core, Socket, Node, Cache int }

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

// by groups the CPUs by a number of theirs.
func (m Machine) by(number func(CPU) int) map[int]cpuset.CPUSet {
	out := map[int]cpuset.CPUSet{}
	for _, c := range m {
		out[number(c)] = out[number(c)].Union(cpuset.New(c.ID))
	}
	return out
}

// Nodes are the CPUs of each NUMA node that has some.
func (m Machine) Nodes() map[int]cpuset.CPUSet { return m.by(func(c CPU) int { return c.Node }) }

// Sockets are the sockets that some NUMA nodes lie in.
func (m Machine) Sockets(nodes map[int]bool) int {
	in := map[int]bool{}
	for _, c := range m {
		if nodes[c.Node] {
			in[c.Socket] = true
		}
	}
	return len(in)
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

// Take chooses n of the free CPUs, in as few sockets, NUMA nodes and cores as can be; of several that would do, where
// least is left free. The options say otherwise: whole cores only, the same number in each of several NUMA nodes, in as
// few caches, or in as many cores as can be. Its error is a [*TooFew].
func (m Machine) Take(free cpuset.CPUSet, n int, o Options) (cpuset.CPUSet, error) {
	if o.FullPCPUsOnly {
		free = m.inWholeCores(free)
	}
	if free.Size() < n {
		return cpuset.CPUSet{}, &TooFew{n, free.Size(), o.FullPCPUsOnly}
	}
	if o.DistributeCPUsAcrossNUMA {
		if out, ok := m.evenly(free, n, o); ok {
			return out, nil
		}
	}
	return m.take(free, n, m.levels(o)), nil
}

// levels are the ways in which CPUs lie together, the widest first.
func (m Machine) levels(o Options) (out [][]cpuset.CPUSet) {
	sockets, nodes := values(m.by(func(c CPU) int { return c.Socket })), values(m.Nodes())
	if out = [][]cpuset.CPUSet{sockets, nodes}; len(nodes) < len(sockets) {
		out = [][]cpuset.CPUSet{nodes, sockets}
	}
	if o.PreferAlignByUncoreCache {
		out = append(out, values(m.by(func(c CPU) int { return c.Cache })))
	}
	if o.DistributeCPUsAcrossCores {
		return append(out, m.ranks())
	}
	return append(out, values(m.cores()))
}

// take chooses n of the free CPUs by these levels: in one group, of those that have enough the one with least; else all
// of the group that has most, and the rest of others.
func (m Machine) take(free cpuset.CPUSet, n int, levels [][]cpuset.CPUSet) cpuset.CPUSet {
	if n >= free.Size() {
		return free
	}
	if n == 0 || len(levels) == 0 {
		return cpuset.New(free.List()[:n]...)
	}
	var fits, most cpuset.CPUSet
	for _, group := range levels[0] {
		has := group.Intersection(free)
		if has.Size() >= n && (fits.IsEmpty() || before(has, fits)) {
			fits = has
		}
		if has.Size() > most.Size() || has.Size() == most.Size() && before(has, most) {
			most = has
		}
	}
	if !fits.IsEmpty() {
		return m.take(fits, n, levels[1:])
	}
	return most.Union(m.take(free.Difference(most), n-most.Size(), levels))
}

// before orders groups: the smaller first, then the one that begins earlier.
func before(a, b cpuset.CPUSet) bool {
	if a.Size() != b.Size() || a.IsEmpty() {
		return a.Size() < b.Size()
	}
	return a.List()[0] < b.List()[0]
}

// ranks are all cores' first CPUs, all cores' second ones, and so on.
func (m Machine) ranks() (out []cpuset.CPUSet) {
	for _, set := range m.cores() {
		for i, id := range set.List() {
			if i == len(out) {
				out = append(out, cpuset.CPUSet{})
			}
			out[i] = out[i].Union(cpuset.New(id))
		}
	}
	return out
}

// evenly chooses n of the free CPUs in as few NUMA nodes as can be, if that is more than one, and as many in each; not
// ok where they cannot be spread so. With whole cores, the cores are spread.
func (m Machine) evenly(free cpuset.CPUSet, n int, o Options) (out cpuset.CPUSet, ok bool) {
	var nodes []cpuset.CPUSet
	most, unit := 0, 1
	for _, set := range m.Nodes() {
		has := set.Intersection(free)
		nodes, most = append(nodes, has), max(most, has.Size())
	}
	if o.FullPCPUsOnly {
		unit = m.ThreadsPerCore()
	}
	if most >= n || n%unit != 0 {
		return out, false
	}
	slices.SortFunc(nodes, func(a, b cpuset.CPUSet) int { // those with most first: a later one gives no more
		if d := cmp.Compare(b.Size(), a.Size()); d != 0 || a.IsEmpty() {
			return d
		}
		return cmp.Compare(a.List()[0], b.List()[0])
	})
	for k := 2; k <= len(nodes); k++ {
		each, more := n/unit/k, n/unit%k
		for i, has := range nodes[:k] {
			share := each
			if i < more {
				share++
			}
			if ok = share*unit <= has.Size(); !ok {
				break
			}
			out = out.Union(m.take(has, share*unit, m.levels(o)))
		}
		if ok {
			return out, true
		}
		out = cpuset.CPUSet{}
	}
	return out, false
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

func values[K comparable](sets map[K]cpuset.CPUSet) (out []cpuset.CPUSet) {
	for _, s := range sets {
		out = append(out, s)
	}
	return out
}
