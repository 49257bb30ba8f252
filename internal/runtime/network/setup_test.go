// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
)

// RS-09, ATTACK C36: a device of the machine's or of another program's is neither taken nor removed: --bridge-name lo cut the machine off from itself,
// docker0 would lose its addresses, and with a purge its pods.
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
	c := Config{"wt-other", []netip.Prefix{netip.MustParsePrefix("10.201.31.0/24")}, filepath.Join(t.TempDir(), "network")}
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
	outside := Services{API: netip.MustParseAddrPort("10.96.0.1:443"), Server: netip.MustParseAddrPort("127.0.0.1:6443"), Refused: netip.MustParsePrefix("10.96.0.0/12")}
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

// RS-09: a bridge of ours is known by its hardware address when its rules were flushed, and by its rules when the subnet is another.
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
