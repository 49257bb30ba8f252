// SPDX-License-Identifier: Apache-2.0

package names

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// reverse answers for the name of an address.
func (w *World) reverse(full string, ip netip.Addr, q Question) Reply {
	var targets []Record
	if s, ok := w.clusterIPs[ip]; ok {
		targets = append(targets, Record{Name: full, Type: dnsmessage.TypePTR,
			Target: s.name + "." + s.namespace + ".svc." + w.domain()})
	}
	for _, k := range sorted(w.endpoints[ip]) {
		slice := w.slices[k]
		s := w.services[name{slice.Namespace, slice.Service}]
		if s == nil || len(s.IPs) > 0 {
			continue
		}
		for _, e := range slice.Endpoints {
			r := Record{Name: full, Type: dnsmessage.TypePTR,
				Target: called(e, ip) + "." + s.Name + "." + s.Namespace + ".svc." + w.domain()}
			if slices.Contains(e.Addresses, ip) && !slices.Contains(targets, r) {
				targets = append(targets, r)
			}
		}
	}
	_, zone, _ := strings.Cut(full, ".")
	switch {
	case len(targets) > 0:
		r := only(q, targets...)
		if len(r.Answers) == 0 {
			r.SOA = zone
		}
		return r
	case w.ofNetworks(ip):
		return Reply{Code: dnsmessage.RCodeNameError, SOA: zone}
	}
	return Reply{Outside: true}
}

// reversed reads the name of an address, in lower case.
func reversed(full string) (netip.Addr, bool) {
	if text, ok := strings.CutSuffix(full, ".in-addr.arpa"); ok {
		parts := strings.Split(text, ".")
		slices.Reverse(parts)
		ip, err := netip.ParseAddr(strings.Join(parts, "."))
		return ip, err == nil && ip.Is4()
	}
	text, ok := strings.CutSuffix(full, ".ip6.arpa")
	parts := strings.Split(text, ".")
	if !ok || len(parts) != 32 {
		return netip.Addr{}, false
	}
	var b [16]byte
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 16, 4)
		if err != nil || len(p) != 1 {
			return netip.Addr{}, false
		}
		b[15-i/2] |= byte(n) << (4 * (i % 2))
	}
	return netip.AddrFrom16(b), true
}
