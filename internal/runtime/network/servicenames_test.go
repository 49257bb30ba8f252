// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net"
	"net/netip"
	"strings"
	"testing"
)

// WL-13: the address that pods ask for names leads to the resolver, over UDP and TCP, for pods and the machine, also
// when the server has stopped; a machine without a default route has a way to it; and where it cannot be reached, that
// is said.
func TestServiceNames(t *testing.T) {
	c := host(t, "wt-names", "10.201.25.0/24")
	p := addPod(t, c, "p")
	gateway := Gateway(c.CIDRs[0])
	udp, err := net.ListenPacket("udp", net.JoinHostPort(gateway.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { udp.Close() })
	at := udp.LocalAddr().(*net.UDPAddr).AddrPort()
	tcp, err := net.Listen("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tcp.Close() })
	go answerConns(tcp, "names")
	go answerPackets(udp, "names")
	s := Services{Names: netip.MustParseAddrPort("10.96.0.10:53"), Resolver: at,
		Refused: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}}
	for _, api := range []string{"10.96.0.1:443", ""} { // with a server, and when it has stopped
		s.API, s.Server = netip.AddrPort{}, netip.AddrPort{}
		if api != "" {
			s.API, s.Server = netip.MustParseAddrPort(api), apiServer(t, "127.0.0.1")
		}
		if _, err := Carry(c, s); err != nil {
			t.Fatal(err)
		}
		for _, network := range []string{"udp", "tcp"} {
			got, err := p.call(network, "10.96.0.10:53")
			wantAnswer(t, got, err, "names "+p.ip(0))
			if got, err := call(network, "10.96.0.10:53"); err != nil || !strings.HasPrefix(got, "names ") {
				t.Errorf("from the machine, over %s: %q, %v", network, got, err)
			}
		}
		wantRefused(t, "pod", p.call, "10.96.0.10:54")
	}
	for _, resolver := range []string{"127.0.0.1:53", "[fd00::1]:53"} {
		s.Resolver = netip.MustParseAddrPort(resolver)
		if _, err := Carry(c, s); err == nil || !strings.Contains(err.Error(), "--dns=none") {
			t.Errorf("%s: %v", resolver, err)
		}
	}
	if err := Teardown(c); err != nil {
		t.Fatal(err)
	}
	wantNoRoute(t)
}

// WL-13: the network of a bridge that somebody else has made.
func TestBridgeNetwork(t *testing.T) {
	c := host(t, "wt-bridge", "10.201.26.0/24", "fd00:201:26::/64")
	for is4, want := range map[bool]string{true: "10.201.26.1/24", false: "fd00:201:26::1/64"} {
		if got, err := BridgeNetwork(c.Bridge, is4); err != nil || got.String() != want {
			t.Errorf("%v, %v; want %s", got, err, want)
		}
	}
	if _, err := BridgeNetwork("wt-nobody", true); err == nil || !strings.Contains(err.Error(), "not there yet") {
		t.Error(err)
	}
	if _, err := BridgeNetwork("lo", true); err != nil {
		t.Error(err)
	}
}
