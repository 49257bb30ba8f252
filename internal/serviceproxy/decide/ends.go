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
	at      netip.AddrPort
	ready   bool
	serving bool // though about to end
	local   bool // on this node
	beyond  bool // not on this machine
	// forNode and forOthers: the control plane would have this node, or others, use it.
	forNode, forOthers bool
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
					c.hint(f.Node, e.Hints)
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

// hint notes which nodes ought to use it (KEP-3015); an address that several slices have has the hints of all.
func (c *candidate) hint(node string, h *discoveryv1.EndpointHints) {
	if h == nil {
		return
	}
	for _, n := range h.ForNodes {
		c.forNode, c.forOthers = c.forNode || n.Name == node, c.forOthers || n.Name != node
	}
}

// near are those that this node should use by the hints of the ready ones, if all have hints and some are for it; else
// all.
func near(all []candidate) (out []candidate) {
	for _, c := range all {
		if c.ready && !c.forNode && !c.forOthers {
			return all
		}
		if c.forNode {
			out = append(out, c)
		}
	}
	if !slices.ContainsFunc(out, func(c candidate) bool { return c.ready }) {
		return all
	}
	return out
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
