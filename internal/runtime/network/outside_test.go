// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
)

// foreign makes a network of which nothing is ours but that it was easily made: a bridge with a pod, and no rules.
func foreign(t *testing.T, bridge, cidr string) *pod {
	t.Helper()
	c := host(t, bridge, cidr)
	p := addPod(t, c, "p")
	table, err := openTable(bridge)
	if err != nil {
		t.Fatal(err)
	}
	defer table.close()
	if err := errors.Join(table.remove(), forgetRoutes(bridge, func(netlink.Route) bool { return true })); err != nil {
		t.Fatal(err)
	}
	return p
}

// PL-12: clients in the pods of another runtime's network reach the API server too, also one on loopback, and nothing
// else there; what is put there for it can be taken away.
func TestServicesOutside(t *testing.T) {
	const bridge = "wt-svc9"
	beyond(t)
	p := foreign(t, bridge, "10.201.29.0/24")
	s := Services{API: netip.MustParseAddrPort("10.96.0.1:443"), Server: apiServer(t, "127.0.0.1"),
		Refused: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}}
	for range 2 { // as at each look
		if _, err := CarryOutside(bridge, s); err != nil {
			t.Fatal(err)
		}
	}
	got, err := p.call("tcp", "10.96.0.1:443")
	wantAnswer(t, got, err, "api "+p.ip(0))
	wantRefused(t, "pod", p.call, "10.96.0.7:443")
	if names := chains(t, bridge); !strings.Contains(names, " guard ") || strings.Contains(names, " hostports ") {
		t.Errorf("chains of the table: %s", names)
	}
	if err := ForgetOutside(bridge); err != nil {
		t.Fatal(err)
	}
	if names := chains(t, bridge); names != " " {
		t.Errorf("chains left: %s", names)
	}
	wantNoRoute(t)
	if err := ForgetOutside(bridge); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

// chains are the names of the chains on a bridge, each between two spaces.
func chains(t *testing.T, bridge string) string {
	t.Helper()
	conn, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	list, err := conn.ListChains()
	if err != nil {
		t.Fatal(err)
	}
	out := " "
	for _, c := range list {
		if c.Table.Name == tablePrefix+bridge {
			out += c.Name + " "
		}
	}
	return out
}
