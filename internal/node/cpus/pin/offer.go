// SPDX-License-Identifier: Apache-2.0

package pin

import (
	"k8s.io/utils/cpuset"

	"github.com/wherryproject/wherry/internal/node/numa"
)

// Offer says on which NUMA nodes a container could have its CPUs. (Near does not count.)
func (p Policy) Offer(w Request, nodes numa.Mask) numa.Offer {
	free, passed := p.Free(w)
	if p.FullPCPUsOnly {
		free = p.Machine.inWholeCores(free.Difference(passed)).Union(passed)
	}
	of := func(set cpuset.CPUSet) func(numa.Mask) int64 {
		return func(m numa.Mask) int64 { return int64(set.Intersection(p.On(m)).Size()) }
	}
	s := numa.Stock{Need: int64(w.Need), Nodes: nodes, Total: of(p.Machine.All().Difference(p.Reserved)),
		Free: of(free), Kept: of(passed)}
	if p.AlignBySocket {
		s.Width = func(m numa.Mask) int {
			in := map[int]bool{}
			for _, n := range m.Nodes() {
				in[n] = true
			}
			return p.Machine.Sockets(in)
		}
	}
	return s.Offer()
}

// On are the CPUs of some NUMA nodes.
func (p Policy) On(m numa.Mask) cpuset.CPUSet {
	return p.Machine.where(func(c CPU) bool { return m.Has(c.Node) })
}
