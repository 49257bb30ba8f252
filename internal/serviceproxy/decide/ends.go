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
}

// candidates are those of one port in one address family, sorted. An address that several slices have, as while one is
// moved from one to another, is ready if any says so.
func candidates(f Facts, port *corev1.ServicePort, six bool, ends []*discoveryv1.EndpointSlice) []candidate {
	found := map[netip.AddrPort]candidate{}
	for _, slice := range ends {
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
