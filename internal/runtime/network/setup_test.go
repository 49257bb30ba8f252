// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
)

// RS-09, ATTACK C36: a device of the machine's or of another program's is neither taken nor removed: --bridge-name lo
// cut the machine off from itself, docker0 would lose its addresses, and with a purge its pods.
func TestOtherDevicesStay(t *testing.T) {
	needRoot(t)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "wt-other"
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = deleteLink("wt-other") })
	link, err := netlink.LinkByName("wt-other")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.AddrAdd(link, address(netip.MustParsePrefix("10.201.30.1/24"))); err != nil {
		t.Fatal(err)
	}
	c := Config{Bridge: "wt-other", CIDRs: []netip.Prefix{netip.MustParsePrefix("10.201.31.0/24")},
		StateDir: filepath.Join(t.TempDir(), "network")}
	if err := Setup(c); err == nil || !strings.Contains(err.Error(), "was not made by wherry") {
		t.Errorf("set up: %v", err)
	}
	if err := Teardown(c); err != nil {
		t.Errorf("taken down: %v", err)
	}
	addrs, err := netlink.AddrList(link, netlink.FAMILY_V4)
	if err != nil || len(addrs) != 1 || addrs[0].IP.String() != "10.201.30.1" {
		t.Errorf("addresses %v, %v", addrs, err)
	}
	// Rules that another start left for a bridge of that name do not make it ours (the bridge was removed, and made
	// again by somebody else).
	table, err := openTable(c.Bridge)
	if err != nil {
		t.Fatal(err)
	}
	defer table.close()
	if err := table.ensure(c); err != nil {
		t.Fatal(err)
	}
	if err := Setup(c); err == nil || !strings.Contains(err.Error(), "was not made by wherry") {
		t.Errorf("set up beside rules that were left: %v", err)
	}
	if err := Teardown(c); err != nil {
		t.Errorf("taken down beside rules that were left: %v", err)
	}
	if addrs, err := netlink.AddrList(link, netlink.FAMILY_V4); err != nil || len(addrs) != 1 ||
		addrs[0].IP.String() != "10.201.30.1" {
		t.Errorf("addresses %v, %v", addrs, err)
	}
	outside := Services{API: netip.MustParseAddrPort("10.96.0.1:443"),
		Server:  netip.MustParseAddrPort("127.0.0.1:6443"),
		Refused: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}}
	if _, err := CarryOutside("lo", outside); err == nil || !strings.Contains(err.Error(), "not a bridge") {
		t.Errorf("carried on lo: %v", err)
	}
	for _, bridge := range []string{"lo", "wt-other"} {
		if rules, err := fingerprint(bridge); err != nil || rules != "" {
			t.Errorf("rules for %s: %q, %v", bridge, rules, err)
			_ = ForgetOutside(bridge)
		}
	}
}

// RS-09, ATTACK C36: whose a bridge is, by what the kernel tells of it.
func TestOurs(t *testing.T) {
	now, former, other := netip.MustParsePrefix("10.201.31.0/24"), netip.MustParsePrefix("10.201.32.0/24"),
		netip.MustParsePrefix("10.201.33.0/24")
	at := func(p netip.Prefix) []netip.Addr { return []netip.Addr{Gateway(p)} }
	random := net.HardwareAddr{2, 3, 4, 5, 6, 7}
	c := Config{Bridge: "cni0", CIDRs: []netip.Prefix{now}, Former: []netip.Prefix{former}}
	for _, row := range []struct {
		name string
		d    signs
		c    Config
		want bool
	}{
		{"marked", signs{alias: bridgeMark, hardware: random}, c, true},
		{"marked, its subnet changed, its rules flushed", signs{alias: bridgeMark,
			hardware: hardwareAddr(Gateway(other)), addresses: at(other)}, c, true},
		{"from before marks", signs{hardware: hardwareAddr(Gateway(now)), addresses: at(now), table: true}, c, true},
		{"from before marks, its rules flushed", signs{hardware: hardwareAddr(Gateway(now)), addresses: at(now)}, c,
			true},
		{"from before marks, and now the subnet changes", signs{hardware: hardwareAddr(Gateway(former)),
			addresses: at(former)}, c, true},
		{"from before marks, its subnet was changed once", signs{hardware: hardwareAddr(Gateway(other)),
			addresses: at(now), table: true}, c, true},
		{"the same, and now again", signs{hardware: hardwareAddr(Gateway(other)), addresses: at(former), table: true},
			c, true},
		{"another program's", signs{hardware: random, addresses: at(other)}, c, false},
		{"another program's, with rules that we left", signs{hardware: random, addresses: at(other), table: true}, c,
			false},
		{"another program's, made as CNI plug-ins did", signs{hardware: hardwareAddr(Gateway(other)),
			addresses: at(other), table: true}, c, false},
		{"another program's, with a name for people", signs{alias: "office", hardware: random, table: true}, c, false},
		{"another program's of our subnet", signs{hardware: random, addresses: at(now)}, c, false},
		{"nothing is known of the network", signs{hardware: random, table: true}, Config{Bridge: "cni0"}, false},
	} {
		if got := ours(row.d, row.c); got != row.want {
			t.Errorf("%s: %t", row.name, got)
		}
	}
}

// RS-09: a bridge of ours is known by its mark when its subnet changes, with and without its rules.
func TestBridgeIsMarked(t *testing.T) {
	c := host(t, "wt-marked", "10.201.36.0/24")
	if link, err := existing(c.Bridge); link == nil || err != nil || link.Attrs().Alias != bridgeMark {
		t.Fatalf("%v, %v", link, err)
	}
	for _, subnet := range []string{"10.201.37.0/24", "10.201.38.0/24"} {
		table, err := openTable(c.Bridge)
		if err != nil {
			t.Fatal(err)
		}
		err = table.remove()
		table.close()
		if err != nil {
			t.Fatal(err)
		}
		c.CIDRs = []netip.Prefix{netip.MustParsePrefix(subnet)}
		t.Cleanup(func() { _ = Teardown(c) })
		if err := Setup(c); err != nil {
			t.Errorf("with another subnet: %v", err)
		}
	}
}

// RS-09: a bridge of ours is known when its rules were flushed.
func TestOwnBridgeIsKnown(t *testing.T) {
	c := host(t, "wt-own", "10.201.32.0/24")
	table, err := openTable(c.Bridge)
	if err != nil {
		t.Fatal(err)
	}
	err = table.remove()
	table.close()
	if err != nil {
		t.Fatal(err)
	}
	if err := Setup(c); err != nil {
		t.Errorf("without its rules: %v", err)
	}
}
