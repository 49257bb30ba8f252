// SPDX-License-Identifier: Apache-2.0

package nodeipam

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Facts are what is decided about.
type Facts struct {
	Ranges []netip.Prefix // of all nodes' networks: at most one of each family
	Never  []netip.Prefix // given to nobody, also if requested: services' addresses
	Avoid  []netip.Prefix // not chosen: where this machine has routes to
	// Own is this machine's node, which may not have an object yet, and OwnNetworks what its pods have.
	Own         string
	OwnNetworks []netip.Prefix
	Nodes       []Node
}

// Node is a node as its object says.
type Node struct {
	Name      string
	UID       types.UID
	Networks  []netip.Prefix // that it has
	Requested []netip.Prefix
	Bad       error // what is wrong with its request
}

// Result is what becomes of a node that has no network: Networks, or a Problem. A request that is not granted has its
// Reason.
type Result struct {
	Node     Node
	Networks []netip.Prefix
	Problem  string
	Reason   string
}

// nodeBits are the sizes of the networks that nodes get, as Kubernetes has them: 254 pods, or more than there ever are.
const nodeBits4, nodeBits6 = 24, 64

// Decide says what nodes without a network get: first those that request some, since they have pods, then the others,
// by name. (Pure.)
func Decide(f Facts) (out []Result) {
	taken := map[netip.Prefix]string{}
	for _, p := range f.OwnNetworks {
		taken[p] = f.Own
	}
	var waiting []Node
	for _, n := range f.Nodes {
		for _, p := range n.Networks {
			taken[p] = n.Name
		}
		if len(n.Networks) == 0 {
			waiting = append(waiting, n)
		}
	}
	slices.SortFunc(waiting, func(a, b Node) int {
		return cmp.Or(cmp.Compare(min(len(b.Requested), 1), min(len(a.Requested), 1)), cmp.Compare(a.Name, b.Name))
	})
	for _, n := range waiting {
		r := f.give(n, taken)
		for _, p := range r.Networks {
			taken[p] = n.Name
		}
		out = append(out, r)
	}
	return out
}

func (f Facts) give(n Node, taken map[netip.Prefix]string) Result {
	r := Result{Node: n}
	switch {
	case n.Bad != nil:
		r.Reason = n.Bad.Error()
	case len(n.Requested) > 0:
		if r.Reason = f.refuses(n, taken); r.Reason == "" {
			r.Networks = n.Requested
			return r
		}
	}
	if len(f.Ranges) == 0 {
		r.Problem = "the server has no network to give parts of to nodes: start it with --cluster-cidr, for example 10.244.0.0/16"
		return r
	}
	for _, of := range f.Ranges {
		p, ok := f.free(of, n.Name, taken)
		if !ok {
			return Result{Node: n, Reason: r.Reason,
				Problem: fmt.Sprintf("all of %s, the network of all pods, is given to nodes: delete nodes that are gone (kubectl delete node), or start the server with a larger --cluster-cidr", of)}
		}
		r.Networks = append(r.Networks, p)
	}
	return r
}

// refuses says why a request is not granted.
func (f Facts) refuses(n Node, taken map[netip.Prefix]string) string {
	for _, p := range n.Requested {
		for _, q := range f.Never {
			if p.Overlaps(q) {
				return fmt.Sprintf("%s overlaps with the network of services, %s", p, q)
			}
		}
		if q, who := holder(p, n.Name, taken); who != "" {
			return fmt.Sprintf("%s overlaps with %s, which node %s has", p, q, who)
		}
	}
	return ""
}

// holder is another node with a network that overlaps; the first by name.
func holder(p netip.Prefix, but string, taken map[netip.Prefix]string) (q netip.Prefix, who string) {
	for t, by := range taken {
		if by != but && t.Overlaps(p) && (who == "" || by < who) {
			q, who = t, by
		}
	}
	return q, who
}

// free is the first free network in a range.
func (f Facts) free(of netip.Prefix, name string, taken map[netip.Prefix]string) (netip.Prefix, bool) {
	bits := nodeBits4
	if of.Addr().Is6() {
		bits = nodeBits6
	}
	p := netip.PrefixFrom(of.Masked().Addr(), max(bits, of.Bits()))
	for of.Contains(p.Addr()) {
		over := func(q netip.Prefix) bool { return q.Overlaps(p) }
		_, who := holder(p, name, taken)
		if who == "" && !slices.ContainsFunc(f.Never, over) && !slices.ContainsFunc(f.Avoid, over) {
			return p, true
		}
		next := last(p).Next()
		if !next.IsValid() {
			break
		}
		p = netip.PrefixFrom(next, p.Bits())
	}
	return netip.Prefix{}, false
}

// last is the last address of a network.
func last(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// Around is the range by default, around the networks of the first node; a network that is as large itself has none.
// (Pure.)
func Around(own []netip.Prefix) (out []netip.Prefix) {
	for _, p := range own {
		bits := 16
		if p.Addr().Is6() {
			bits = max(p.Bits()-8, 32)
		}
		if p.Bits() <= bits {
			return nil
		}
		out = append(out, netip.PrefixFrom(p.Addr(), bits).Masked())
	}
	return out
}
