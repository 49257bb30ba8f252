// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// candidate is an address and port that a service's port may lead to.
type candidate struct {
	at         netip.AddrPort
	ready      bool
	serving    bool // though about to end
	local      bool // on this node
	beyond     bool // not on this machine
	node, zone hint
}

// hint says by whom the control plane would have an end used: by this node (or zone), or by others.
type hint struct{ ours, others bool }

func (h *hint) add(name, own string) {
	h.ours, h.others = h.ours || name == own, h.others || name != own
}

// candidates are those of one port in one address family, sorted. An address that several slices have, as while one is
// moved from one to another, is ready if any says so.
func candidates(f Facts, port *corev1.ServicePort, six bool, ends []*discoveryv1.EndpointSlice) []candidate {
	found := map[netip.AddrPort]candidate{}
	for _, slice := range ends {
		if _, none := slice.Labels[headless]; none {
			continue
		}
		if slice.AddressType != discoveryv1.AddressTypeIPv4 && slice.AddressType != discoveryv1.AddressTypeIPv6 {
			continue
		}
		for _, p := range slice.Ports {
			if ptr.Deref(p.Name, "") != port.Name || p.Port == nil || *p.Port <= 0 || *p.Port > 65535 ||
				protoOf(ptr.Deref(p.Protocol, "")) != protoOf(port.Protocol) {
				continue
			}
			for i := range slice.Endpoints {
				e := &slice.Endpoints[i]
				for _, a := range parseAll(e.Addresses) {
					if a.Is6() != six {
						continue
					}
					at := netip.AddrPortFrom(a, uint16(*p.Port))
					c := found[at]
					c.at, c.beyond = at, !f.here(a)
					c.ready = c.ready || ptr.Deref(e.Conditions.Ready, true)
					c.serving = c.serving || ptr.Deref(e.Conditions.Serving, ptr.Deref(e.Conditions.Ready, true))
					c.hint(f, e.Hints)
					c.local = c.local || f.here(a) || e.NodeName != nil && *e.NodeName == f.Node
					found[at] = c
				}
			}
		}
	}
	out := make([]candidate, 0, len(found))
	for _, c := range found {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b candidate) int { return a.at.Compare(b.at) })
	return out
}

// hint notes which nodes and zones ought to use it (KEP-3015, KEP-2433); an address that several slices have has the
// hints of all.
func (c *candidate) hint(f Facts, h *discoveryv1.EndpointHints) {
	if h == nil {
		return
	}
	for _, n := range h.ForNodes {
		c.node.add(n.Name, f.Node)
	}
	for _, z := range h.ForZones {
		c.zone.add(z.Name, f.Zone)
	}
}

// near are those that this node should use by their hints: those for the node, else those for its zone, else all.
func near(all []candidate) []candidate {
	for _, kind := range []func(candidate) hint{
		func(c candidate) hint { return c.node }, func(c candidate) hint { return c.zone },
	} {
		if ours := preferred(all, kind); ours != nil {
			return ours
		}
	}
	return all
}

// preferred are those with a hint for us, if every ready one has hints and a ready one is ours; else none.
func preferred(all []candidate, kind func(candidate) hint) (ours []candidate) {
	for _, c := range all {
		if c.ready && kind(c) == (hint{}) {
			return nil
		}
		if kind(c).ours {
			ours = append(ours, c)
		}
	}
	if !slices.ContainsFunc(ours, func(c candidate) bool { return c.ready }) {
		return nil
	}
	return ours
}

// choose are those to be used: the ready ones; without any, those that serve still though they are about to end.
func choose(all []candidate, localOnly bool) (out []candidate) {
	for _, use := range []func(candidate) bool{
		func(c candidate) bool { return c.ready }, func(c candidate) bool { return c.serving },
	} {
		for _, c := range all {
			if use(c) && (c.local || !localOnly) {
				out = append(out, c)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// ready counts those on this node that new connections should come to.
func ready(all []candidate) (n int) {
	for _, c := range all {
		if c.ready && c.local {
			n++
		}
	}
	return n
}
