// SPDX-License-Identifier: Apache-2.0

package resolvers

import (
	"net/netip"
	"slices"
	"strings"
)

const (
	// File names the machine's resolvers, Behind those that systemd-resolved asks.
	File, Behind = "/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"
	// most is how many of them are heeded; resolv.conf(5) says three.
	most = 3
	// Port is theirs.
	Port = 53
)

// Choice is what Choose says.
type Choice struct {
	Resolvers []netip.AddrPort
	// Refused are those that lead back to whoever asks.
	Refused []netip.AddrPort
}

// Choose reads resolv.conf, and what systemd-resolved writes of the resolvers behind it, which is taken if resolv.conf
// names nothing but systemd-resolved. Addresses for which own says yes are refused: a question would come back.
func Choose(text, behind string, own func(netip.Addr) bool) (c Choice) {
	list := servers(text)
	if len(list) > 0 && !slices.ContainsFunc(list, func(a netip.AddrPort) bool { return !stub(a.Addr()) }) {
		if better := servers(behind); len(better) > 0 {
			list = better
		}
	}
	for _, a := range list[:min(len(list), most)] {
		if own(a.Addr()) {
			c.Refused = append(c.Refused, a)
			continue
		}
		c.Resolvers = append(c.Resolvers, a)
	}
	return c
}

// stub reports whether an address is one that systemd-resolved listens on.
func stub(a netip.Addr) bool {
	return a == netip.AddrFrom4([4]byte{127, 0, 0, 53}) || a == netip.AddrFrom4([4]byte{127, 0, 0, 54})
}

// servers are the resolvers that a resolv.conf names.
func servers(text string) (out []netip.AddrPort) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "nameserver" {
			continue
		}
		if a, err := netip.ParseAddr(f[1]); err == nil {
			a = a.Unmap()
			if p := netip.AddrPortFrom(a, Port); !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}
