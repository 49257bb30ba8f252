// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
)

// TestBlockers proves that chains which drop forwarded packets are named, as decision 004 promises, and those that do not, that pods' packets
// do not come to, or that know the bridge are not.
func TestBlockers(t *testing.T) {
	needRoot(t)
	c := Config{Bridge: "wherry-blk0", CIDRs: []netip.Prefix{netip.MustParsePrefix("10.213.0.0/24")}}
	conn, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	drop, accept := nftables.ChainPolicyDrop, nftables.ChainPolicyAccept
	table := func(name string, family nftables.TableFamily, hook *nftables.ChainHook, policy nftables.ChainPolicy) (*nftables.Table, *nftables.Chain) {
		tb := conn.AddTable(&nftables.Table{Name: name, Family: family})
		return tb, conn.AddChain(&nftables.Chain{Name: "FORWARD", Table: tb, Type: nftables.ChainTypeFilter, Hooknum: hook,
			Priority: nftables.ChainPriorityFilter, Policy: &policy})
	}
	filter, _ := table("filter", nftables.TableFamilyIPv4, nftables.ChainHookForward, drop)
	fire, _ := table("fire", nftables.TableFamilyINet, nftables.ChainHookForward, drop)
	six, _ := table("six", nftables.TableFamilyIPv6, nftables.ChainHookForward, drop)
	open, _ := table("open", nftables.TableFamilyINet, nftables.ChainHookForward, accept)
	input, _ := table("input", nftables.TableFamilyINet, nftables.ChainHookInput, drop)
	t.Cleanup(func() {
		for _, tb := range []*nftables.Table{filter, fire, six, open, input} {
			conn.DelTable(tb)
		}
		if err := conn.Flush(); err != nil {
			t.Error(err)
		}
	})
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	expect := func(c Config, want ...string) {
		t.Helper()
		got, err := Blockers(c)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	expect(c, "chain FORWARD of table inet fire", "chain FORWARD of table ip filter")
	both := c
	both.CIDRs = append(slices.Clone(c.CIDRs), netip.MustParsePrefix("fd00:213::/64"))
	expect(both, "chain FORWARD of table inet fire", "chain FORWARD of table ip filter", "chain FORWARD of table ip6 six")

	// As Docker has users do it: in a chain that the one with the policy goes to.
	user := conn.AddChain(&nftables.Chain{Name: "DOCKER-USER", Table: filter})
	name := append([]byte(c.Bridge), make([]byte, 16-len(c.Bridge))...)
	conn.AddRule(&nftables.Rule{Table: filter, Chain: user, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: name}, &expr.Verdict{Kind: expr.VerdictAccept}}})
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	expect(c, "chain FORWARD of table inet fire")
	other := c
	other.Bridge = "wherry-blk"
	expect(other, "chain FORWARD of table inet fire", "chain FORWARD of table ip filter")
}
