// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestHostPorts(t *testing.T) {
	c := host(t, "wt-ports", "10.201.3.0/24", "fd00:201:3::/64")
	out := outside(t, "198.18.1.0/24", "fd00:198:1::/64")
	web := addPod(t, c, "web",
		PortMapping{HostPort: 18080, ContainerPort: 80, Protocol: "tcp"},
		PortMapping{HostPort: 18080, ContainerPort: 53, Protocol: "UDP"},
		PortMapping{HostPort: 18081, ContainerPort: 80, Protocol: "tcp", HostIP: "198.18.1.1"},
		PortMapping{HostPort: 18082, ContainerPort: 80, Protocol: "tcp", HostIP: "127.0.0.1"},
		PortMapping{HostPort: 18083, ContainerPort: 80, Protocol: "tcp", HostIP: "fd00:198:1::1"},
		PortMapping{ContainerPort: 99})
	web.listen("tcp", "web", 80)
	web.listen("udp", "web", 53)
	other := addPod(t, c, "other")

	for _, tc := range []struct {
		what, network, addr, want string
		from                      *sandbox // nil: the host
	}{
		{"host by 127.0.0.1", "tcp", "127.0.0.1:18080", "web 10.201.3.1", nil},
		{"host by 127.0.0.1", "udp", "127.0.0.1:18080", "web 10.201.3.1", nil},
		{"host by its address", "tcp", "198.18.1.1:18080", "web 198.18.1.1", nil},
		{"host by the bridge", "tcp", "10.201.3.1:18080", "web 10.201.3.1", nil},
		{"host by its IPv6 address", "tcp", "[fd00:198:1::1]:18080", "web fd00:198:1::1", nil},
		{"outside", "tcp", "198.18.1.1:18080", "web 198.18.1.2", out},
		{"outside", "udp", "198.18.1.1:18080", "web 198.18.1.2", out},
		{"outside by IPv6", "tcp", "[fd00:198:1::1]:18080", "web fd00:198:1::2", out},
		{"another pod", "tcp", "198.18.1.1:18080", "web 10.201.3.1", other.sandbox},
		{"the pod itself", "tcp", "198.18.1.1:18080", "web 10.201.3.1", web.sandbox},
		{"the pod itself by IPv6", "tcp", "[fd00:198:1::1]:18080", "web fd00:201:3::1", web.sandbox},
		{"hostIP, outside", "tcp", "198.18.1.1:18081", "web 198.18.1.2", out},
		{"hostIP loopback, host", "tcp", "127.0.0.1:18082", "web 10.201.3.1", nil},
		{"hostIP IPv6, outside", "tcp", "[fd00:198:1::1]:18083", "web fd00:198:1::2", out},
	} {
		t.Run(tc.what+" "+tc.network, func(t *testing.T) {
			do := call
			if tc.from != nil {
				do = tc.from.call
			}
			got, err := do(tc.network, tc.addr)
			wantAnswer(t, got, err, tc.want)
		})
	}
	for _, refused := range []string{"127.0.0.1:18081", "198.18.1.1:18082", "198.18.1.1:18083", "127.0.0.1:80",
		"[::1]:18080"} {
		if got, err := call("tcp", refused); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s: %q, %v; want connection refused", refused, got, err)
		}
	}
	if err := Check(c, web.req); err != nil {
		t.Error("check:", err)
	}
	if err := Setup(c); err != nil {
		t.Fatal(err)
	}
	got, err := call("tcp", "127.0.0.1:18080")
	wantAnswer(t, got, err, "web 10.201.3.1") // a server's restart keeps host ports

	// RS-10
	for at, want := range map[string]bool{"127.0.0.1:18080": true, "0.0.0.0:18081": true, "127.0.0.1:18081": false,
		"127.0.0.1:18084": false} {
		addr := netip.MustParseAddrPort(at)
		if to, err := Forwarded(addr.Addr(), addr.Port()); err != nil || to.IsValid() != want {
			t.Errorf("%s is forwarded to %v (%v); want that it is: %v", at, to, err, want)
		}
	}
	if err := Del(c, Request{Attachment: web.req.Attachment}); err != nil {
		t.Fatal(err)
	}
	if got, err := call("tcp", "127.0.0.1:18080"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("after removal: %q, %v", got, err)
	}
	if ports := hostPortsOf(t, c); len(ports) != 0 {
		t.Errorf("host ports left: %v", ports)
	}
}

// A pod must not reach what listens on the host's loopback only (CVE-2020-8558), though route_localnet is on.
func TestHostLoopbackIsClosedToPods(t *testing.T) {
	c := host(t, "wt-guard", "10.201.4.0/24")
	p := addPod(t, c, "p", PortMapping{HostPort: 18090, ContainerPort: 80})
	if v, err := os.ReadFile(sysctlPath("ipv4", "conf", c.Bridge, "route_localnet")); err != nil ||
		strings.TrimSpace(string(v)) != "1" {
		t.Fatalf("route_localnet of the bridge: %q, %v", v, err)
	}
	secret, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	err = p.do(func() error { // the attacker's trick: no loopback of its own, 127/8 by the host
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		if err := netlink.AddrDel(lo, &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix("127.0.0.1/8"))}); err != nil {
			return err
		}
		if err := sysctl("1", "ipv4", "conf", "eth0", "route_localnet"); err != nil {
			return err
		}
		eth0, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		dst := ipNet(netip.MustParsePrefix("127.0.0.0/8"))
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: eth0.Attrs().Index, Dst: dst,
			Gw: net.ParseIP("10.201.4.1")}); err != nil {
			return err
		}
		local := &net.UDPAddr{IP: p.Addrs[0].Addr().AsSlice()}
		conn, err := net.DialUDP("udp", local, secret.LocalAddr().(*net.UDPAddr))
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte("attack"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = secret.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if n, from, err := secret.ReadFrom(make([]byte, 10)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the host's loopback got %d bytes from %v, %v", n, from, err)
	}
}

func TestHostPortConflicts(t *testing.T) {
	c := host(t, "wt-clash", "10.201.5.0/24")
	second := host(t, "wt-clash2", "10.201.6.0/24")
	tcp := func(hostIP string) PortMapping {
		return PortMapping{HostPort: 18100, ContainerPort: 80, Protocol: "tcp", HostIP: hostIP}
	}
	addPod(t, c, "holder", tcp(""))
	for _, tc := range []struct {
		what  string
		on    Config
		ports []PortMapping
		clash bool
	}{
		{"the same port", c, []PortMapping{tcp("")}, true},
		{"the same port on one address", c, []PortMapping{tcp("127.0.0.1")}, true},
		{"the same port of another server's pod", second, []PortMapping{tcp("")}, true},
		{"twice in one pod", c, []PortMapping{{HostPort: 18101, ContainerPort: 1},
			{HostPort: 18101, ContainerPort: 2, HostIP: "127.0.0.1"}}, true},
		{"another protocol", c, []PortMapping{{HostPort: 18100, ContainerPort: 80, Protocol: "udp"}}, false},
		{"sctp", c, []PortMapping{{HostPort: 18100, ContainerPort: 80, Protocol: "SCTP"}}, false},
		{"two addresses", c, []PortMapping{{HostPort: 18102, ContainerPort: 1, HostIP: "127.0.0.1"},
			{HostPort: 18102, ContainerPort: 2, HostIP: "127.0.0.2"}}, false},
	} {
		t.Run(tc.what, func(t *testing.T) {
			s := newSandbox(t)
			r := Request{Attachment{"asker", "eth0"}, s.path, tc.ports}
			_, err := Add(tc.on, r)
			if tc.clash != errors.Is(err, ErrPortConflict) {
				t.Errorf("error %v, want a conflict: %v", err, tc.clash)
			}
			if !tc.clash && err != nil {
				t.Error(err)
			}
			if err == nil {
				if err := Del(tc.on, r); err != nil {
					t.Error(err)
				}
			}
			if held, _ := Leases(tc.on); tc.on.Bridge == c.Bridge && len(held) != 1 ||
				tc.on.Bridge != c.Bridge && len(held) != 0 {
				t.Errorf("leases afterwards: %v", held)
			}
		})
	}
	s := newSandbox(t)
	_, err := Add(c, Request{Attachment{"asker", "eth0"}, s.path, []PortMapping{tcp("")}})
	if err == nil || !strings.Contains(err.Error(), "18100/tcp is forwarded to 10.201.5.2:80 (sandbox holder") {
		t.Errorf("the message names no holder: %v", err)
	}
}

// A UDP client that never stops sending must follow the host port from one pod to the next.
func TestHostPortUDPFlowMovesToTheNewPod(t *testing.T) {
	c := host(t, "wt-udp", "10.201.7.0/24")
	out := outside(t, "198.18.2.0/24", "")
	m := PortMapping{HostPort: 18110, ContainerPort: 53, Protocol: "udp"}
	var conn net.Conn
	if err := out.do(func() (err error) { conn, err = net.Dial("udp", "198.18.2.1:18110"); return err }); err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	say := func() (string, error) {
		if _, err := conn.Write([]byte("x")); err != nil {
			return "", err
		}
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		buf := make([]byte, 100)
		n, err := conn.Read(buf)
		return string(buf[:n]), err
	}
	for _, name := range []string{"one", "two"} {
		p := addPod(t, c, name, m)
		p.listen("udp", name, 53)
		got, err := say()
		wantAnswer(t, got, err, name+" 198.18.2.2")
		if err := Del(c, p.req); err != nil {
			t.Fatal(err)
		}
	}
}
