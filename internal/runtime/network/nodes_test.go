// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
)

func networks(texts ...string) (out []netip.Prefix) {
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

func addresses(texts ...string) (out []netip.Addr) {
	for _, t := range texts {
		out = append(out, netip.MustParseAddr(t))
	}
	return out
}

// WL-20: how nodes are reached; one that states nonsense harms itself alone.
func TestWays(t *testing.T) {
	a := around{pods: networks("10.9.0.0/24", "fd00:9::/64"), own: addresses("192.0.2.1", "10.9.0.1"), routes: []hostRoute{
		{dst: netip.MustParsePrefix("192.0.2.0/24"), linked: true},
		{dst: netip.MustParsePrefix("10.9.3.0/24"), linked: true},
		{dst: netip.MustParsePrefix("10.9.4.0/24")},
		{dst: netip.MustParsePrefix("10.9.0.0/16")},
		{dst: netip.MustParsePrefix("172.30.0.0/16"), linked: true},
	}}
	for _, tc := range []struct {
		what  string
		nodes []Node
		want  string
	}{
		{"none", nil, "[] []"},
		{"two, sorted by network", []Node{
			{"b", networks("10.9.2.0/24"), addresses("192.0.2.3")}, {"a", networks("10.9.1.0/24"), addresses("192.0.2.2")},
		}, "[10.9.1.0/24 via 192.0.2.2, 10.9.2.0/24 via 192.0.2.3] []"},
		{"each family by its own", []Node{{"b", networks("10.9.2.0/24", "fd00:a::/64"), addresses("2001:db8::2", "192.0.2.3")}},
			"[10.9.2.0/24 via 192.0.2.3, fd00:a::/64 via 2001:db8::2] []"},
		{"no address of the family", []Node{{"b", networks("fd00:a::/64"), addresses("192.0.2.3")}},
			"[] [fd00:a::/64 of node b: the node has no address of its family]"},
		{"the pods' own network", []Node{{"b", networks("10.9.0.0/16"), addresses("192.0.2.3")}},
			"[] [10.9.0.0/16 of node b: it overlaps with 10.9.0.0/24, the network of pods here]"},
		{"on this machine", []Node{{"b", networks("10.9.3.0/24"), addresses("192.0.2.1")}}, "[10.9.3.0/24] []"},
		{"not on this machine, whose address it has", []Node{{"b", networks("10.9.5.0/24"), addresses("192.0.2.1")}},
			"[] [10.9.5.0/24 of node b: the node's address is one of this machine, but its network is not here]"},
		{"somebody has a route to it", []Node{{"b", networks("10.9.4.0/24"), addresses("192.0.2.3")}}, "[10.9.4.0/24] []"},
		{"the machine's own network", []Node{{"b", networks("192.0.2.0/24"), addresses("192.0.2.3")}},
			"[] [192.0.2.0/24 of node b: this machine is on 192.0.2.0/24 itself]"},
		{"a part of one of them", []Node{{"b", networks("172.30.4.0/24"), addresses("192.0.2.3")}},
			"[] [172.30.4.0/24 of node b: this machine is on 172.30.0.0/16 itself]"},
		{"all there is", []Node{{"b", networks("0.0.0.0/0"), addresses("192.0.2.3")}, {"c", networks("10.9.1.0/24"), addresses("192.0.2.4")}},
			"[10.9.1.0/24 via 192.0.2.4] [0.0.0.0/0 of node b: it overlaps with 10.9.0.0/24, the network of pods here]"},
		{"an address that is no machine's", []Node{{"b", networks("10.9.1.0/24"), addresses("255.255.255.255")},
			{"c", networks("10.9.2.0/24"), addresses("127.0.0.1")}, {"d", networks("10.9.6.0/24"), addresses("224.0.0.1")}},
			"[] [10.9.1.0/24 of node b: 255.255.255.255 is not the address of a machine 10.9.2.0/24 of node c: 127.0.0.1 is not the address of a machine 10.9.6.0/24 of node d: 224.0.0.1 is not the address of a machine]"},
		{"the address of a pod", []Node{{"b", networks("10.9.1.0/24"), addresses("10.9.0.7")}, {"c", networks("10.9.2.0/24"), addresses("10.9.2.7")}},
			"[] [10.9.1.0/24 of node b: the node's address, 10.9.0.7, is one of a pod 10.9.2.0/24 of node c: the node's address, 10.9.2.7, is one of a pod]"},
		{"two with one network", []Node{{"b", networks("10.9.1.0/24"), addresses("192.0.2.3")}, {"c", networks("10.9.1.0/25"), addresses("192.0.2.4")}},
			"[10.9.1.0/24 via 192.0.2.3] [10.9.1.0/25 of node c: it overlaps with 10.9.1.0/24 of node b]"},
	} {
		list, not := ways(tc.nodes, a)
		var texts []string
		for _, w := range list {
			text := w.to.String()
			if w.via.IsValid() {
				text += " via " + w.via.String()
			}
			texts = append(texts, text)
		}
		if got := fmt.Sprintf("[%s] %v", strings.Join(texts, ", "), not); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.what, got, tc.want)
		}
	}
}

// WL-20: intervals of the kernel's sets, also of networks beside one another and at the end of all addresses.
func TestIntervals(t *testing.T) {
	for networks, want := range map[string]string{
		"10.1.0.0/24":               "[10.1.0.0 false 10.1.1.0 true]",
		"10.1.0.0/24 10.1.1.0/24":   "[10.1.0.0 false 10.1.2.0 true]",
		"10.1.0.0/24 10.1.2.0/24":   "[10.1.0.0 false 10.1.1.0 true 10.1.2.0 false 10.1.3.0 true]",
		"255.255.255.0/24":          "[255.255.255.0 false]",
		"10.1.0.0/24 fd00:1::/64":   "[10.1.0.0 false 10.1.1.0 true]",
		"10.1.0.0/255 is not taken": "[]",
	} {
		var list []way
		for _, text := range strings.Fields(networks) {
			if p, err := netip.ParsePrefix(text); err == nil {
				list = append(list, way{to: p})
			}
		}
		var got []string
		for _, e := range intervals(list, ipv4()) {
			a, _ := netip.AddrFromSlice(e.Key)
			got = append(got, fmt.Sprint(a, " ", e.IntervalEnd))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", networks, got, want)
		}
	}
}

// WL-20: pods here and on another node see one another by their own addresses; what somebody takes away is made again; what is not a node's is
// left as it was, and in the end nothing is left.
func TestReach(t *testing.T) {
	c := host(t, "wt-reach", "10.201.71.0/24")
	other := outside(t, "198.18.0.0/24", "fd00:198::/64")
	err := other.do(func() error { // the other node with a pod, in one
		up, err := netlink.LinkByName("up")
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(up, address(netip.MustParsePrefix("10.201.72.5/32"))); err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{Dst: ipNet(netip.MustParsePrefix("10.201.71.0/24")), Gw: []byte{198, 18, 0, 1}})
	})
	if err != nil {
		t.Fatal(err)
	}
	other.listen("tcp", "other", 80)
	p := addPod(t, c, "p")
	p.listen("tcp", "p", 80)
	k, err := NewKeeper(c, func(context.Context) ([]Pod, error) { return nil, nil }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	nodes := []Node{
		{"other", networks("10.201.72.0/24"), addresses("198.18.0.2")},
		{"far", networks("10.201.73.0/24"), addresses("203.0.113.9")},
		{"greedy", networks("198.18.0.0/16"), addresses("198.18.0.2")},
	}
	not, err := k.Reach(nodes)
	if err != nil || len(not) != 2 || !strings.Contains(fmt.Sprint(not), "greedy: this machine is on 198.18.0.0/24") ||
		!strings.Contains(fmt.Sprint(not), "far: its machine, 203.0.113.9, is not on a network of this one") {
		t.Errorf("not reached: %v, %v", not, err)
	}
	see := func(when string) {
		t.Helper()
		got, err := p.call("tcp", "10.201.72.5:80")
		wantAnswer(t, got, err, "other "+p.ip(0))
		got, err = other.call("tcp", p.ip(0)+":80")
		if err != nil || !strings.HasPrefix(got, "p 198.18.0.2") {
			t.Errorf("%s: from the other node: %q, %v", when, got, err)
		}
		got, err = p.call("tcp", "198.18.0.2:80") // a machine knows no way to pods of another's but by this
		wantAnswer(t, got, err, "other 198.18.0.1")
	}
	see("at first")
	if repairs, err := amiss(k); err != nil || repairs != "[]" {
		t.Errorf("of an intact network, these are to be mended: %s %v", repairs, err)
	}

	if err := netlink.RouteDel(c.routeTo(k.ways[0])); err != nil {
		t.Fatal(err)
	}
	if repairs, err := amiss(k); err != nil || repairs != "[routes to pods of other nodes]" {
		t.Errorf("without a route, these are to be mended: %s %v", repairs, err)
	}
	if err := k.Mend(t.Context()); err != nil {
		t.Fatal(err)
	}
	see("with the route again")
	table, err := openTable(c.Bridge)
	if err != nil {
		t.Fatal(err)
	}
	defer table.close()
	if err := table.remove(); err != nil {
		t.Fatal(err)
	}
	if err := k.Mend(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := k.Mend(t.Context()); err != nil { // what was not seen missing in a table that was
		t.Fatal(err)
	}
	see("with the table again")
	if err := Setup(c); err != nil { // a server that starts
		t.Fatal(err)
	}
	see("before the nodes are known again")

	for range 2 {
		if not, err := k.Reach(nil); err != nil || len(not) > 0 {
			t.Fatal(not, err)
		}
		routes, err := ownRoutes(c.Bridge)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range routes {
			if toNodes(r) {
				t.Errorf("left: %s", r)
			}
		}
	}
}

// WL-20: packets from 127.0.0.1 may leave to other nodes, and nothing comes in for it by the devices that are open for that; they are closed
// with the last node, and with the network.
func TestLeaves(t *testing.T) {
	c := host(t, "wt-leaves", "10.201.74.0/24")
	outside(t, "198.18.0.0/24", "fd00:198::/64")
	k, err := NewKeeper(c, func(context.Context) ([]Pod, error) { return nil, nil }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	open := func() bool { return isOn("ipv4", "conf", "wt-up", "route_localnet") }
	nodes := []Node{{"other", networks("10.201.75.0/24"), addresses("198.18.0.2")}}
	for _, end := range []func() error{
		func() error { _, err := k.Reach(nil); return err },
		func() error { return Teardown(c) },
	} {
		if _, err := k.Reach(nodes); err != nil {
			t.Fatal(err)
		}
		if n := rules(t, c)["guard-nodes"]; !open() || n != 2 {
			t.Errorf("open: %t, %d rules guard it", open(), n)
		}
		if err := Setup(c); err != nil { // a server that starts
			t.Fatal(err)
		}
		if n := rules(t, c)["guard-nodes"]; n != 2 {
			t.Errorf("%d rules guard the device after a start", n)
		}
		if err := os.WriteFile(sysctlPath("ipv4", "conf", "wt-up", "route_localnet"), []byte("0"), 0); err != nil {
			t.Fatal(err)
		}
		if err := k.Mend(t.Context()); err != nil || !open() {
			t.Errorf("closed by somebody: open again %t, %v", open(), err)
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if open() {
			t.Error("the device is open still")
		}
	}
	if err := os.WriteFile(sysctlPath("ipv4", "conf", "wt-up", "route_localnet"), []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	if err := Setup(c); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Reach(nodes); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Reach(nil); err != nil || !open() {
		t.Errorf("one that somebody else has opened was closed: %v", err)
	}
}

// amiss is what a look finds.
func amiss(k *Keeper) (string, error) {
	w, err := k.want(nil)
	if err != nil {
		return "", err
	}
	s, err := look(k.config, k.services, k.rules)
	if err == nil {
		s.nodes, err = reached(k.config, k.ways)
	}
	return fmt.Sprint(mend(w, s)), err
}
