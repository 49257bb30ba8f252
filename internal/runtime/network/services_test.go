// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// apiServer listens on an address of the host and answers who called.
func apiServer(t *testing.T, address string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go answerConns(l, "api")
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// beyond adds a namespace that holds addresses of services, and that the host's default routes lead to.
func beyond(t *testing.T, services ...string) *sandbox {
	t.Helper()
	out := outside(t, "198.18.1.0/24", "fd00:199::/64")
	err := out.do(func() error {
		up, err := netlink.LinkByName("up")
		if err != nil {
			return err
		}
		for _, s := range services {
			if err := netlink.AddrAdd(up, address(netip.MustParsePrefix(s))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, gw := range []string{"198.18.1.2", "fd00:199::2"} {
		if err := netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(gw)}); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// wantRefused wants a connection to be refused, not lost.
func wantRefused(t *testing.T, who string, call func(network, addr string) (string, error), addr string) {
	t.Helper()
	if got, err := call("tcp", addr); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("%s to %s: answer %q, error %v; want it refused", who, addr, got, err)
	}
}

// PL-12: in-cluster clients reach the API server, also one on loopback; nothing to another service leaves the machine.
func TestServices(t *testing.T) {
	out := beyond(t, "10.96.0.1/32", "10.96.0.7/32", "fd00:96::1/128", "fd00:96::7/128")
	out.listen("tcp", "foreign", 443)
	out.listen("udp", "foreign", 53)
	c := host(t, "wt-svc", "10.201.20.0/24", "fd00:201:20::/64")
	p := addPod(t, c, "p")
	got, err := p.call("tcp", "10.96.0.1:443")
	wantAnswer(t, got, err, "foreign 198.18.1.1") // as it is without this

	for _, tc := range []struct {
		name, listen, cidr, api, other, seen string
	}{
		{"loopback", "127.0.0.1", "10.96.0.0/12", "10.96.0.1", "10.96.0.7", p.ip(0)},
		{"an address of the machine", "198.18.1.1", "10.96.0.0/12", "10.96.0.1", "10.96.0.7", p.ip(0)},
		{"IPv6", "fd00:199::1", "fd00:96::/108", "fd00:96::1", "fd00:96::7", p.ip(1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			api := net.JoinHostPort(tc.api, "443")
			s := Services{API: netip.MustParseAddrPort(api), Server: apiServer(t, tc.listen),
				Refused: []netip.Prefix{netip.MustParsePrefix(tc.cidr)}}
			for range 3 { // as at every start of the server
				if own, err := Carry(c, s); err != nil || len(own) > 0 {
					t.Fatal(own, err)
				}
			}
			got, err := p.call("tcp", api)
			wantAnswer(t, got, err, "api "+tc.seen)
			got, err = call("tcp", api)
			if err != nil || !strings.HasPrefix(got, "api ") {
				t.Errorf("from the machine: %q, %v", got, err)
			}
			for range 20 { // more than the kernel sends ICMP messages
				wantRefused(t, "pod", p.call, net.JoinHostPort(tc.other, "443"))
			}
			wantRefused(t, "host", call, net.JoinHostPort(tc.other, "443"))
			wantRefused(t, "pod", p.call, net.JoinHostPort(tc.api, "444"))
			wantRefused(t, "host", call, net.JoinHostPort(tc.api, "444"))
			if got, err := p.call("udp", net.JoinHostPort(tc.other, "53")); !errors.Is(err, unix.ECONNREFUSED) {
				t.Errorf("UDP: %q, %v", got, err)
			}
			if err := Setup(c); err != nil { // the next server's, before its API is up
				t.Fatal(err)
			}
			got, err = p.call("tcp", api)
			wantAnswer(t, got, err, "api "+tc.seen)

			s.API = netip.AddrPort{} // the server stops
			if _, err := Carry(c, s); err != nil {
				t.Fatal(err)
			}
			wantRefused(t, "pod", p.call, api)
			wantRefused(t, "host", call, api)
		})
	}
	if err := Teardown(c); err != nil {
		t.Fatal(err)
	}
	got, err = call("tcp", "10.96.0.1:443")
	wantAnswer(t, got, err, "foreign 198.18.1.1")
	wantNoRoute(t)
}

func wantNoRoute(t *testing.T) {
	t.Helper()
	left, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Protocol: routeMark},
		netlink.RT_FILTER_PROTOCOL)
	if err != nil || len(left) > 0 {
		t.Errorf("routes left: %v, %v", left, err)
	}
}

// PL-12: a server on loopback is reached by its service's endpoint too, which is the machine's own address: by pods,
// and by nobody else.
func TestServicesEndpointOfLoopback(t *testing.T) {
	beyond(t)
	c := host(t, "wt-svce", "10.201.24.0/24")
	p := addPod(t, c, "p")
	s := Services{API: netip.MustParseAddrPort("10.96.0.1:443"), Server: apiServer(t, "127.0.0.1"),
		Refused: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}}
	s.Advertised = netip.AddrPortFrom(netip.MustParseAddr("198.18.1.1"), s.Server.Port())
	if _, err := Carry(c, s); err != nil {
		t.Fatal(err)
	}
	for _, way := range []string{"10.96.0.1:443", s.Advertised.String()} {
		got, err := p.call("tcp", way)
		wantAnswer(t, got, err, "api "+p.ip(0))
	}
	wantRefused(t, "host", call, s.Advertised.String())
	wantRefused(t, "pod", p.call, netip.AddrPortFrom(s.Advertised.Addr(), s.Server.Port()+1).String())
	s.API = netip.AddrPort{} // the server stops
	if _, err := Carry(c, s); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, "pod", p.call, s.Advertised.String())
	s.API, s.Advertised = netip.MustParseAddrPort("10.96.0.1:443"), netip.MustParseAddrPort("[fd00::1]:6443")
	if _, err := Carry(c, s); err == nil {
		t.Error("endpoints of another address family were taken")
	}
}

// PL-12: a machine without a default route has a way to its API server all the same, and two servers do not meet.
func TestServicesOfTwoServersOffline(t *testing.T) {
	one, two := host(t, "wt-svc1", "10.201.21.0/24"), host(t, "wt-svc2", "10.201.22.0/24")
	a, b := addPod(t, one, "a"), addPod(t, two, "b")
	for i, c := range []Config{one, two} {
		s := Services{API: netip.MustParseAddrPort("10.96.0.1:443"),
			Server:  apiServer(t, []string{"127.0.0.1", "127.0.0.2"}[i]),
			Refused: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}}
		if _, err := Carry(c, s); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []*pod{a, b} {
		got, err := p.call("tcp", "10.96.0.1:443")
		wantAnswer(t, got, err, "api "+p.ip(0))
	}
	for _, c := range []Config{one, two} { // each time one of them has the machine's
		got, err := call("tcp", "10.96.0.1:443")
		if err != nil || !strings.HasPrefix(got, "api ") {
			t.Errorf("from the machine: %q, %v", got, err)
		}
		if err := Teardown(c); err != nil {
			t.Fatal(err)
		}
	}
	wantNoRoute(t)
}

// PL-12: each server's pods on the host's network reach its own API server.
func TestServicesOfPodsOnTheHost(t *testing.T) {
	needRoot(t)
	root := "/sys/fs/cgroup"
	if _, err := os.Stat(root + "/cgroup.controllers"); err != nil {
		root += "/unified"
	}
	before, err := ownCgroup()
	if err != nil {
		t.Skip("this machine has no unified cgroup hierarchy to tell pods by:", err)
	}
	enter := func(folder string) error {
		return os.WriteFile(filepath.Join(root, folder, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
	}
	t.Cleanup(func() {
		if err := enter(before); err != nil {
			t.Error(err)
		}
	})
	for i, bridge := range []string{"wt-svc5", "wt-svc6"} {
		c := host(t, bridge, fmt.Sprintf("10.201.%d.0/24", 26+i))
		folder := fmt.Sprintf("wherry-services-%d-%d", os.Getpid(), i)
		if err := os.MkdirAll(filepath.Join(root, folder, "pod"), 0o755); err != nil {
			t.Skip("no cgroup can be made to tell pods by:", err)
		}
		t.Cleanup(func() {
			err := errors.Join(enter(before), os.Remove(filepath.Join(root, folder, "pod")),
				os.Remove(filepath.Join(root, folder)))
			if err != nil {
				t.Error(err)
			}
		})
		var dir unix.Stat_t
		if err := unix.Stat(filepath.Join(root, folder), &dir); err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go answerConns(l, bridge)
		s := Services{API: netip.MustParseAddrPort("10.96.0.1:443"), Server: l.Addr().(*net.TCPAddr).AddrPort(),
			Pods: Cgroup{dir.Ino, 1}}
		if _, err := Carry(c, s); err != nil {
			t.Fatal(err)
		}
		if n := rules(t, c)["services-pods"]; n != 1 {
			t.Skip("this kernel cannot tell sockets by cgroup (CONFIG_NFT_SOCKET, CONFIG_SOCK_CGROUP_DATA)")
		}
		if err := enter(filepath.Join(folder, "pod")); err != nil {
			t.Fatal(err)
		}
		if got, err := call("tcp", "10.96.0.1:443"); err != nil || !strings.HasPrefix(got, bridge+" ") {
			t.Errorf("in the cgroup of %s: %q, %v", bridge, got, err)
		}
	}
}

// ownCgroup is this process's folder in the unified hierarchy.
func ownCgroup() (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if folder, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return folder, nil
		}
	}
	return "", errors.New("/proc/self/cgroup names none")
}

// PL-12: the machine's own networks stay reachable for it where they overlap with the services'; its pods are refused.
func TestServicesSpareTheMachinesOwnNetworks(t *testing.T) {
	out := outside(t, "10.100.0.0/24", "")
	out.listen("tcp", "neighbour", 80)
	c := host(t, "wt-svc3", "10.201.23.0/24")
	p := addPod(t, c, "p")
	s := Services{API: netip.MustParseAddrPort("10.96.0.1:443"), Server: apiServer(t, "127.0.0.1"),
		Refused: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}}
	own, err := Carry(c, s)
	if err != nil || !slices.Equal(own, []netip.Prefix{netip.MustParsePrefix("10.100.0.0/24")}) {
		t.Fatal(own, err)
	}
	got, err := call("tcp", "10.100.0.2:80")
	wantAnswer(t, got, err, "neighbour 10.100.0.1")
	wantRefused(t, "pod", p.call, "10.100.0.2:80")

	// Somebody from afar who has a service's address is answered, though connections to there are refused.
	l, err := net.Listen("tcp", "10.100.0.1:80")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go answerConns(l, "host")
	got, err = out.call("tcp", "10.100.0.1:80")
	wantAnswer(t, got, err, "host 10.100.0.2")
}

// PL-12: a kube-proxy's translation stands, though it came later.
func TestServicesYield(t *testing.T) {
	c := host(t, "wt-svc4", "10.201.25.0/24")
	p := addPod(t, c, "p")
	api := netip.MustParseAddrPort("10.96.0.1:443")
	if _, err := Carry(c, Services{API: api, Server: apiServer(t, "127.0.0.1")}); err != nil {
		t.Fatal(err)
	}
	proxied := addPod(t, c, "proxied")
	proxied.listen("tcp", "proxied", 6443)
	proxy, err := openTable("kube-proxy")
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.close()
	proxy.conn.AddTable(proxy.t)
	rule := proxy.chain("prerouting", nftables.ChainTypeNAT, nftables.ChainHookPrerouting,
		nftables.ChainPriorityNATDest)
	rule(toService(api, isTCP()), toAddress(netip.AddrPortFrom(proxied.Addrs[0].Addr(), 6443)))
	if err := proxy.conn.Flush(); err != nil {
		t.Fatal(err)
	}
	got, err := p.call("tcp", api.String())
	wantAnswer(t, got, err, "proxied 10.201.25.1")
	if err := proxy.remove(); err != nil {
		t.Fatal(err)
	}
	got, err = p.call("tcp", api.String())
	wantAnswer(t, got, err, "api "+p.ip(0))
}

// What cannot be carried is said in words.
func TestServicesValidate(t *testing.T) {
	at := netip.MustParseAddrPort
	for _, tc := range []struct {
		s    Services
		want string
	}{
		{Services{}, ""},
		{Services{API: at("10.96.0.1:443"), Server: at("127.0.0.1:6443")}, ""},
		{Services{API: at("10.96.0.1:443")}, "no address of the API server"},
		{Services{API: at("10.96.0.1:443"), Server: at("0.0.0.0:6443")}, "no address of the API server"},
		{Services{API: at("[fd00::1]:443"), Server: at("127.0.0.1:6443")}, "different address families"},
		{Services{API: at("[fd00::1]:443"), Server: at("[::1]:6443")}, "choose another --bind-address"},
	} {
		err := tc.s.validate()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%+v: error %v, want %q", tc.s, err, tc.want)
		}
	}
}
