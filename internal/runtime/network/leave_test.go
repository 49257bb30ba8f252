// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"testing"

	"github.com/vishvananda/netlink"
)

// RS-09: a data folder moves to another bridge with the same subnet once no pod is attached to the former one, and never touches somebody
// else's.
func TestLeave(t *testing.T) {
	c := host(t, "wt-former", "10.201.33.0/24")
	next := c
	next.Bridge = "wt-next"
	if err := Setup(next); err == nil {
		t.Fatal("two bridges have one subnet")
	}
	link, err := netlink.LinkByName(c.Bridge)
	if err != nil {
		t.Fatal(err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MasterIndex = "wt-pod0", link.Attrs().Index
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "wt-pod1"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = deleteLink("wt-pod0") })
	if err := Leave(c); !errors.Is(err, ErrAttached) {
		t.Errorf("with a pod: %v", err)
	}
	if err := deleteLink("wt-pod0"); err != nil {
		t.Fatal(err)
	}
	other := c
	other.CIDRs = host(t, "wt-third", "10.201.34.0/24").CIDRs
	if err := Leave(other); err != nil {
		t.Errorf("a bridge of other subnets: %v", err)
	}
	if link, err := existing(c.Bridge); link == nil || err != nil {
		t.Errorf("a bridge of other subnets was removed: %v", err)
	}
	for range 2 {
		if err := Leave(c); err != nil {
			t.Errorf("without pods: %v", err)
		}
	}
	if link, err := existing(c.Bridge); link != nil || err != nil {
		t.Errorf("it is still there: %v", err)
	}
	if rules, err := fingerprint(c.Bridge); rules != "" || err != nil {
		t.Errorf("its rules are still there: %s, %v", rules, err)
	}
	t.Cleanup(func() { _ = Teardown(next) })
	if err := Setup(next); err != nil {
		t.Errorf("the next bridge: %v", err)
	}
}
