// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Flow is one of UDP, as the kernel remembers it: who began it, and who answers.
type Flow struct {
	From netip.Addr
	To   netip.AddrPort
}

// forbidden matches flows that are to be forgotten.
type forbidden func(Flow) bool

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (f forbidden) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	return flow.Forward.Protocol == unix.IPPROTO_UDP && f(Flow{From: address(flow.Forward.SrcIP),
		To: netip.AddrPortFrom(address(flow.Reverse.SrcIP), flow.Reverse.SrcPort)})
}

func address(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

// Forget has the kernel forget the flows of UDP that are forbidden. The machine's own are not, whatever policies say of
// its addresses: it always reaches its pods, and an answer without its flow would be judged as what the pod begins.
func (Host) Forget(is func(Flow) bool) error {
	own, err := ownAddresses()
	if err != nil {
		return fmt.Errorf("forget UDP flows that network policies forbid: this machine's addresses: %w", err)
	}
	others := forbidden(func(f Flow) bool { return !own[f.From] && is(f) })
	for _, f := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		if _, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, f, others); err != nil &&
			!errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("forget UDP flows that network policies forbid: %w", err)
		}
	}
	return nil
}

func ownAddresses() (map[netip.Addr]bool, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	out := map[netip.Addr]bool{}
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			out[address(n.IP)] = true
		}
	}
	return out, nil
}
