// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
)

// Blockers names the chains of others that may keep packets from pods, and packets of pods from reaching anything: base
// chains that drop forwarded packets unless a rule accepts them, as Docker and firewalls set up. They cannot be
// overruled, since every table must accept a packet. A chain in whose table a rule is about the bridge is left out:
// somebody has seen to pods there. Chains of the legacy iptables are not visible here.
func Blockers(c Config) ([]string, error) {
	conn, err := nftables.New()
	if err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	chains, err := dump(conn.ListChains)
	if err != nil {
		return nil, fmt.Errorf("nftables: list chains: %w", err)
	}
	var out []string
	for _, ch := range chains {
		family := familyName(ch.Table.Family)
		if !drops(ch) || strings.HasPrefix(ch.Table.Name, tablePrefix) || !c.sees(ch.Table.Family) {
			continue
		}
		known := false
		for _, other := range chains {
			if known || other.Table.Name != ch.Table.Name || other.Table.Family != ch.Table.Family {
				continue
			}
			rules, err := dump(func() ([]*nftables.Rule, error) { return conn.GetRules(other.Table, other) })
			if err != nil {
				return nil, fmt.Errorf("nftables: rules of chain %s of table %s %s: %w", other.Name, family,
					other.Table.Name, err)
			}
			known = slices.ContainsFunc(rules, func(r *nftables.Rule) bool { return about(r, c.Bridge) })
		}
		if !known {
			out = append(out, fmt.Sprintf("chain %s of table %s %s", ch.Name, family, ch.Table.Name))
		}
	}
	return out, nil
}

// drops finds the chains that drop forwarded packets by policy.
func drops(ch *nftables.Chain) bool {
	return ch.Hooknum != nil && *ch.Hooknum == *nftables.ChainHookForward && ch.Type == nftables.ChainTypeFilter &&
		ch.Policy != nil && *ch.Policy == nftables.ChainPolicyDrop
}

// sees reports whether packets of the pods come to tables of a family.
func (c Config) sees(f nftables.TableFamily) bool {
	for _, p := range c.CIDRs {
		if f == nftables.TableFamilyINet || p.Addr().Is4() && f == nftables.TableFamilyIPv4 ||
			p.Addr().Is6() && f == nftables.TableFamilyIPv6 {
			return true
		}
	}
	return false
}

// about reports whether a rule compares something with the name of a network device.
func about(r *nftables.Rule, device string) bool {
	return slices.ContainsFunc(r.Exprs, func(e expr.Any) bool {
		cmp, ok := e.(*expr.Cmp)
		return ok && string(bytes.TrimRight(cmp.Data, "\x00")) == device
	})
}

func familyName(f nftables.TableFamily) string {
	switch f {
	case nftables.TableFamilyIPv4:
		return "ip"
	case nftables.TableFamilyIPv6:
		return "ip6"
	case nftables.TableFamilyINet:
		return "inet"
	}
	return fmt.Sprintf("%d", f)
}
