// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Setup makes the bridge with its gateway addresses, turns forwarding on and installs the nftables table. It is
// idempotent and leaves attached pods alone, so it may run at every start of the server. It needs root.
func Setup(c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if err := (leases{c.StateDir}).ensure(); err != nil {
		return fmt.Errorf("pod network: %w", err)
	}
	if err := checkOverlap(c); err != nil {
		return err
	}
	if err := checkDevice(c); err != nil {
		return err
	}
	t, err := openTable(c.Bridge)
	if err != nil {
		return err
	}
	defer t.close()
	// The table first: it is the step a kernel may be unable to do, and then nothing half done is left.
	if err := t.ensure(c); err != nil {
		return err
	}
	if err := ensureBridge(c); err != nil {
		return err
	}
	if err := keepInside(c); err != nil {
		return err
	}
	return forward(c)
}

// Teardown removes bridge, table and leases. Pods that are still attached lose their network. Forwarding stays on:
// others may have come to need it. A device that Setup would have refused stays as it is. It is idempotent.
func Teardown(c Config) error {
	var errs []error
	mine := checkDevice(c) == nil       // before the table goes, which is one of the signs
	errs = append(errs, closeLeaves(c)) // before their guard goes
	if t, err := openTable(c.Bridge); err != nil {
		errs = append(errs, err)
	} else {
		errs = append(errs, t.remove())
		for _, name := range []string{ServicesTable(c.Bridge), PoliciesTable(c.Bridge)} {
			t.t.Name = name
			errs = append(errs, t.remove())
		}
		errs = append(errs, t.removeL2())
		t.close()
	}
	if !mine {
		return errors.Join(append(errs, removeState(c))...)
	}
	errs = append(errs, forgetRoutes(c.Bridge, func(netlink.Route) bool { return true }))
	link, err := netlink.LinkByName(c.Bridge)
	if err == nil && link.Type() == "bridge" {
		ports, err := bridgePorts(link.Attrs().Index)
		errs = append(errs, err)
		for _, port := range ports {
			errs = append(errs, deleteLink(port))
		}
		errs = append(errs, deleteLink(c.Bridge))
	}
	return errors.Join(append(errs, removeState(c))...)
}

func removeState(c Config) error {
	if c.StateDir == "" {
		return nil
	}
	return errors.Join(os.RemoveAll(leases{c.StateDir}.folder()), removeIfThere(filepath.Join(c.StateDir, "lock")),
		removeIfThere(filepath.Join(c.StateDir, "ends")))
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// checkOverlap refuses a pod CIDR of which another device has a route to a part: either it or the pods would be cut
// off.
func checkOverlap(c Config) error {
	routes, err := otherRoutes(c.Bridge)
	if err != nil {
		return err
	}
	for _, p := range c.CIDRs {
		for _, r := range routes {
			if r.dst.Bits() >= p.Bits() && p.Contains(r.dst.Addr()) {
				name := "device " + strconv.Itoa(r.device)
				if l, err := netlink.LinkByIndex(r.device); err == nil {
					name = l.Attrs().Name
				}
				return fmt.Errorf("pod CIDR %s overlaps with the route to %s on %s: choose another pod CIDR", p, r.dst,
					name)
			}
		}
	}
	return nil
}

func ensureBridge(c Config) error {
	mtu, err := outsideMTU()
	if err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = c.Bridge, mtu
	// A fixed address: the kernel would else change the bridge's with every pod that comes or goes.
	attrs.HardwareAddr = hardwareAddr(Gateway(c.CIDRs[0]))
	err = netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs})
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("create bridge %s: %w", c.Bridge, err)
	}
	link, err := netlink.LinkByName(c.Bridge)
	if err != nil {
		return fmt.Errorf("bridge %s: %w", c.Bridge, err)
	}
	if link.Type() != "bridge" {
		return notABridge(link)
	}
	if link.Attrs().Alias == "" {
		if err := netlink.LinkSetAlias(link, bridgeMark); err != nil {
			return fmt.Errorf("bridge %s: mark it as wherry's: %w", c.Bridge, err)
		}
	}
	if link.Attrs().MTU != mtu {
		if err := netlink.LinkSetMTU(link, mtu); err != nil {
			return fmt.Errorf("bridge %s: set MTU %d: %w", c.Bridge, mtu, err)
		}
	}
	for _, p := range c.CIDRs {
		if p.Addr().Is6() {
			// Pods announce no routes, and nobody else is there to hold our address.
			for _, key := range []string{"accept_ra", "accept_dad"} {
				if err := sysctl("0", "ipv6", "conf", c.Bridge, key); err != nil {
					return err
				}
			}
		}
	}
	if err := setAddresses(c, link); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("bridge %s up: %w", c.Bridge, err)
	}
	return nil
}

// setAddresses gives the bridge its gateway addresses and takes away those of a former configuration.
func setAddresses(c Config, link netlink.Link) error {
	want := map[netip.Prefix]bool{}
	for _, p := range c.CIDRs {
		want[netip.PrefixFrom(Gateway(p), p.Bits())] = true
	}
	have, err := dump(func() ([]netlink.Addr, error) { return netlink.AddrList(link, netlink.FAMILY_ALL) })
	if err != nil {
		return fmt.Errorf("bridge %s: addresses: %w", c.Bridge, err)
	}
	for _, a := range have {
		ones, _ := a.Mask.Size()
		ip, _ := netip.AddrFromSlice(a.IP)
		p := netip.PrefixFrom(ip.Unmap(), ones)
		if want[p] || p.Addr().IsLinkLocalUnicast() {
			delete(want, p)
			continue
		}
		if err := netlink.AddrDel(link, &a); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return fmt.Errorf("bridge %s: remove address %s: %w", c.Bridge, p, err)
		}
	}
	for p := range want {
		if err := netlink.AddrAdd(link, address(p)); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("bridge %s: add address %s: %w", c.Bridge, p, err)
		}
	}
	return nil
}

func address(p netip.Prefix) *netlink.Addr {
	a := &netlink.Addr{IPNet: ipNet(p)}
	if p.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	return a
}

// defaultRoute is the default route of the family of p.
func defaultRoute(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4() {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// forward lets packets pass between the bridge and the world.
func forward(c Config) error {
	for _, p := range c.CIDRs {
		if p.Addr().Is4() {
			if err := sysctl("1", "ipv4", "ip_forward"); err != nil {
				return err
			}
			continue
		}
		if err := keepAdvertisedRoutes(); err != nil {
			return err
		}
		if err := sysctl("1", "ipv6", "conf", "all", "forwarding"); err != nil {
			return err
		}
	}
	return nil
}

// keepAdvertisedRoutes makes devices that learnt their default route from router advertisements go on listening: by
// default a kernel that forwards IPv6 ignores them, and the machine would lose its own way out.
func keepAdvertisedRoutes() error {
	routes, err := dump(func() ([]netlink.Route, error) { return netlink.RouteList(nil, netlink.FAMILY_V6) })
	if err != nil {
		return fmt.Errorf("read the machine's routes: %w", err)
	}
	for _, r := range routes {
		if r.Protocol != unix.RTPROT_RA || !isDefault(r) {
			continue
		}
		l, err := netlink.LinkByIndex(r.LinkIndex)
		if err != nil {
			continue // gone since
		}
		name := l.Attrs().Name
		if v, err := os.ReadFile(sysctlPath("ipv6", "conf", name, "accept_ra")); err == nil &&
			strings.TrimSpace(string(v)) == "1" {
			if err := sysctl("2", "ipv6", "conf", name, "accept_ra"); err != nil {
				return err
			}
		}
	}
	return nil
}

func isDefault(r netlink.Route) bool {
	if r.Dst == nil {
		return true
	}
	ones, _ := r.Dst.Mask.Size()
	return ones == 0 && r.Dst.IP.IsUnspecified()
}

// outsideMTU is that of the device of the default route, the lowest if there are several; without one, Ethernet's.
func outsideMTU() (int, error) {
	mtu := 0
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := dump(func() ([]netlink.Route, error) { return netlink.RouteList(nil, family) })
		if err != nil {
			return 0, fmt.Errorf("read the machine's routes: %w", err)
		}
		for _, r := range routes {
			if !isDefault(r) || r.LinkIndex == 0 {
				continue
			}
			if l, err := netlink.LinkByIndex(r.LinkIndex); err == nil && (mtu == 0 || l.Attrs().MTU < mtu) {
				mtu = l.Attrs().MTU
			}
		}
	}
	if mtu < 1280 || mtu > 65535 {
		mtu = 1500
	}
	return mtu, nil
}

func sysctlPath(parts ...string) string {
	return filepath.Join(append([]string{"/proc/sys/net"}, parts...)...)
}

// sysctl sets a network parameter of the calling thread's network namespace, unless it has the value: the file may be
// read-only then.
func sysctl(value string, parts ...string) error {
	path := sysctlPath(parts...)
	if v, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(v)) == value {
		return nil
	}
	if err := os.WriteFile(path, []byte(value), 0); err != nil {
		return fmt.Errorf("set %s to %s: %w", path, value, err)
	}
	return nil
}

// bridgePorts names the devices attached to a bridge.
func bridgePorts(bridge int) ([]string, error) {
	links, err := dump(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list network devices: %w", err)
	}
	var out []string
	for _, l := range links {
		if l.Attrs().MasterIndex == bridge {
			out = append(out, l.Attrs().Name)
		}
	}
	return out, nil
}

// dump repeats a listing during which the kernel's tables changed, so that it is of one moment.
func dump[T any](list func() ([]T, error)) ([]T, error) {
	const tries = 50
	for i := 0; ; i++ {
		out, err := list()
		if i == tries || !errors.Is(err, netlink.ErrDumpInterrupted) {
			return out, err
		}
	}
}
