// SPDX-License-Identifier: Apache-2.0

package numa

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"
)

// Mask is a set of NUMA nodes: bit 0 is node 0.
type Mask uint64

// Most is the number of NUMA nodes that a Mask can name: 0 to 63.
const Most = 64

// MaskOf is the set of these nodes. It fails for a node that no Mask can name.
func MaskOf(nodes ...int) (Mask, error) {
	var m Mask
	for _, n := range nodes {
		if n < 0 || n >= Most {
			return 0, fmt.Errorf("NUMA node %d: only nodes 0 to %d can be told apart", n, Most-1)
		}
		m |= 1 << n
	}
	return m, nil
}

// Has reports whether a node is in the set.
func (m Mask) Has(node int) bool { return node >= 0 && node < Most && m&(1<<node) != 0 }

// Count is how many nodes there are in it.
func (m Mask) Count() int { return bits.OnesCount64(uint64(m)) }

// Nodes lists them in order.
func (m Mask) Nodes() []int {
	out := make([]int, 0, m.Count())
	for rest := m; rest != 0; rest &= rest - 1 {
		out = append(out, bits.TrailingZeros64(uint64(rest)))
	}
	return out
}

// Within reports whether all of it is in another.
func (m Mask) Within(other Mask) bool { return m&^other == 0 }

// String is the list as the kernel writes it: 0-1,3.
func (m Mask) String() string { return cpuset.New(m.Nodes()...).String() }

// Parts are all sets of nodes of this one that are not empty. There are 2 to the power of their number.
func (m Mask) Parts() []Mask {
	var out []Mask
	for part := m & -m; part != 0; part = (part - m) & m {
		out = append(out, part)
	}
	return out
}

// Distances are those between NUMA nodes, as the kernel reports them.
type Distances map[int]map[int]int

// average is that between all pairs of the nodes, each with itself too; 0 where nothing is known.
func (d Distances) average(m Mask) float64 {
	sum, n := 0, m.Count()
	for _, a := range m.Nodes() {
		for _, b := range m.Nodes() {
			sum += d[a][b]
		}
	}
	if n == 0 {
		return 0
	}
	return float64(sum) / float64(n*n)
}

// ParseDistances reads a node's line of distances to the nodes that there are, in order: 10 21.
func ParseDistances(line string, nodes Mask) (map[int]int, error) {
	fields := strings.Fields(line)
	if len(fields) != nodes.Count() {
		return nil, fmt.Errorf("%q names %d distances for %d NUMA nodes", line, len(fields), nodes.Count())
	}
	out := map[int]int{}
	for i, to := range nodes.Nodes() {
		n, err := strconv.Atoi(fields[i])
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not a distance between NUMA nodes", fields[i])
		}
		out[to] = n
	}
	return out, nil
}
