// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"fmt"
	"strings"

	"github.com/google/nftables"

	"github.com/wherryproject/wherry/internal/netfilter"
	"github.com/wherryproject/wherry/internal/netpolicy/decide"
)

// Read says what there is. Tables that are not there have nothing.
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
	s := State{Base: map[string]string{}, There: decide.There{Chains: map[string]string{},
		Sets: map[string]decide.Set{}}}
	for _, of := range []*nftables.Table{t.t, t.l2} {
		found, err := t.conn.ListTablesOfFamily(of.Family)
		if err != nil {
			return s, err
		}
		there := false
		for _, other := range found {
			there = there || other.Name == of.Name
		}
		s.Table = s.Table || there
		if !there {
			continue
		}
		if err := t.readChains(of, &s); err != nil {
			return s, err
		}
		if of == t.t {
			if err := t.readSets(&s); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

func (t *table) readChains(of *nftables.Table, s *State) error {
	chains, err := t.conn.ListChainsOfTableFamily(of.Family)
	if err != nil {
		return err
	}
	for _, ch := range chains {
		if ch.Table.Name != of.Name {
			continue
		}
		rules, err := t.conn.GetRules(of, ch)
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

// readSets reads each set of which there is one for every family.
func (t *table) readSets(s *State) error {
	sets, err := t.conn.GetSets(t.t)
	if err != nil {
		return err
	}
	families := t.host.families()
	count := map[string]int{}
	for _, set := range sets {
		for _, f := range families {
			if name, ok := strings.CutSuffix(set.Name, f.Suffix); ok {
				count[name]++
			}
		}
	}
	for name, n := range count {
		if n < len(families) {
			continue
		}
		s.Sets[name] = decide.Set{}
		for _, f := range families {
			elems, err := netfilter.Elements(t.conn, t.set(name, f))
			if err != nil {
				return err
			}
			for _, e := range elems {
				if key, ok := parseKey(f, decide.ShapeOf(name), e.Key); ok {
					s.Sets[name][key] = e.Comment
				}
			}
		}
	}
	return nil
}
