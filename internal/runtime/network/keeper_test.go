// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
)

// kept is a network with a keeper that runs, and the pods that are said to run.
type kept struct {
	t  *testing.T
	c  Config
	k  *Keeper
	mu sync.Mutex
	ps []Pod
}

func keep(t *testing.T, bridge string, cidrs ...string) *kept {
	t.Helper()
	needRoot(t)
	n := &kept{t: t, c: Config{Bridge: bridge, StateDir: filepath.Join(t.TempDir(), "network")}}
	for _, s := range cidrs {
		n.c.CIDRs = append(n.c.CIDRs, netip.MustParsePrefix(s))
	}
	var err error
	n.k, err = NewKeeper(n.c, func(context.Context) ([]Pod, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		return append([]Pod(nil), n.ps...), nil
	}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); n.k.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		if err := Teardown(n.c); err != nil {
			t.Error(err)
		}
	})
	return n
}

func (n *kept) add(id string, ports ...PortMapping) *pod {
	n.t.Helper()
	p := addPod(n.t, n.c, id, ports...)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ps = append(n.ps, Pod{p.req.Attachment, p.req.Netns, ports})
	return p
}

// intact waits until nothing is missing any more.
func (n *kept) intact(what string) {
	n.t.Helper()
	var last error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if last = n.lacks(); last == nil {
			return
		}
	}
	n.t.Fatalf("%s: never made again: %v", what, last)
}

func (n *kept) lacks() error {
	n.mu.Lock()
	pods := append([]Pod(nil), n.ps...)
	n.mu.Unlock()
	n.k.mu.Lock()
	defer n.k.mu.Unlock()
	w, err := n.k.want(pods)
	if err != nil {
		return err
	}
	s, err := look(n.c, n.k.services, n.k.rules)
	if err != nil {
		return err
	}
	if r := mend(w, s); len(r) > 0 {
		return fmt.Errorf("missing: %v", r)
	}
	return nil
}

func nft(t *testing.T, do func(*nftables.Conn)) {
	t.Helper()
	c, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	do(c)
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
}

func lose(t *testing.T, name string) {
	t.Helper()
	if err := deleteLink(name); err != nil {
		t.Fatal(err)
	}
}

// TestKeeper: RS-09, whatever is taken from the network of running pods is made again, without anybody's asking: they
// reach one another and service kubernetes, and their host ports lead to them.
func TestKeeper(t *testing.T) {
	n := keep(t, "wt-keep", "10.201.60.0/24")
	beyond(t, "10.96.0.9/32")
	server := apiServer(t, "127.0.0.1")
	if _, err := n.k.Carry(Services{API: netip.MustParseAddrPort("10.96.0.1:443"), Server: server,
		Refused: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}}); err != nil {
		t.Fatal(err)
	}
	web := n.add("web", PortMapping{HostPort: 18300, ContainerPort: 80},
		PortMapping{HostPort: 18301, ContainerPort: 81, Protocol: "udp", HostIP: "127.0.0.1"})
	web.listen("tcp", "web", 80)
	web.listen("udp", "web", 81)
	other := n.add("other")
	before := fmt.Sprint(web.Addrs)
	ours := &nftables.Table{Name: tablePrefix + n.c.Bridge, Family: nftables.TableFamilyINet}
	works := func(what string) {
		t.Helper()
		n.intact(what)
		got, err := other.call("tcp", web.ip(0)+":80")
		wantAnswer(t, got, err, "web "+other.ip(0))
		got, err = call("tcp", "127.0.0.1:18300")
		wantAnswer(t, got, err, "web 10.201.60.1")
		got, err = call("udp", "127.0.0.1:18301")
		wantAnswer(t, got, err, "web 10.201.60.1")
		got, err = other.call("tcp", "10.96.0.1:443")
		wantAnswer(t, got, err, "api "+other.ip(0))
		wantRefused(t, what, other.call, "10.96.0.9:80")
		if err := Check(n.c, web.req); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	works("at first")
	for _, tc := range []struct {
		what  string
		loses func()
	}{
		{"all tables", func() { nft(t, func(c *nftables.Conn) { c.FlushRuleset() }) }},
		{"the table", func() { nft(t, func(c *nftables.Conn) { c.DelTable(ours) }) }},
		{"the rules", func() { nft(t, func(c *nftables.Conn) { c.FlushTable(ours) }) }},
		{"one chain's rules", func() {
			nft(t, func(c *nftables.Conn) { c.FlushChain(&nftables.Chain{Name: "services-prerouting", Table: ours}) })
		}},
		{"a map's elements", func() {
			nft(t, func(c *nftables.Conn) { c.FlushSet((&table{c, ours}).hostPortMap(ipv4(), false)) })
		}},
		{"the bridge", func() { lose(t, n.c.Bridge) }},
		{"a pod's device", func() { lose(t, vethName(web.req.Attachment)) }},
		{"bridge and table", func() {
			lose(t, n.c.Bridge)
			nft(t, func(c *nftables.Conn) { c.FlushRuleset() })
		}},
		{"a pod's place on the bridge", func() {
			l, err := netlink.LinkByName(vethName(web.req.Attachment))
			if err == nil {
				err = netlink.LinkSetNoMaster(l)
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"the bridge's being up", func() {
			l, err := netlink.LinkByName(n.c.Bridge)
			if err == nil {
				err = netlink.LinkSetDown(l)
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"the bridge's address", func() {
			l, err := netlink.LinkByName(n.c.Bridge)
			if err == nil {
				err = netlink.AddrDel(l, address(netip.MustParsePrefix("10.201.60.1/24")))
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"forwarding", func() {
			if err := os.WriteFile(sysctlPath("ipv4", "ip_forward"), []byte("0"), 0); err != nil {
				t.Fatal(err)
			}
		}},
		{"the route to the service", func() {
			if err := forgetRoutes(n.c.Bridge, toServices); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		tc.loses()
		works(tc.what)
	}
	if after := fmt.Sprint(web.Addrs); after != before {
		t.Errorf("addresses %s, before %s", after, before)
	}
}

// RS-09: what a server that was not there could not mend, the next one does when it starts: host ports too.
func TestKeeperMendsWhatWasLostWhileNobodyWatched(t *testing.T) {
	c := host(t, "wt-keep2", "10.201.61.0/24", "fd00:61::/64")
	m := PortMapping{HostPort: 18310, ContainerPort: 80}
	p := addPod(t, c, "p", m)
	p.listen("tcp", "p", 80)
	nft(t, func(c *nftables.Conn) { c.FlushRuleset() })
	lose(t, c.Bridge)
	k,
		err := NewKeeper(c,
		func(context.Context) ([]Pod, error) { return []Pod{{p.req.Attachment, p.req.Netns, p.req.Ports}}, nil },
		slog.New(slog.DiscardHandler))
	if err == nil {
		err = k.Mend(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"127.0.0.1:18310", p.ip(0) + ":80", "[" + p.ip(1) + "]:80"} {
		if _, err := call("tcp", to); err != nil {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// RS-09: nothing is made for a pod that ended meanwhile, though it is said to run still: it would never be taken away.
func TestKeeperLeavesEndedPodsAlone(t *testing.T) {
	n := keep(t, "wt-keep3", "10.201.62.0/24")
	p := n.add("p", PortMapping{HostPort: 18320, ContainerPort: 80})
	w, err := n.k.want(n.ps)
	if err != nil || len(w.pods) != 1 {
		t.Fatalf("%v, %v", w, err)
	}
	if err := Del(n.c, p.req); err != nil {
		t.Fatal(err)
	}
	for _, r := range []repair{{kind: remakeLink, pod: w.pods[0]},
		{kind: republish, pod: w.pods[0], ports: w.pods[0].ports}} {
		if made, err := n.k.do(r); made || err != nil {
			t.Errorf("%s: made %v, %v", r, made, err)
		}
	}
	wantNothingLeft(t, n.c)
}
