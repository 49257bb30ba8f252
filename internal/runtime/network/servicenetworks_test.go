// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
)

// TestSeveralServiceNetworks: WL-25: what is sent to any network of services and to no service is refused, and the
// machine has a way to each, for as long as it is one; pods stay reachable where their network lies in one.
func TestSeveralServiceNetworks(t *testing.T) {
	out := beyond(t, "10.96.0.7/32", "203.0.113.7/32")
	out.listen("tcp", "foreign", 443)
	c := host(t, "wt-svc7", "10.201.41.0/24")
	p, q := addPod(t, c, "p"), addPod(t, c, "q")
	q.listen("tcp", "pod", 80)
	networks := func(list ...string) (out []netip.Prefix) {
		for _, text := range list {
			out = append(out, netip.MustParsePrefix(text))
		}
		return out
	}
	s := Services{API: netip.MustParseAddrPort("10.96.0.1:443"), Server: apiServer(t, "127.0.0.1"), Proxied: true}
	carry := func(list ...string) {
		t.Helper()
		s.Refused = networks(list...)
		if _, err := Carry(c, s); err != nil {
			t.Fatal(err)
		}
		ways := map[string]bool{}
		all, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: routeMark},
			netlink.RT_FILTER_PROTOCOL)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			ways[r.Dst.String()] = true
		}
		if !ways["10.96.0.0/12"] || ways["203.0.113.0/24"] != (len(list) > 1 && list[1] == "203.0.113.0/24") {
			t.Errorf("with %v there are ways to %v", list, ways)
		}
	}
	carry("10.96.0.0/12", "203.0.113.0/24")
	for _, addr := range []string{"10.96.0.7:443", "203.0.113.7:443"} {
		wantRefused(t, "pod", p.call, addr)
		wantRefused(t, "host", call, addr)
	}
	carry("10.96.0.0/12")
	wantRefused(t, "pod", p.call, "10.96.0.7:443")
	for who, from := range map[string]func(string, string) (string, error){"pod": p.call, "host": call} {
		if got, err := from("tcp", "203.0.113.7:443"); err != nil || !strings.HasPrefix(got, "foreign ") {
			t.Errorf("%s, to a network that is services' no more: %q, %v", who, got, err)
		}
	}

	carry("10.96.0.0/12", "10.201.0.0/16")
	for who, from := range map[string]func(string, string) (string, error){"pod": p.call, "host": call} {
		if got, err := from("tcp", q.ip(0)+":80"); err != nil || !strings.HasPrefix(got, "pod ") {
			t.Errorf("%s, to a pod within a network of services: %q, %v", who, got, err)
		}
		wantRefused(t, who, from, "10.201.99.9:80")
	}
	if err := Teardown(c); err != nil {
		t.Fatal(err)
	}
	wantNoRoute(t)
}
