// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"fmt"
	"strings"

	"github.com/google/nftables"

	"github.com/wherryproject/wherry/internal/netfilter"
	"github.com/wherryproject/wherry/internal/serviceproxy/decide"
)

// State is what the kernel has: of the chains that are always there the fingerprints, and what services have made.
type State struct {
	Table bool // there is one
	Base  map[string]string
	decide.There
}

// Read says what there is. A table that is not there has nothing.
func (h Host) Read() (State, error) {
	t, err := h.open()
	if err != nil {
		return State{}, err
	}
	defer t.close()
	var state State
	if err := netfilter.Read(func() (err error) { state, err = t.read(); return err }); err != nil {
		return State{}, fmt.Errorf("nftables: read table %s: %w", t.t.Name, err)
	}
	return state, nil
}

func (t *table) read() (State, error) {
	s := State{Base: map[string]string{}, There: decide.There{Chains: map[string]string{}, Clients: map[string]bool{},
		Keys: map[decide.Key]string{}, Beyond: map[decide.Beyond]bool{}}}
	found, err := t.conn.ListTablesOfFamily(nftables.TableFamilyINet)
	if err != nil {
		return s, err
	}
	for _, other := range found {
		s.Table = s.Table || other.Name == t.t.Name
	}
	if !s.Table {
		return s, nil
	}
	if err := t.readChains(&s); err != nil {
		return s, err
	}
	return s, t.readSets(&s)
}

func (t *table) readChains(s *State) error {
	chains, err := t.conn.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return err
	}
	for _, ch := range chains {
		if ch.Table.Name != t.t.Name {
			continue
		}
		rules, err := t.conn.GetRules(t.t, ch)
		if err != nil {
			return err
		}
		if strings.Contains(ch.Name, "/") {
			s.Chains[ch.Name] = netfilter.PrintOf(rules)
		} else {
			s.Base[ch.Name] = netfilter.PrintOf(rules)
		}
	}
	return nil
}

func (t *table) readSets(s *State) error {
	sets, err := t.conn.GetSets(t.t)
	if err != nil {
		return err
	}
	for _, set := range sets {
		if strings.Contains(set.Name, "/") && !set.IsMap {
			s.Clients[set.Name] = set.KeyType.Bytes == 16
		}
	}
	for _, f := range netfilter.Families() {
		for _, place := range []decide.Place{decide.Cluster, decide.External, decide.NodePort} {
			elems, err := netfilter.Elements(t.conn, t.named(places(place), f))
			if err != nil {
				return err
			}
			for _, e := range elems {
				if a, proto, port, ok := parseKey(e.Key); ok {
					s.Keys[decide.Key{Place: place, Six: f.Six, Addr: a, Proto: proto, Port: port}] = e.Comment
				}
			}
		}
		elems, err := netfilter.Elements(t.conn, t.named("beyond", f))
		if err != nil {
			return err
		}
		for _, e := range elems {
			if a, proto, port, ok := parseKey(e.Key); ok {
				s.Beyond[decide.Beyond{At: addrPort(a, port), Proto: proto}] = true
			}
		}
	}
	return nil
}
