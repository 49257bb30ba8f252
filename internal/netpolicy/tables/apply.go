// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"

	"github.com/wherryproject/wherry/internal/netfilter"
	"github.com/wherryproject/wherry/internal/netpolicy/decide"
	"github.com/wherryproject/wherry/internal/runtime/network"
)

// State is what the kernel has: of the chains that are always there the fingerprints, and what policies have made.
type State struct {
	Table bool // there is one
	Base  map[string]string
	decide.There
}

// basePrints are the fingerprints of the chains that are always there.
func (h Host) basePrints(base []baseChain) map[string]string {
	out := map[string]string{}
	for _, b := range base {
		out[b.name] = decide.Print(version, fmt.Sprintf("%+v", h), b.text())
	}
	return out
}

// Make makes the kernel, which is as have says, equal to what is wanted, in one transaction; touched names what may
// differ, nil: anything. It returns what the kernel is like now. Nothing is left of tables in which nothing is wanted.
func (h Host) Make(have State, want decide.Tables, touched *decide.Touched) (State, decide.Change, error) {
	if want.Sets == nil {
		if !have.Table {
			return State{}, decide.Change{}, nil
		}
		return State{}, decide.Change{}, h.Remove()
	}
	if !have.Table {
		touched = nil
	}
	change := decide.Diff(have.There, want, touched)
	mac, err := h.mac()
	if err != nil {
		return have, change, err
	}
	base := h.base(mac)
	prints := h.basePrints(base)
	same := have.Table && maps.Equal(have.Base, prints)
	if same && change.Empty() {
		return have, change, nil
	}
	t, err := h.open()
	if err != nil {
		return have, change, err
	}
	defer t.close()
	if !same {
		if err := network.GroupPods(h.Bridge); err != nil {
			return have, change, err
		}
		if err := t.foundation(have, base, prints); err != nil {
			return have, change, err
		}
	}
	if err := t.change(change, want); err != nil {
		return have, change, err
	}
	if err := t.conn.Flush(); err != nil {
		if noBridgeFamily(err) {
			return have, change, fmt.Errorf("this kernel cannot filter what passes between pods on a bridge: %w "+
				"(CONFIG_NF_TABLES_BRIDGE, module nf_tables_bridge)", err)
		}
		return have, change, fmt.Errorf("nftables rejected the rules of network policies: %w", err)
	}
	return State{Table: true, Base: prints, There: now(have.There, change, want)}, change, nil
}

// now is what is there after a change.
func now(have decide.There, c decide.Change, want decide.Tables) decide.There {
	if have.Sets == nil {
		return want.There()
	}
	for _, name := range slices.Concat(c.SetChains, c.DropChains) {
		if chain, wanted := want.Chains[name]; wanted {
			have.Chains[name] = chain.Print
		} else {
			delete(have.Chains, name)
		}
	}
	changed := slices.Concat(c.AddSets, c.DropSets, slices.Collect(maps.Keys(c.AddElems)),
		slices.Collect(maps.Keys(c.DropElems)))
	for _, name := range changed {
		if set, wanted := want.Sets[name]; wanted {
			have.Sets[name] = maps.Clone(set)
		} else {
			delete(have.Sets, name)
		}
	}
	return have
}

// foundation makes what is always there, as far as it is not.
func (t *table) foundation(have State, base []baseChain, prints map[string]string) error {
	t.conn.AddTable(t.t)
	t.conn.AddTable(t.l2)
	for _, name := range decide.Fixed() {
		if err := t.addSet(name); err != nil {
			return err
		}
	}
	for _, b := range base {
		if prints[b.name] == have.Base[b.name] {
			continue
		}
		ch := &nftables.Chain{Name: b.name, Table: t.t}
		if b.l2 {
			ch.Table = t.l2
		}
		if b.hook != nil {
			ch.Type, ch.Hooknum, ch.Priority = nftables.ChainTypeFilter, b.hook, nftables.ChainPriorityRef(b.prio)
		}
		t.conn.AddChain(ch)
		t.conn.FlushChain(ch)
		t.rules(ch, prints[b.name], b.rules)
	}
	return nil
}

// rules adds rules that say what they were made from, which of them they are, and how many there are.
func (t *table) rules(ch *nftables.Chain, fingerprint string, rules [][]expr.Any) {
	for i, exprs := range rules {
		t.conn.AddRule(&nftables.Rule{Table: ch.Table, Chain: ch, Exprs: exprs,
			UserData: netfilter.Mark(fingerprint, i, len(rules))})
	}
}

// change makes a decided change, in an order in which nothing is used before it is there, or taken away while it is
// used.
func (t *table) change(c decide.Change, want decide.Tables) error {
	for _, name := range c.AddSets {
		if err := t.addSet(name); err != nil {
			return err
		}
	}
	chain := func(name string) *nftables.Chain { return &nftables.Chain{Name: name, Table: t.t} }
	for _, name := range c.AddChains {
		t.conn.AddChain(chain(name))
	}
	for _, name := range c.SetChains {
		t.conn.FlushChain(chain(name))
		t.rules(chain(name), want.Chains[name].Print, t.host.policyRules(want.Chains[name]))
	}
	if err := t.elements(c, want); err != nil {
		return err
	}
	for _, name := range c.DropChains { // all are emptied before any goes: some lead to others
		t.conn.FlushChain(chain(name))
	}
	for _, name := range c.DropChains {
		t.conn.DelChain(chain(name))
	}
	for _, name := range c.DropSets {
		for _, f := range t.host.families() {
			t.conn.DelSet(&nftables.Set{Table: t.t, Name: name + f.Suffix})
		}
	}
	return nil
}

func (t *table) elements(c decide.Change, want decide.Tables) error {
	const most = 200 // the kernel bounds one list by 64 KiB
	for _, f := range t.host.families() {
		for _, name := range slices.Sorted(maps.Keys(c.DropElems)) {
			for part := range slices.Chunk(elems(f, name, c.DropElems[name], nil), most) {
				if err := t.conn.SetDeleteElements(t.set(name, f), part); err != nil {
					return err
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(c.AddElems)) {
			for part := range slices.Chunk(elems(f, name, c.AddElems[name], want.Sets[name]), most) {
				if err := t.conn.SetAddElements(t.set(name, f), part); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// elems are those of a family, as the kernel has them; to says where they lead if they are added to a map.
func elems(f netfilter.Family, set string, list []decide.Elem, to decide.Set) (out []nftables.SetElement) {
	shape := decide.ShapeOf(set)
	for _, e := range list {
		if e.Addr.Is6() != f.Six {
			continue
		}
		one := nftables.SetElement{Key: key(shape, e)}
		if shape == decide.AddrMap && to != nil {
			one.Comment = to[e]
			one.VerdictData = &expr.Verdict{Kind: expr.VerdictAccept}
			if to[e] != decide.Accept {
				one.VerdictData = &expr.Verdict{Kind: expr.VerdictGoto, Chain: to[e]}
			}
		}
		out = append(out, one)
	}
	return out
}

// key is that of an element: each part fills registers of four bytes.
func key(shape decide.Shape, e decide.Elem) []byte {
	out := e.Addr.AsSlice()
	switch shape {
	case decide.AddrPair:
		out = append(out, e.Other.AsSlice()...)
	case decide.AddrPort:
		out = append(out, byte(e.Proto), 0, 0, 0)
		out = append(binary.BigEndian.AppendUint16(out, e.Port), 0, 0)
	}
	return out
}

// parseKey is the way back. Keys of another make are not ours: ok is false.
func parseKey(f netfilter.Family, shape decide.Shape, key []byte) (e decide.Elem, ok bool) {
	n := int(f.AddrLen)
	want := n + map[decide.Shape]int{decide.AddrPair: n, decide.AddrPort: 8}[shape]
	if len(key) != want {
		return e, false
	}
	e.Addr, _ = netip.AddrFromSlice(key[:n])
	switch shape {
	case decide.AddrPair:
		e.Other, _ = netip.AddrFromSlice(key[n:])
	case decide.AddrPort:
		e.Proto, e.Port = decide.Proto(key[n]), binary.BigEndian.Uint16(key[n+4:])
	}
	return e, true
}

func (t *table) addSet(name string) error {
	for _, f := range t.host.families() {
		s := t.set(name, f)
		t.id++
		s.ID = t.id
		if err := t.conn.AddSet(s, nil); err != nil {
			return err
		}
	}
	return nil
}

// set describes the set of a name and family.
func (t *table) set(name string, f netfilter.Family) *nftables.Set {
	s := &nftables.Set{Table: t.t, Name: name + f.Suffix, KeyByteOrder: binaryutil.BigEndian, KeyType: f.Addr}
	switch decide.ShapeOf(name) {
	case decide.AddrMap:
		s.IsMap, s.DataType = true, nftables.TypeVerdict
	case decide.AddrPair:
		s.KeyType = nftables.MustConcatSetType(f.Addr, f.Addr)
	case decide.AddrPort:
		s.KeyType = nftables.MustConcatSetType(f.Addr, nftables.TypeInetProto, nftables.TypeInetService)
	}
	return s
}
