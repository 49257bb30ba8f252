// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
)

// Flow is a UDP flow as the kernel remembers it: what the client sent to, and who answers.
type Flow struct {
	To, Answers netip.AddrPort
}

// Flows decides which remembered flows are to be forgotten after a change, as UDP has no connections: a client that
// goes on sending would else go on being sent where its first packet went.
type Flows struct {
	cluster map[netip.AddrPort][]netip.AddrPort
	nodes   map[uint16][]netip.AddrPort
	machine []netip.Addr
}

// Flows looks at the keys and chains of a change for UDP; nil says that no flow can be meant. had is what was there
// before, now what is.
func (c Change) Flows(f Facts, now Tables) *Flows {
	changed := map[string]bool{}
	for _, name := range c.SetChains {
		changed[name] = true
	}
	out := &Flows{cluster: map[netip.AddrPort][]netip.AddrPort{}, nodes: map[uint16][]netip.AddrPort{},
		machine: f.Machine}
	touch := func(k Key) {
		if k.Proto != UDP {
			return
		}
		ends := now.ends(now.Keys[k])
		if k.Place == NodePort {
			out.nodes[k.Port] = append(out.nodes[k.Port], ends...)
		} else {
			at := netip.AddrPortFrom(k.Addr, k.Port)
			out.cluster[at] = append(out.cluster[at], ends...)
		}
	}
	for _, k := range c.DropKeys {
		touch(k)
	}
	for k, chain := range now.Keys {
		if k.Proto == UDP && (changed[chain] || changed[now.Chains[chain].Inside] || slices.Contains(c.AddKeys, k)) {
			touch(k)
		}
	}
	if len(out.cluster)+len(out.nodes) == 0 {
		return nil
	}
	return out
}

// Flows looks at all that is there for UDP: where nobody knows what has been seen to. nil says that there is nothing.
func (t Tables) Flows(f Facts) *Flows {
	return Change{AddKeys: slices.Collect(maps.Keys(t.Keys))}.Flows(f, t)
}

// And adds what older ones look at and f does not: those that could not be forgotten after a change before. Either may
// be nil.
func (f *Flows) And(older *Flows) *Flows {
	if f == nil || older == nil {
		return cmp.Or(f, older)
	}
	out := &Flows{cluster: maps.Clone(older.cluster), nodes: maps.Clone(older.nodes), machine: f.machine}
	maps.Copy(out.cluster, f.cluster)
	maps.Copy(out.nodes, f.nodes)
	return out
}

// ends are all those that a chain can lead to.
func (t Tables) ends(chain string) (out []netip.AddrPort) {
	c := t.Chains[chain]
	for _, e := range c.Ends {
		out = append(out, e.At)
	}
	if c.Inside != "" {
		out = append(out, t.ends(c.Inside)...)
	}
	return out
}

// Stale says whether a flow is to be forgotten. Of those to the machine's own addresses all count that are to a node
// port, also those that were taken by nobody before there was the service.
func (f *Flows) Stale(flow Flow) bool {
	if ends, ok := f.cluster[flow.To]; ok {
		return !slices.Contains(ends, flow.Answers)
	}
	if ends, ok := f.nodes[flow.To.Port()]; ok && (flow.To != flow.Answers ||
		slices.Contains(f.machine, flow.To.Addr())) {
		own := flow.To.Addr().IsLoopback() || slices.Contains(f.machine, flow.To.Addr())
		return own && !slices.Contains(ends, flow.Answers)
	}
	return false
}
