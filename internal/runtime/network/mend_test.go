// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"net/netip"
	"testing"
)

// TestMend: RS-09, what is decided for each loss, and in which order; an intact network is left alone.
func TestMend(t *testing.T) {
	web := Attachment{"web0123456789abc", "eth0"}
	port := hostPort{proto: 6, port: 8080, to: netip.MustParseAddrPort("10.1.1.2:80")}
	other := hostPort{proto: 6, port: 8081, to: netip.MustParseAddrPort("10.1.1.2:81")}
	w := wanted{loopback: true, nodes: true, pods: []wantedPod{{Pod: Pod{Attachment: web}, ports: []hostPort{port, other}}}}
	whole := func() seen {
		return seen{
			rules: true, bridge: 7, forwarding: true, loopback: true, inside: true, route: true, nodes: true, leaves: true,
			links: map[string]seenLink{vethName(web): {7, true}, "wvstranger": {0, false}},
			ports: map[hostPort]Attachment{port: web, other: web},
		}
	}
	for _, tc := range []struct {
		what  string
		loses func(*seen)
		want  string
	}{
		{"nothing", func(*seen) {}, "[]"},
		{"a rule", func(s *seen) { s.rules = false }, "[firewall table]"},
		{"the table", func(s *seen) { s.rules, s.ports = false, nil }, "[firewall table host ports [8080/tcp 8081/tcp] of sandbox web012345678]"},
		{"a host port", func(s *seen) { delete(s.ports, other) }, "[host ports [8081/tcp] of sandbox web012345678]"},
		{"a host port that is another's", func(s *seen) { s.ports[other] = Attachment{"x", "eth0"} }, "[host ports [8081/tcp] of sandbox web012345678]"},
		{"the bridge", func(s *seen) {
			s.bridge, s.loopback, s.links[vethName(web)] = 0, false, seenLink{0, true}
		}, "[bridge way from the bridge to loopback place on the bridge of sandbox web012345678]"},
		{"the bridge, made by somebody else since", func(s *seen) { s.bridge = 9 }, "[place on the bridge of sandbox web012345678]"},
		{"a device", func(s *seen) { delete(s.links, vethName(web)) }, "[network device of sandbox web012345678]"},
		{"a device's place", func(s *seen) { s.links[vethName(web)] = seenLink{0, true} }, "[place on the bridge of sandbox web012345678]"},
		{"a device that is down", func(s *seen) { s.links[vethName(web)] = seenLink{7, false} }, "[place on the bridge of sandbox web012345678]"},
		{"forwarding", func(s *seen) { s.forwarding = false }, "[forwarding]"},
		{"the route of last resort", func(s *seen) { s.inside = false }, "[route that keeps packets to pods here]"},
		{"the route", func(s *seen) { s.route = false }, "[route to service kubernetes]"},
		{"a way to a node", func(s *seen) { s.nodes = false }, "[routes to pods of other nodes]"},
		{"a device's way out for loopback", func(s *seen) { s.leaves = false }, "[way from loopback to pods of other nodes]"},
		{"everything", func(s *seen) { *s = seen{} }, "[firewall table bridge forwarding way from the bridge to loopback route that keeps packets to pods here route to service kubernetes " +
			"routes to pods of other nodes way from loopback to pods of other nodes network device of sandbox web012345678 host ports [8080/tcp 8081/tcp] of sandbox web012345678]"},
	} {
		s := whole()
		tc.loses(&s)
		if got := fmt.Sprint(mend(w, s)); got != tc.want {
			t.Errorf("%s lost:\n got %s\nwant %s", tc.what, got, tc.want)
		}
	}
	if got := mend(wanted{}, seen{rules: true, bridge: 7, forwarding: true, inside: true, route: true, leaves: true}); len(got) != 0 {
		t.Errorf("without pods and without a way to loopback that is needed: %v", got)
	}
}
