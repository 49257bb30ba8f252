// SPDX-License-Identifier: Apache-2.0

package pin

import (
	"testing"
)

// nodes has so many NUMA nodes in each socket, four cores in each, of so many threads, and a cache for every two cores.
func nodes(sockets, inSocket, threads int) (out Machine) {
	cores := sockets * inSocket * 4
	for t := range threads {
		for c := range cores {
			out = append(out, CPU{ID: t*cores + c, Core: c, Node: c / 4, Socket: c / 4 / inSocket, Cache: c / 2})
		}
	}
	return out
}

// PL-33: what the options of the policy make of the choice, on machines with two and with four NUMA nodes, with and
// without a second thread in each core.
func TestTakeByOptions(t *testing.T) {
	two, threads, four := nodes(2, 1, 1), nodes(2, 1, 2), nodes(2, 2, 1)
	even := Options{DistributeCPUsAcrossNUMA: true}
	evenCores := Options{DistributeCPUsAcrossNUMA: true, FullPCPUsOnly: true}
	spread, caches := Options{DistributeCPUsAcrossCores: true}, Options{PreferAlignByUncoreCache: true}
	for _, tt := range []struct {
		name string
		m    Machine
		free string
		n    int
		o    Options
		want string
	}{
		{"packed", two, "0-7", 6, Options{}, "0-5"},
		{"evenly", two, "0-7", 6, even, "0-2,4-6"},
		{"evenly, an odd number", two, "0-7", 5, even, "0-2,4-5"},
		{"in one node where that has enough", two, "0-7", 4, even, "0-3"},
		{"not evenly where one has too few", two, "0-3,4", 5, even, "0-4"},
		{"the node with more has the odd one", two, "1-7", 5, even, "1-2,4-6"},
		{"evenly over two of four", four, "0-15", 6, even, "0-2,4-6"},
		{"evenly over three of four", four, "0-15", 9, even, "0-2,4-6,8-10"},
		{"evenly over those that can", four, "0,4-15", 8, even, "4-11"},
		{"whole cores evenly", threads, "0-15", 12, evenCores, "0-2,4-6,8-10,12-14"},
		{"an odd number of cores", threads, "0-15", 10, evenCores, "0-2,4-5,8-10,12-13"},
		{"one socket of two nodes", four, "0-15", 6, Options{}, "0-5"},
		{"the socket that has enough", four, "0-3,8-15", 6, Options{}, "8-13"},
		{"the node that has enough", four, "0-1,4-15", 4, Options{}, "4-7"},
		{"packed into cores", threads, "0-15", 4, Options{}, "0-1,8-9"},
		{"over cores", threads, "0-15", 4, spread, "0-3"},
		{"over cores, then the second threads", threads, "0-15", 6, spread, "0-3,8-9"},
		{"over the cores of one node", threads, "1-7,9-15", 4, spread, "1-3,9"},
		{"any caches", two, "1-3", 2, Options{}, "1-2"},
		{"one cache", two, "1-3", 2, caches, "2-3"},
		{"few caches", two, "0-3", 3, caches, "0-2"},
		{"the cache with least left", two, "1-3", 1, caches, "1"},
		{"no cache has enough", two, "1,3", 2, caches, "1,3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.m.Take(set(tt.free), tt.n, tt.o)
			if err != nil || got.String() != tt.want {
				t.Errorf("%v, %v, want %s", got, err, tt.want)
			}
		})
	}
}

// PL-33: a container gets what is near to what the topology manager has chosen, as far as that goes.
func TestChooseNear(t *testing.T) {
	p := Policy{Machine: nodes(2, 1, 2), Reserved: set("0,8")}
	for _, tt := range []struct {
		name  string
		req   Request
		whole bool
		want  string
	}{
		{"near", Request{Need: 2, Near: p.Machine.Nodes()[1]}, false, "4,12"},
		{"more than is near", Request{Need: 10, Near: p.Machine.Nodes()[1]}, false, "1,4-7,9,12-15"},
		{"whole cores that are near", Request{Need: 2, Near: p.Machine.Nodes()[1], Taken: set("4-6")}, true, "7,15"},
		{"whole cores, one of them near", Request{Need: 4, Near: p.Machine.Nodes()[1], Taken: set("4-6")}, true,
			"1,7,9,15"},
	} {
		p.FullPCPUsOnly = tt.whole
		got, err := p.Choose(tt.req)
		if err != nil || got.String() != tt.want {
			t.Errorf("%s: %v, %v, want %s", tt.name, got, err, tt.want)
		}
	}
	p.FullPCPUsOnly = false
	_, err := p.Choose(Request{Need: 15, Near: p.Machine.Nodes()[1]})
	if few, ok := err.(*TooFew); !ok || few.Need != 15 || few.Free != 14 {
		t.Errorf("too few: %v", err)
	}
	if n := p.Machine.Sockets(map[int]bool{0: true}); n != 1 {
		t.Errorf("a node is in %d sockets", n)
	}
}
