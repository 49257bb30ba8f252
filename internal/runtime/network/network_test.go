// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestPodsReachEachOtherAndTheHost(t *testing.T) {
	c := host(t, "wt-reach", "10.201.1.0/24")
	a, b := addPod(t, c, "a"), addPod(t, c, "b")
	for _, network := range []string{"tcp", "udp"} {
		b.listen(network, "b", 80)
		got, err := a.call(network, b.ip(0)+":80")
		wantAnswer(t, got, err, "b "+a.ip(0))
		got, err = call(network, b.ip(0)+":80")
		wantAnswer(t, got, err, "b 10.201.1.1")
	}
	l, err := net.Listen("tcp", "10.201.1.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go answerConns(l, "host")
	got, err := a.call("tcp", l.Addr().String())
	wantAnswer(t, got, err, "host "+a.ip(0))
	if err := a.do(func() error { return ping("10.201.1.1") }); err != nil {
		t.Error("pod to host:", err)
	}
	if err := a.do(func() error { return ping(b.ip(0)) }); err != nil {
		t.Error("pod to pod:", err)
	}
	if err := a.do(func() error { return ping("127.0.0.1") }); err != nil {
		t.Error("loopback in the pod:", err)
	}
	if err := Check(c, a.req); err != nil {
		t.Error("check:", err)
	}
}

// ping sends one echo request and waits for the answer.
func ping(addr string) error {
	c, err := net.Dial("ip4:icmp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	req := []byte{8, 0, 0, 0, 0x12, 0x34, 0, 1}
	sum := ^uint16(8<<8 + 0x1234 + 1)
	req[2], req[3] = byte(sum>>8), byte(sum)
	if _, err := c.Write(req); err != nil {
		return err
	}
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	buf := make([]byte, 1500)
	for {
		n, _, err := c.(*net.IPConn).ReadFrom(buf) // without the IP header
		if err != nil {
			return err
		}
		if n >= 6 && buf[0] == 0 && buf[4] == 0x12 && buf[5] == 0x34 {
			return nil
		}
	}
}

// outside adds a namespace beyond the host that knows no way to the pods' subnet.
func outside(t *testing.T, cidr4, cidr6 string) *sandbox {
	t.Helper()
	s := newSandbox(t)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "wt-up"
	link := &netlink.Veth{LinkAttrs: attrs, PeerName: "up", PeerNamespace: netlink.NsFd(int(s.file.Fd()))}
	if err := netlink.LinkAdd(link); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = deleteLink("wt-up") })
	configure := func(name string, n int) error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		for _, cidr := range []string{cidr4, cidr6} {
			if cidr == "" {
				continue
			}
			p := netip.MustParsePrefix(cidr)
			a := p.Addr()
			for range n {
				a = a.Next()
			}
			if err := netlink.AddrAdd(l, address(netip.PrefixFrom(a, p.Bits()))); err != nil {
				return err
			}
		}
		return netlink.LinkSetUp(l)
	}
	if err := configure("wt-up", 1); err != nil {
		t.Fatal(err)
	}
	if err := s.do(func() error { return configure("up", 2) }); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMasquerade(t *testing.T) {
	c := host(t, "wt-masq", "10.201.2.0/24", "fd00:201:2::/64")
	out := outside(t, "198.18.0.0/24", "fd00:198::/64")
	out.listen("tcp", "out", 80)
	p := addPod(t, c, "p")
	got, err := p.call("tcp", "198.18.0.2:80")
	wantAnswer(t, got, err, "out 198.18.0.1")
	got, err = p.call("tcp", "[fd00:198::2]:80")
	wantAnswer(t, got, err, "out fd00:198::1")

	before := rules(t, c)
	for range 3 {
		if err := Setup(c); err != nil {
			t.Fatal(err)
		}
	}
	if after := rules(t, c); !maps.Equal(before, after) {
		t.Errorf("rules per chain %v after repeated set-up, %v before", after, before)
	}
	// Per family: to other nodes, leaving the bridge, hairpin; and once the host's loopback.
	if before["postrouting"] != 7 {
		t.Errorf("postrouting has %d rules, want 7", before["postrouting"])
	}
	got, err = p.call("tcp", "198.18.0.2:80")
	wantAnswer(t, got, err, "out 198.18.0.1")
}

func TestDelIsIdempotentAndLeavesNothing(t *testing.T) {
	c := host(t, "wt-del", "10.201.8.0/24", "fd00:201:8::/64")
	m := PortMapping{HostPort: 18120, ContainerPort: 80}
	t.Run("ordinary", func(t *testing.T) {
		p := addPod(t, c, "p", m)
		for range 3 {
			if err := Del(c, p.req); err != nil {
				t.Fatal(err)
			}
			wantNothingLeft(t, c)
		}
		err := p.do(func() error { _, err := netlink.LinkByName("eth0"); return err })
		if err == nil {
			t.Error("eth0 is still in the sandbox")
		}
	})
	t.Run("namespace gone, path and ports unknown", func(t *testing.T) {
		p := addPod(t, c, "p", m)
		p.destroy()
		if err := Del(c, Request{Attachment: p.req.Attachment}); err != nil {
			t.Fatal(err)
		}
		wantNothingLeft(t, c)
	})
	t.Run("never added", func(t *testing.T) {
		if err := Del(c, Request{Attachment: Attachment{"nobody", "eth0"}}); err != nil {
			t.Error(err)
		}
	})
	t.Run("after tear-down", func(t *testing.T) {
		gone := c
		gone.Bridge, gone.StateDir = "wt-nobridge", t.TempDir()
		if err := Del(gone, Request{Attachment: Attachment{"nobody", "eth0"}}); err != nil {
			t.Error(err)
		}
	})
	t.Run("others stay", func(t *testing.T) {
		stays, goes := addPod(t, c, "stays", m), addPod(t, c, "goes")
		if err := Del(c, goes.req); err != nil {
			t.Fatal(err)
		}
		if err := Check(c, stays.req); err != nil {
			t.Error(err)
		}
	})
}

func TestAddFailsWithoutTraces(t *testing.T) {
	c := host(t, "wt-fail", "10.201.9.0/24")
	s := newSandbox(t)
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		what string
		r    Request
		want string
	}{
		{"no namespace", Request{Attachment: Attachment{"p", "eth0"}, Netns: "/nowhere/netns"}, "no such file"},
		{"no namespace but a file", Request{Attachment: Attachment{"p", "eth0"}, Netns: file},
			"is not a network namespace"},
		{"bad port", Request{Attachment{"p", "eth0"}, s.path, []PortMapping{{HostPort: 70000, ContainerPort: 1}}},
			"not between 1 and 65535"},
		{"bad protocol", Request{Attachment{"p", "eth0"}, s.path,
			[]PortMapping{{HostPort: 1, ContainerPort: 1, Protocol: "icmp"}}}, "not tcp, udp or sctp"},
		{"bad host address", Request{Attachment{"p", "eth0"}, s.path,
			[]PortMapping{{HostPort: 1, ContainerPort: 1, HostIP: "home"}}}, "not an IP address"},
		{"host address of another family", Request{Attachment{"p", "eth0"}, s.path,
			[]PortMapping{{HostPort: 1, ContainerPort: 1, HostIP: "fd00::1"}}}, "has no address of the same family"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			_, err := Add(c, tc.r)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			wantNothingLeft(t, c)
		})
	}
	t.Run("second add of one attachment", func(t *testing.T) {
		p := addPod(t, c, "p")
		if _, err := Add(c, p.req); !errors.Is(err, unix.EEXIST) {
			t.Errorf("error %v", err)
		}
		if err := Check(c, p.req); err != nil {
			t.Error("the first one suffered:", err)
		}
	})
	t.Run("no bridge", func(t *testing.T) {
		gone := c
		gone.Bridge = "wt-nobridge"
		if _, err := Add(gone, Request{Attachment: Attachment{"p", "eth0"}, Netns: s.path}); !errors.Is(err,
			ErrNoBridge) {
			t.Errorf("error %v", err)
		}
		if err := Status(gone); !errors.Is(err, ErrNoBridge) {
			t.Errorf("status %v", err)
		}
	})
}

func TestTwoNetworksSideBySide(t *testing.T) {
	one, two := host(t, "wt-one", "10.201.10.0/24"), host(t, "wt-two", "10.201.11.0/24")
	a := addPod(t, one, "a", PortMapping{HostPort: 18130, ContainerPort: 80})
	b := addPod(t, two, "b", PortMapping{HostPort: 18131, ContainerPort: 80})
	a.listen("tcp", "a", 80)
	b.listen("tcp", "b", 80)
	got, err := call("tcp", "127.0.0.1:18130")
	wantAnswer(t, got, err, "a 10.201.10.1")
	got, err = call("tcp", "127.0.0.1:18131")
	wantAnswer(t, got, err, "b 10.201.11.1")
	got, err = a.call("tcp", b.ip(0)+":80") // between the two: as from the host
	wantAnswer(t, got, err, "b 10.201.11.1")
	if err := Teardown(two); err != nil {
		t.Fatal(err)
	}
	if err := Teardown(two); err != nil {
		t.Error("second tear-down:", err)
	}
	got, err = call("tcp", "127.0.0.1:18130")
	wantAnswer(t, got, err, "a 10.201.10.1")
	if n := rules(t, two); len(n) != 0 {
		t.Errorf("rules left: %v", n)
	}
	if _, err := netlink.LinkByName("wt-two"); err == nil {
		t.Error("the bridge is still there")
	}
}

func TestGC(t *testing.T) {
	c := host(t, "wt-gc", "10.201.12.0/24")
	stays := addPod(t, c, "stays", PortMapping{HostPort: 18140, ContainerPort: 80})
	crashed := addPod(t, c, "crashed", PortMapping{HostPort: 18141, ContainerPort: 80})
	rebooted := addPod(t, c, "rebooted")
	rebooted.destroy()
	if err := os.WriteFile(leases{c.StateDir}.folder()+"/junk", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// A crash between lease and device.
	if _, err := (leases{c.StateDir}).take(Attachment{"halfway", "eth0"}, c.CIDRs); err != nil {
		t.Fatal(err)
	}
	if err := GC(c, []Attachment{stays.req.Attachment}); err != nil {
		t.Fatal(err)
	}
	if err := Check(c, stays.req); err != nil {
		t.Error("a valid attachment suffered:", err)
	}
	if err := Check(c, crashed.req); err == nil {
		t.Error("the crashed one is still there")
	}
	if held, err := Leases(c); err != nil || len(held) != 1 {
		t.Errorf("leases %v, %v", held, err)
	}
	if ports := hostPortsOf(t, c); len(ports) != 1 {
		t.Errorf("host ports %v", ports)
	}
	if err := GC(c, nil); err != nil {
		t.Fatal(err)
	}
	wantNothingLeft(t, c)
}

func TestDualStack(t *testing.T) {
	c := host(t, "wt-dual", "10.201.13.0/24", "fd00:201:13::/64")
	a, b := addPod(t, c, "a"), addPod(t, c, "b")
	if a.ip(0) != "10.201.13.2" || a.ip(1) != "fd00:201:13::2" || b.ip(1) != "fd00:201:13::3" {
		t.Errorf("addresses %v and %v", a.Addrs, b.Addrs)
	}
	b.listen("tcp", "b", 80)
	got, err := a.call("tcp", "["+b.ip(1)+"]:80")
	wantAnswer(t, got, err, "b "+a.ip(1))
	got, err = a.call("tcp", b.ip(0)+":80")
	wantAnswer(t, got, err, "b "+a.ip(0))
	got, err = call("tcp", "["+b.ip(1)+"]:80")
	wantAnswer(t, got, err, "b fd00:201:13::1")
}

func TestIPv6Only(t *testing.T) {
	c := host(t, "wt-six", "fd00:201:14::/64")
	a, b := addPod(t, c, "a"), addPod(t, c, "b", PortMapping{HostPort: 18150, ContainerPort: 80})
	b.listen("tcp", "b", 80)
	got, err := a.call("tcp", "["+b.ip(0)+"]:80")
	wantAnswer(t, got, err, "b "+a.ip(0))
	got, err = call("tcp", "[fd00:201:14::1]:18150")
	wantAnswer(t, got, err, "b fd00:201:14::1")
}

func TestManyAtOnce(t *testing.T) {
	c := host(t, "wt-many", "10.201.15.0/24")
	const n = 60
	pods := make([]*sandbox, n)
	for i := range pods {
		pods[i] = newSandbox(t)
	}
	var mu sync.Mutex
	seen := map[string]string{}
	each := func(do func(Request) error) {
		var wg sync.WaitGroup
		for i, s := range pods {
			wg.Go(func() {
				r := Request{Attachment{fmt.Sprintf("pod%d", i), "eth0"}, s.path,
					[]PortMapping{{HostPort: int32(18200 + i), ContainerPort: 80}}}
				if err := do(r); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	each(func(r Request) error {
		got, err := Add(c, r)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			if other := seen[got.Addrs[0].String()]; other != "" {
				return fmt.Errorf("%s and %s both have %s", other, r.ContainerID, got.Addrs[0])
			}
			seen[got.Addrs[0].String()] = r.ContainerID
		}
		return err
	})
	if got := len(hostPortsOf(t, c)); got != n {
		t.Errorf("%d host ports, want %d", got, n)
	}
	each(func(r Request) error { return Del(c, r) })
	wantNothingLeft(t, c)
}

func TestSetupRefuses(t *testing.T) {
	needRoot(t)
	c := host(t, "wt-here", "10.201.16.0/24")
	for _, tc := range []struct {
		what string
		c    Config
		want string
	}{
		{"a subnet in use", Config{Bridge: "wt-there", CIDRs: c.CIDRs, StateDir: t.TempDir()},
			"overlaps with the route to 10.201.16.0/24 on wt-here"},
		{"a device that is no bridge",
			Config{Bridge: "lo", CIDRs: []netip.Prefix{netip.MustParsePrefix("10.201.17.0/24")}, StateDir: t.TempDir()},
			"not a bridge"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			if err := Setup(tc.c); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if rules, err := fingerprint(tc.c.Bridge); err != nil || rules != "" {
				t.Errorf("rules are left: %q, %v", rules, err)
				_ = Teardown(tc.c)
			}
		})
	}
}

func TestSetupFollowsAChangedConfig(t *testing.T) {
	c := host(t, "wt-change", "10.201.18.0/24")
	c.CIDRs = []netip.Prefix{netip.MustParsePrefix("10.201.19.0/24")}
	if err := Setup(c); err != nil {
		t.Fatal(err)
	}
	link, err := netlink.LinkByName(c.Bridge)
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := netlink.AddrList(link, netlink.FAMILY_V4)
	if err != nil || len(addrs) != 1 || addrs[0].IP.String() != "10.201.19.1" {
		t.Errorf("addresses %v, %v", addrs, err)
	}
}

func TestMissingFeaturesAreNamed(t *testing.T) {
	fine, lacks := func() error { return nil }, func() error { return unix.EOPNOTSUPP }
	err := explain(unix.EOPNOTSUPP, func() []feature {
		return []feature{{"nat chains (CONFIG_NFT_NAT)", lacks}, {"fib (CONFIG_NFT_FIB_INET)", fine},
			{"masquerade (CONFIG_NFT_MASQ)", lacks}}
	})
	if want := "missing nat chains (CONFIG_NFT_NAT), masquerade (CONFIG_NFT_MASQ)"; !strings.Contains(err.Error(),
		want) {
		t.Errorf("error %v, want %q in it", err, want)
	}
	t.Run("this kernel lacks nothing and the probes leave nothing", func(t *testing.T) {
		needRoot(t)
		tab, err := openTable("wt-probe")
		if err != nil {
			t.Fatal(err)
		}
		defer tab.close()
		for _, f := range tab.missing() {
			if err := f.try(); err != nil {
				t.Errorf("%s: %v", f.what, err)
			}
		}
		if n := rules(t, Config{Bridge: "wt-probe-probe"}); len(n) != 0 {
			t.Errorf("left: %v", n)
		}
	})
}

func TestChooseKeepsTheSubnetOfARunningBridge(t *testing.T) {
	needRoot(t)
	const dataDir = "/nowhere/choose"
	bridge, subnet, err := Choose(dataDir, netip.Prefix{})
	if err != nil {
		t.Fatal(err)
	}
	host(t, "wt-choose", subnet.String()) // somebody else takes it
	_, second, err := Choose(dataDir, netip.Prefix{})
	if err != nil || second == subnet {
		t.Fatalf("%s %v although another bridge has it", second, err)
	}
	host(t, bridge, second.String())
	if err := Teardown(Config{Bridge: "wt-choose"}); err != nil {
		t.Fatal(err)
	}
	if b, s, err := Choose(dataDir, netip.Prefix{}); err != nil || b != bridge || s != second {
		t.Errorf("%s %s %v, want %s %s", b, s, err, bridge, second)
	}
	// RS-09: pods that run have addresses of the subnet that the bridge had before somebody removed it.
	lose(t, bridge)
	if _, s, err := Choose(dataDir, second); err != nil || s != second {
		t.Errorf("after the bridge was removed: %s %v, want %s", s, err, second)
	}
	host(t, "wt-choose2", second.String())
	if _, s, err := Choose(dataDir, second); err != nil || s == second {
		t.Errorf("after somebody else took the subnet: %s %v", s, err)
	}
}

// What is sent right after Add must arrive: the kernel drops packets until it has noticed that the cable is plugged in,
// and then they are sent again only after a second.
func TestFirstPacketPasses(t *testing.T) {
	c := host(t, "wt-first", "10.201.22.0/24")
	for i := range 20 {
		b := addPod(t, c, fmt.Sprint("b", i))
		b.listen("tcp", "b", 80)
		start := time.Now()
		got, err := call("tcp", b.ip(0)+":80")
		wantAnswer(t, got, err, "b 10.201.22.1")
		if took := time.Since(start); took > 900*time.Millisecond {
			t.Errorf("pod %d answered after %v", i, took)
		}
	}
}
