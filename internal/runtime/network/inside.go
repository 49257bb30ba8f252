// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// keepInside gives the machine a last way to the pods' addresses, which refuses. The bridge's own comes before it;
// while that is gone, packets to pods would else leave by the default route, for whoever has these addresses there.
func keepInside(c Config) error {
	for _, p := range c.CIDRs {
		if err := netlink.RouteReplace(lastRoute(c, p)); err != nil {
			return fmt.Errorf("route that keeps packets to pods (%s) on this machine: %w", p, err)
		}
	}
	return nil
}

func lastRoute(c Config, p netip.Prefix) *netlink.Route {
	return &netlink.Route{Dst: ipNet(p), Type: unix.RTN_UNREACHABLE, Protocol: routeMark,
		Priority: routeMetric(c.Bridge)}
}

// keptInside reports whether these routes are there.
func keptInside(c Config) (bool, error) {
	routes, err := ownRoutes(c.Bridge)
	if err != nil {
		return false, err
	}
	there := map[string]bool{}
	for _, r := range routes {
		if r.Type == unix.RTN_UNREACHABLE && r.Dst != nil {
			there[r.Dst.String()] = true
		}
	}
	for _, p := range c.CIDRs {
		if !there[ipNet(p).String()] {
			return false, nil
		}
	}
	return true, nil
}

// ownRoutes are those that the network with this bridge has besides the bridge's.
func ownRoutes(bridge string) ([]netlink.Route, error) {
	var out []netlink.Route
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := dump(func() ([]netlink.Route, error) {
			return netlink.RouteListFiltered(family, &netlink.Route{Protocol: routeMark}, netlink.RT_FILTER_PROTOCOL)
		})
		if errors.Is(err, unix.EAFNOSUPPORT) {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, fmt.Errorf("read the machine's routes: %w", err)
		}
		for _, r := range routes {
			if r.Priority == routeMetric(bridge) {
				out = append(out, r)
			}
		}
	}
	return out, nil
}

// toServices distinguishes a route to a service's address from those that keep packets inside or lead to other nodes.
func toServices(r netlink.Route) bool { return r.Type != unix.RTN_UNREACHABLE && !toNodes(r) }

// forgetRoutes removes some of them.
func forgetRoutes(bridge string, which func(netlink.Route) bool) error {
	routes, err := ownRoutes(bridge)
	errs := []error{err}
	for _, r := range routes {
		if !which(r) {
			continue
		}
		if err := netlink.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("remove the route to %s: %w", r.Dst, err))
		}
	}
	return errors.Join(errs...)
}
