// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// look reads from the kernel what there is of the network. rules are those that were installed last, as fingerprint
// gave them then.
func look(c Config, s Services, rules string) (seen, error) {
	var out seen
	now, err := fingerprint(c.Bridge)
	if err != nil {
		return out, err
	}
	out.rules = rules != "" && rules == now
	if err := out.devices(c); err != nil {
		return out, err
	}
	t, err := openTable(c.Bridge)
	if err != nil {
		return out, err
	}
	defer t.close()
	there, err := t.hostPorts()
	if err != nil {
		return out, err
	}
	out.ports = make(map[hostPort]Attachment, len(there))
	for _, h := range there {
		out.ports[h.hostPort] = h.owner
	}
	out.forwarding = forwards(c)
	out.loopback = isOn("ipv4", "conf", c.Bridge, "route_localnet")
	if out.inside, err = keptInside(c); err != nil {
		return out, err
	}
	if out.leaves, err = left(c); err != nil {
		return out, err
	}
	out.route, err = routed(c, s)
	return out, err
}

func isOn(sysctl ...string) bool {
	v, err := os.ReadFile(sysctlPath(sysctl...))
	return err == nil && strings.TrimSpace(string(v)) != "0"
}

func forwards(c Config) bool {
	for _, p := range c.CIDRs {
		if p.Addr().Is4() && !isOn("ipv4", "ip_forward") || p.Addr().Is6() &&
			!isOn("ipv6", "conf", "all", "forwarding") {
			return false
		}
	}
	return true
}

// devices looks at the bridge and at the hosts' ends of pods' devices.
func (s *seen) devices(c Config) error {
	links, err := dump(netlink.LinkList)
	if err != nil {
		return fmt.Errorf("list network devices: %w", err)
	}
	s.links = map[string]seenLink{}
	for _, l := range links {
		a := l.Attrs()
		up := a.Flags&net.FlagUp != 0
		if strings.HasPrefix(a.Name, vethPrefix) {
			s.links[a.Name] = seenLink{master: a.MasterIndex, up: up}
		}
		if a.Name != c.Bridge || l.Type() != "bridge" || !up {
			continue
		}
		has, err := hasAddresses(c, l)
		if err != nil {
			return err
		}
		if has {
			s.bridge = a.Index
		}
	}
	return nil
}

func hasAddresses(c Config, bridge netlink.Link) (bool, error) {
	have, err := dump(func() ([]netlink.Addr, error) { return netlink.AddrList(bridge, netlink.FAMILY_ALL) })
	if errors.Is(err, unix.ENODEV) {
		return false, nil // gone since
	}
	if err != nil {
		return false, fmt.Errorf("bridge %s: addresses: %w", c.Bridge, err)
	}
	there := map[netip.Prefix]bool{}
	for _, a := range have {
		ones, _ := a.Mask.Size()
		ip, _ := netip.AddrFromSlice(a.IP)
		there[netip.PrefixFrom(ip.Unmap(), ones)] = true
	}
	for _, p := range c.CIDRs {
		if !there[netip.PrefixFrom(Gateway(p), p.Bits())] {
			return false, nil
		}
	}
	return true, nil
}

// routed says whether the machine has a way to services' addresses, by routeHere or by a network of its own.
func routed(c Config, s Services) (bool, error) {
	own, err := ownRoutes(c.Bridge)
	if err != nil {
		return false, err
	}
	there := map[string]bool{}
	for _, r := range own {
		if toServices(r) && r.Dst != nil {
			there[r.Dst.String()] = true
		}
	}
	for _, way := range s.ways() {
		if there[way.String()] {
			continue
		}
		covered, err := HostRoutes(c.Bridge)
		if err != nil || !covered(way) {
			return false, err
		}
	}
	return true, nil
}

// Message types and attributes of nf_tables.h that no library has a name for.
const (
	nftTables    = unix.NFNL_SUBSYS_NFTABLES << 8
	nftTableName = 1 // NFTA_TABLE_NAME, NFTA_CHAIN_TABLE, NFTA_RULE_TABLE, NFTA_SET_TABLE and NFTA_SET_ELEM_LIST_TABLE
)

// fingerprint is the text of our table as the kernel lists it: flags, chains, rules, all with their handles, which no
// two ever share. So whatever is changed, replaced or lost shows, without a word about what should be there. Not the
// maps' elements, which come and go with pods; the maps are there if the rules are that use them. Empty says that there
// is no table.
func fingerprint(bridge string) (string, error) {
	var out strings.Builder
	for _, get := range []int{unix.NFT_MSG_GETTABLE, unix.NFT_MSG_GETCHAIN, unix.NFT_MSG_GETRULE} {
		messages, err := dump(func() ([][]byte, error) {
			req := nl.NewNetlinkRequest(nftTables|get, unix.NLM_F_DUMP)
			req.AddData(&nl.Nfgenmsg{NfgenFamily: unix.NFPROTO_INET, Version: nl.NFNETLINK_V0})
			return req.Execute(unix.NETLINK_NETFILTER, 0)
		})
		if err != nil {
			return "", fmt.Errorf("nftables: read table %s%s: %w", tablePrefix, bridge, err)
		}
		for _, m := range messages {
			if ofTable(m, bridge) {
				out.Write(m[nl.SizeofNfgenmsg:]) // the header has a number that grows with every change of any table
			}
		}
	}
	return out.String(), nil
}

// attributes reads the attributes of a message. The library goes beyond the end of those whose last one is not filled
// up to a whole word.
func attributes(b []byte) ([]syscall.NetlinkRouteAttr, error) {
	return nl.ParseRouteAttr(append(slices.Clip(b), make([]byte, -len(b)&3)...))
}

// ofTable says whether a message of nftables is about our table, or something in it.
func ofTable(m []byte, bridge string) bool {
	if len(m) < nl.SizeofNfgenmsg {
		return false
	}
	attrs, err := attributes(m[nl.SizeofNfgenmsg:])
	if err != nil {
		return false
	}
	for _, a := range attrs {
		if a.Attr.Type == nftTableName {
			return string(bytes.TrimRight(a.Value, "\x00")) == tablePrefix+bridge
		}
	}
	return false
}
