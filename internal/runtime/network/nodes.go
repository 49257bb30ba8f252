// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Node is another machine whose pods are to be reached by their own addresses.
type Node struct {
	Name     string
	Networks []netip.Prefix // of its pods
	At       []netip.Addr   // the machine's own addresses
}

// Unreached is a network of a node that packets do not find, and why.
type Unreached struct {
	Node    string
	Network netip.Prefix
	Why     string
}

// around is what of this machine decides how nodes are reached.
type around struct {
	pods   []netip.Prefix // of this network
	own    []netip.Addr   // addresses of this machine
	routes []hostRoute    // of others than us
}

// way leads to a node's network. One without a next hop is there already: the network is on this machine, as of an
// agent beside the server, or somebody else has a route to it.
type way struct {
	node string
	to   netip.Prefix
	via  netip.Addr
}

// ways decides how nodes are reached, in the order of their networks. A node harms nobody but itself, whatever it says
// of its addresses: a network that this machine is on, or a part of, stays where it is. (Pure.)
func ways(nodes []Node, a around) (out []way, not []Unreached) {
	for _, n := range nodes {
		for _, to := range n.Networks {
			w := way{node: n.Name, to: to.Masked()}
			if why := w.find(n, a); why != "" {
				not = append(not, Unreached{n.Name, w.to, why})
				continue
			}
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b way) int { return a.to.Compare(b.to) })
	var kept []way
	for _, w := range out {
		if last := len(kept) - 1; last >= 0 && kept[last].to.Overlaps(w.to) {
			not = append(not, Unreached{w.node, w.to, fmt.Sprintf("it overlaps with %s of node %s", kept[last].to,
				kept[last].node)})
			continue
		}
		kept = append(kept, w)
	}
	return kept, not
}

// find finds the way to a network; why says that there is none.
func (w *way) find(n Node, a around) (why string) {
	for _, p := range a.pods {
		if p.Overlaps(w.to) {
			return fmt.Sprintf("it overlaps with %s, the network of pods here", p)
		}
	}
	at := slices.IndexFunc(n.At, func(at netip.Addr) bool { return at.Unmap().Is4() == w.to.Addr().Is4() })
	if at < 0 {
		return "the node has no address of its family"
	}
	via := n.At[at].Unmap()
	here := slices.Contains(a.own, via)
	for _, r := range a.routes {
		switch {
		case !r.dst.Overlaps(w.to):
		case r.dst == w.to && (here || !r.linked):
			return "" // it is on this machine, or somebody has seen to it
		case r.linked && !here:
			return fmt.Sprintf("this machine is on %s itself", r.dst)
		}
	}
	switch {
	case here:
		return "the node's address is one of this machine, but its network is not here"
	case !via.IsGlobalUnicast() || via.IsLoopback():
		return fmt.Sprintf("%s is not the address of a machine", via)
	case w.to.Contains(via) || slices.ContainsFunc(a.pods, func(p netip.Prefix) bool { return p.Contains(via) }):
		return fmt.Sprintf("the node's address, %s, is one of a pod", via)
	}
	w.via = via
	return ""
}

// look reads what there is around the network.
func lookAround(c Config) (a around, err error) {
	a.pods = c.CIDRs
	if a.routes, err = otherRoutes(c.Bridge); err != nil {
		return a, err
	}
	addrs, err := dump(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return a, fmt.Errorf("read the machine's addresses: %w", err)
	}
	for _, x := range addrs {
		if ip, ok := netip.AddrFromSlice(x.IP); ok {
			a.own = append(a.own, ip.Unmap())
		}
	}
	return a, nil
}

// toNodes distinguishes a route to a node's network from the others of ours.
func toNodes(r netlink.Route) bool { return r.Gw != nil }

func (c Config) routeTo(w way) *netlink.Route {
	return &netlink.Route{Dst: ipNet(w.to), Gw: w.via.AsSlice(), Protocol: routeMark, Priority: routeMetric(c.Bridge)}
}

// reach makes the kernel reach nodes by these ways and by no others: packets of pods leave with their own addresses
// there, so that whoever gets them knows who asks. It returns which ways the machine has, which it cannot go, and the
// devices of those that it can.
func reach(c Config, list []way) (made []way, not []Unreached, devices []string, err error) {
	wanted := map[string]bool{}
	for _, w := range list {
		if w.via.IsValid() {
			if err := netlink.RouteReplace(c.routeTo(w)); err != nil {
				not = append(not, Unreached{w.node, w.to, noWay(w, err)})
				continue
			}
			wanted[ipNet(w.to).String()] = true
		}
		made = append(made, w)
	}
	t, err := openTable(c.Bridge)
	if err != nil {
		return nil, nil, nil, err
	}
	defer t.close()
	if err := t.setNodes(made); err != nil {
		return nil, nil, nil, err
	}
	devices, err = leadTo(c.Bridge, wanted)
	return made, not, devices, errors.Join(err, forgetRoutes(c.Bridge, func(r netlink.Route) bool {
		return toNodes(r) && (r.Dst == nil || !wanted[r.Dst.String()])
	}))
}

func noWay(w way, err error) string {
	if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.EINVAL) {
		return fmt.Sprintf("its machine, %s, is not on a network of this one: put both on one network (a VPN such as WireGuard counts), have the node state its address there (--node-ip), or route %s to it yourself", w.via, w.to)
	}
	return fmt.Sprintf("route by %s: %v", w.via, err)
}

// leadTo are the devices by which IPv4 packets to these networks leave.
func leadTo(bridge string, networks map[string]bool) (out []string, err error) {
	routes, err := ownRoutes(bridge)
	if err != nil {
		return nil, err
	}
	for _, r := range routes {
		if !toNodes(r) || r.Dst == nil || !networks[r.Dst.String()] || r.Dst.IP.To4() == nil {
			continue
		}
		if l, err := netlink.LinkByIndex(r.LinkIndex); err == nil && !slices.Contains(out, l.Attrs().Name) {
			out = append(out, l.Attrs().Name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// reached reports whether the kernel has these ways, and no others.
func reached(c Config, list []way) (bool, error) {
	routes, err := ownRoutes(c.Bridge)
	if err != nil {
		return false, err
	}
	var have, want []string
	for _, r := range routes {
		if toNodes(r) && r.Dst != nil {
			have = append(have, r.Dst.String()+" "+r.Gw.String())
		}
	}
	for _, w := range list {
		if w.via.IsValid() {
			want = append(want, ipNet(w.to).String()+" "+w.via.String())
		}
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		return false, nil
	}
	t, err := openTable(c.Bridge)
	if err != nil {
		return false, err
	}
	defer t.close()
	return t.hasNodes(list)
}

// Reach has pods here and on other nodes reach one another by their own addresses, from now on, in place of the nodes
// named before; nil gives all of that back. It says which networks are not reached; an error is of this machine. See
// decision 062.
func (k *Keeper) Reach(nodes []Node) (not []Unreached, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.nodes, k.reaches = nodes, true
	return k.reach()
}

func (k *Keeper) reach() (not []Unreached, err error) {
	a, err := lookAround(k.config)
	if err != nil {
		return nil, err
	}
	list, not := ways(k.nodes, a)
	made, refused, devices, err := reach(k.config, list)
	k.ways = made
	if err != nil {
		return nil, err
	}
	intact, err := fingerprint(k.config.Bridge)
	if err != nil {
		return nil, err
	}
	if err := leave(k.config, devices); err != nil {
		return nil, err
	}
	if intact == k.rules { // else something is amiss, and is found by the next look
		if k.rules, err = fingerprint(k.config.Bridge); err != nil {
			return nil, err
		}
	}
	return append(not, refused...), nil
}

// String is for the log.
func (u Unreached) String() string {
	return fmt.Sprintf("%s of node %s: %s", u.Network, u.Node, strings.TrimSpace(u.Why))
}
