// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// RS-09: while the bridge is gone, packets to pods do not leave the machine by its default route; when it is there again, they take it; the
// route that keeps them is made again, and goes with the network.
func TestPacketsToPodsStayInside(t *testing.T) {
	beyond(t)
	c := host(t, "wt-inside", "10.201.61.0/24")
	k, err := NewKeeper(c, func(context.Context) ([]Pod, error) { return nil, nil }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	pod := net.IPv4(10, 201, 61, 7)
	takes := func(what string) {
		t.Helper()
		l, err := netlink.LinkByName(c.Bridge)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := netlink.RouteGet(pod); err != nil || len(got) == 0 || got[0].LinkIndex != l.Attrs().Index {
			t.Errorf("%s: packets take %v, %v", what, got, err)
		}
	}
	takes("at first")
	lose(t, c.Bridge)
	if got, err := netlink.RouteGet(pod); err == nil {
		t.Errorf("without a bridge, packets take %v", got)
	}
	if err := netlink.RouteDel(lastRoute(c, c.CIDRs[0])); err != nil {
		t.Fatal(err)
	}
	if err := k.Mend(t.Context()); err != nil {
		t.Fatal(err)
	}
	takes("mended")
	if kept, err := keptInside(c); err != nil || !kept {
		t.Errorf("the route was not made again: %v", err)
	}
	if err := Teardown(c); err != nil {
		t.Fatal(err)
	}
	left, err := netlink.RouteListFiltered(unix.AF_UNSPEC, &netlink.Route{Protocol: routeMark}, netlink.RT_FILTER_PROTOCOL)
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}
