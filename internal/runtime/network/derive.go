// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"hash/fnv"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Derive chooses a bridge name and a /24 for the server with this data folder, so that servers with different folders
// live side by side. It is a pure function of its arguments. taken says which subnets are in use on this machine; nil
// means none. The subnet is the first free one of a pseudo-random walk through 10.0.0.0/8 that leaves out what other
// cluster software and cloud networks use by default; when all of it is taken, through 172.16.0.0/12 and
// 192.168.0.0/16.
func Derive(dataDir string, taken func(netip.Prefix) bool) (bridge string, subnet netip.Prefix, err error) {
	h := fnv.New64a()
	h.Write([]byte(dataDir))
	sum := mix(h.Sum64())
	bridge = fmt.Sprintf("wherry%08x", uint32(sum>>32))
	for _, space := range []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("192.168.0.0/16"),
	} {
		size := uint32(1) << (24 - space.Bits())
		at := uint32(sum) % size
		for range size {
			p := nth24(space, at)
			if !popular(p) && (taken == nil || !taken(p)) {
				return bridge, p, nil
			}
			at = (at*5 + 12345) % size // full period: multiplier 1 mod 4, odd increment
		}
	}
	return bridge, netip.Prefix{},
		fmt.Errorf("every private IPv4 /24 overlaps with a route of this machine: choose a pod CIDR yourself")
}

// mix spreads the bits of a hash whose low and high halves are alike for strings that differ in their last letter.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

func nth24(space netip.Prefix, n uint32) netip.Prefix {
	b := space.Addr().As4()
	b[1] |= byte(n >> 8)
	b[2] |= byte(n)
	return netip.PrefixFrom(netip.AddrFrom4(b), 24)
}

// popular says whether p lies where other software puts itself by default: small home and cloud networks, Kubernetes
// service and pod subnets, Podman.
func popular(p netip.Prefix) bool {
	for _, s := range []string{
		"10.0.0.0/14", "10.10.0.0/16", "10.42.0.0/15", "10.88.0.0/15", "10.96.0.0/12", "10.128.0.0/16", "10.240.0.0/12",
		"172.17.0.0/16", "192.168.0.0/22", "192.168.122.0/24", "192.168.178.0/24",
	} {
		if netip.MustParsePrefix(s).Overlaps(p) {
			return true
		}
	}
	return false
}

// HostRoutes reads the routing tables of this machine and returns which subnets are in use by another device than
// except, the own bridge, so that a restarted server does not shun its own subnet. The default route does not count.
func HostRoutes(except string) (func(netip.Prefix) bool, error) {
	used, err := otherRoutes(except)
	if err != nil {
		return nil, err
	}
	return func(p netip.Prefix) bool {
		for _, r := range used {
			if r.dst.Overlaps(p) {
				return true
			}
		}
		return false
	}, nil
}

// Routes are the networks that this machine reaches by another device than except, the own bridge.
func Routes(except string) (out []netip.Prefix, err error) {
	used, err := otherRoutes(except)
	for _, r := range used {
		out = append(out, r.dst)
	}
	return out, err
}

type hostRoute struct {
	dst    netip.Prefix
	device int
	linked bool // the machine is on that network itself
}

// otherRoutes lists routes and addresses of all devices but except, without those to services.
func otherRoutes(except string) ([]hostRoute, error) {
	skip := -1
	if l, err := netlink.LinkByName(except); err == nil {
		skip = l.Attrs().Index
	}
	var out []hostRoute
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := dump(func() ([]netlink.Route, error) { return netlink.RouteList(nil, family) })
		if err != nil {
			return nil, fmt.Errorf("read the machine's routes: %w", err)
		}
		for _, r := range routes {
			if r.LinkIndex == skip || r.Dst == nil || r.Protocol == routeMark {
				continue
			}
			a, ok := netip.AddrFromSlice(r.Dst.IP)
			if !ok {
				continue
			}
			ones, _ := r.Dst.Mask.Size()
			p, err := a.Unmap().Prefix(ones)
			if err != nil || p.Bits() == 0 || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsLoopback() {
				continue
			}
			out = append(out, hostRoute{dst: p, device: r.LinkIndex, linked: r.Protocol == unix.RTPROT_KERNEL})
		}
	}
	return out, nil
}

// Choose is Derive for this machine: it avoids the subnets in use, and keeps the one the server's bridge has already,
// as pods outlive the server; if somebody removed the bridge, the one that it had before, when that is known (else the
// zero value).
func Choose(dataDir string, before netip.Prefix) (bridge string, subnet netip.Prefix, err error) {
	bridge, _, err = Derive(dataDir, nil)
	if err != nil {
		return "", netip.Prefix{}, err
	}
	if link, err := netlink.LinkByName(bridge); err == nil && link.Type() == "bridge" {
		addrs, err := dump(func() ([]netlink.Addr, error) { return netlink.AddrList(link, netlink.FAMILY_V4) })
		if err != nil {
			return "", netip.Prefix{}, fmt.Errorf("addresses of bridge %s: %w", bridge, err)
		}
		for _, a := range addrs {
			ones, _ := a.Mask.Size()
			if ip, ok := netip.AddrFromSlice(a.IP.To4()); ok && ones == 24 && Gateway(netip.PrefixFrom(ip, 24)) == ip {
				return bridge, netip.PrefixFrom(ip, 24).Masked(), nil
			}
		}
	}
	taken, err := HostRoutes(bridge)
	if err != nil {
		return "", netip.Prefix{}, err
	}
	if before.IsValid() && before.Addr().Is4() && !taken(before) {
		return bridge, before, nil
	}
	return Derive(dataDir, taken)
}
