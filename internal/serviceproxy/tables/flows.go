// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/serviceproxy/decide"
)

func addrPort(a netip.Addr, port uint16) netip.AddrPort { return netip.AddrPortFrom(a, port) }

// stale matches the UDP flows that are to be forgotten.
type stale struct{ *decide.Flows }

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (s stale) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	return flow.Forward.Protocol == unix.IPPROTO_UDP && s.Stale(decide.Flow{
		To:      addrPort(addr(flow.Forward.DstIP), flow.Forward.DstPort),
		Answers: addrPort(addr(flow.Reverse.SrcIP), flow.Reverse.SrcPort)})
}

func addr(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

// Forget has the kernel forget flows that lead to where they should not any more: their next packets are looked at as
// if they were the first. nil: there are none.
func Forget(flows *decide.Flows) error {
	if flows == nil {
		return nil
	}
	for _, f := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		if _, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, f, stale{flows}); err != nil &&
			!errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove UDP flows to endpoints that are gone: %w", err)
		}
	}
	return nil
}
