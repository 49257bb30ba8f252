// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
)

// bridgeMark is the alias of a bridge that wherry made, as `ip link` shows it.
const bridgeMark = "wherry pod network"

// signs show whose a bridge is.
type signs struct {
	alias     string
	hardware  net.HardwareAddr
	addresses []netip.Addr
	table     bool // there are rules of ours for a bridge of its name
}

// ours says whether a bridge was made by wherry for a network: by its mark; by the hardware address that a bridge of
// these subnets is given; or, for one from before there were marks whose subnet was changed, by rules of ours and the
// address of one of the subnets together. Rules alone say nothing: they stay when somebody removes the bridge, and
// another program may make one of that name. (Pure.)
func ours(d signs, c Config) bool {
	subnets := slices.Concat(c.CIDRs, c.Former)
	return d.alias == bridgeMark || slices.ContainsFunc(subnets, func(p netip.Prefix) bool {
		return bytes.Equal(d.hardware, hardwareAddr(Gateway(p))) || d.table && slices.Contains(d.addresses, Gateway(p))
	})
}

// checkDevice refuses a device that is there and not ours: rules on the machine's own (lo, eth0) cut it off from the
// world, and another program's bridge would lose its addresses.
func checkDevice(c Config) error {
	link, err := existing(c.Bridge)
	if link == nil || err != nil {
		return err
	}
	if link.Type() != "bridge" {
		return notABridge(link)
	}
	rules, err := fingerprint(c.Bridge)
	if err != nil {
		return err
	}
	d := signs{alias: link.Attrs().Alias, hardware: link.Attrs().HardwareAddr, table: rules != ""}
	addrs, err := dump(func() ([]netlink.Addr, error) { return netlink.AddrList(link, netlink.FAMILY_ALL) })
	if err != nil {
		return fmt.Errorf("bridge %s: addresses: %w", c.Bridge, err)
	}
	for _, a := range addrs {
		ip, _ := netip.AddrFromSlice(a.IP)
		d.addresses = append(d.addresses, ip.Unmap())
	}
	if ours(d, c) {
		return nil
	}
	return fmt.Errorf("bridge %s was not made by wherry, and would lose its addresses: choose another --bridge-name, "+
		"or remove the bridge if nothing uses it (ip link delete %s)", c.Bridge, c.Bridge)
}

// existing is the device of a name; nil if there is none.
func existing(name string) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	if _, none := errors.AsType[netlink.LinkNotFoundError](err); none {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", name, err)
	}
	return link, nil
}

func notABridge(link netlink.Link) error {
	return fmt.Errorf("device %s exists and is a %s, not a bridge: choose another --bridge-name", link.Attrs().Name,
		link.Type())
}
