// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// BridgeNetwork is the network of a bridge that somebody else has made, with the bridge's own address in it.
func BridgeNetwork(bridge string, is4 bool) (netip.Prefix, error) {
	link, err := existing(bridge)
	if err != nil {
		return netip.Prefix{}, err
	}
	if link == nil {
		return netip.Prefix{}, fmt.Errorf("bridge %s is not there yet, so nothing can be reached at its address",
			bridge)
	}
	family := netlink.FAMILY_V6
	if is4 {
		family = netlink.FAMILY_V4
	}
	list, err := netlink.AddrList(link, family)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("addresses of bridge %s: %w", bridge, err)
	}
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.IPNet.String()); err == nil && !p.Addr().IsLinkLocalUnicast() {
			return p, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("bridge %s has no address of the family of services", bridge)
}
