// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"

	"github.com/wherryproject/wherry/internal/netfilter"
	"github.com/wherryproject/wherry/internal/runtime/network"
	"github.com/wherryproject/wherry/internal/serviceproxy/decide"
)

// version is that of the rules: what another has made is made again.
const version = "1"

// Host is the network of the node whose pods use the services.
type Host struct {
	Bridge string
	Pods   []netip.Prefix // their networks
	Cgroup Cgroup         // of its pods; the zero value if it is not known
	// Liberal: the machine has nf_conntrack_tcp_be_liberal set.
	Liberal bool
}

// Cgroup is one of the unified hierarchy: its id, which is its folder's inode, and its depth below the root.
type Cgroup struct {
	ID    uint64
	Depth uint32
}

// table is ours, and a connection to speak about it.
type table struct {
	host    Host
	conn    *nftables.Conn
	t       *nftables.Table
	lastID  uint32
	clients map[string]uint32 // sets of this transaction
}

// Name is that of the table.
func (h Host) Name() string { return network.ServicesTable(h.Bridge) }

func (h Host) open() (*table, error) {
	conn, err := netfilter.Open()
	if err != nil {
		return nil, err
	}
	return &table{host: h, conn: conn, clients: map[string]uint32{},
		t: &nftables.Table{Name: h.Name(), Family: nftables.TableFamilyINet}}, nil
}

func (t *table) close() { _ = t.conn.CloseLasting() }

// Rules is what there is to the rules of a service besides what is decided about it.
func (h Host) Rules() string { return fmt.Sprintf("%s of %+v", version, h) }

// id is one for a set of this transaction.
func (t *table) id() uint32 {
	t.lastID++
	return t.lastID
}

// named describes one of the maps and sets that are always there.
func (t *table) named(name string, f netfilter.Family) *nftables.Set {
	s := &nftables.Set{Table: t.t, Name: name + f.Suffix, KeyByteOrder: binaryutil.BigEndian}
	key := []nftables.SetDatatype{nftables.TypeInetProto, nftables.TypeInetService}
	if name != "nodeports" {
		key = append([]nftables.SetDatatype{f.Addr}, key...)
	}
	s.KeyType = nftables.MustConcatSetType(key...)
	if name != "beyond" {
		s.IsMap, s.DataType = true, nftables.TypeVerdict
	}
	return s
}

// anonymous adds a map that belongs to the rule that will use it.
func (t *table) anonymous(data nftables.SetDatatype, elems []nftables.SetElement) (*nftables.Set, error) {
	s := &nftables.Set{Table: t.t, ID: t.id(), Name: "__map%d", Anonymous: true, Constant: true, IsMap: true,
		KeyType: nftables.TypeInteger, DataType: data, KeyByteOrder: binaryutil.NativeEndian}
	return s, t.conn.AddSet(s, elems)
}

// Remove takes the table away with all that is in it. One that is not there is fine.
func (h Host) Remove() error {
	t, err := h.open()
	if err != nil {
		return err
	}
	defer t.close()
	t.conn.AddTable(t.t) // makes the deletion idempotent within one transaction
	t.conn.DelTable(t.t)
	if err := t.conn.Flush(); err != nil {
		return fmt.Errorf("remove nftables table %s: %w", t.t.Name, err)
	}
	return nil
}

// want is the state that the kernel is in when the tables are applied.
func (h Host) want(tables decide.Tables) State {
	s := State{Table: true, Base: map[string]string{}, There: tables.There()}
	for _, b := range h.base() {
		s.Base[b.name] = decide.Print(h.Rules(), b.text())
	}
	return s
}

// Make makes the kernel, which is as have says, equal to what is wanted. It returns what it is like now, and what was
// changed.
func (h Host) Make(have State, want decide.Tables) (State, decide.Change, error) {
	change := decide.Diff(have.There, want.There())
	if change.Empty() && (want.Empty() || have.Table && maps.Equal(have.Base, h.want(want).Base)) {
		return have, change, nil
	}
	now, err := h.apply(have, change, want)
	return now, change, err
}

// apply makes a change that leads to want, in one transaction. have is what [Host.Read] found before, or what was
// applied last. Nothing is left of a table in which nothing is wanted.
func (h Host) apply(have State, c decide.Change, want decide.Tables) (State, error) {
	if want.Empty() {
		if !have.Table {
			return have, nil
		}
		return State{}, h.Remove()
	}
	t, err := h.open()
	if err != nil {
		return have, err
	}
	defer t.close()
	now := h.want(want)
	t.conn.AddTable(t.t)
	if !maps.Equal(have.Base, now.Base) {
		if err := t.foundation(have, now); err != nil {
			return have, err
		}
	}
	if err := t.change(c, want); err != nil {
		return have, err
	}
	if err := t.conn.Flush(); err != nil {
		return have, fmt.Errorf("nftables rejected the rules of services: %w", err)
	}
	return now, nil
}

// foundation makes what is always there, as far as it is not.
func (t *table) foundation(have, now State) error {
	for _, f := range netfilter.Families() {
		for _, name := range []string{"cluster", "external", "nodeports", "beyond"} {
			s := t.named(name, f)
			s.ID = t.id()
			if err := t.conn.AddSet(s, nil); err != nil {
				return err
			}
		}
	}
	for _, b := range t.host.base() {
		if now.Base[b.name] == have.Base[b.name] {
			continue
		}
		ch := &nftables.Chain{Name: b.name, Table: t.t}
		if b.hook != nil {
			ch.Type, ch.Hooknum, ch.Priority = cmp.Or(b.kind, nftables.ChainTypeNAT), b.hook,
				nftables.ChainPriorityRef(b.prio)
		}
		t.conn.AddChain(ch)
		t.conn.FlushChain(ch)
		t.rules(ch, now.Base[b.name], b.rules)
	}
	return nil
}

// rules adds rules that say what they were made from, which of them they are, and how many there are.
func (t *table) rules(ch *nftables.Chain, fingerprint string, rules [][]expr.Any) {
	for i, exprs := range rules {
		t.conn.AddRule(&nftables.Rule{Table: t.t, Chain: ch, Exprs: exprs,
			UserData: netfilter.Mark(fingerprint, i, len(rules))})
	}
}

// change makes a decided change, in an order in which nothing is used before it is there, or taken away while it is
// used.
func (t *table) change(c decide.Change, want decide.Tables) error {
	for _, name := range c.AddClients {
		f := netfilter.FamilyOf(want.Clients[name])
		t.clients[name] = t.id()
		if err := t.conn.AddSet(&nftables.Set{Table: t.t, ID: t.clients[name], Name: name, KeyType: f.Addr,
			Dynamic: true, HasTimeout: true, Size: 65535, KeyByteOrder: binaryutil.BigEndian}, nil); err != nil {
			return err
		}
	}
	chain := func(name string) *nftables.Chain { return &nftables.Chain{Name: name, Table: t.t} }
	for _, name := range c.AddChains {
		t.conn.AddChain(chain(name))
	}
	for _, name := range c.SetChains {
		t.conn.FlushChain(chain(name))
		rules, err := t.serviceRules(want.Chains[name])
		if err != nil {
			return err
		}
		t.rules(chain(name), want.Chains[name].Print, rules)
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
	for _, name := range c.DropClients {
		t.conn.DelSet(&nftables.Set{Table: t.t, Name: name})
	}
	return nil
}

func (t *table) elements(c decide.Change, want decide.Tables) error {
	type lists struct{ drop, add []nftables.SetElement }
	all := map[string]*lists{}
	sets := map[string]*nftables.Set{}
	list := func(name string, six bool) *lists {
		s := t.named(name, netfilter.FamilyOf(six))
		if all[s.Name] == nil {
			all[s.Name], sets[s.Name] = &lists{}, s
		}
		return all[s.Name]
	}
	for _, k := range c.DropKeys {
		l := list(places(k.Place), k.Six)
		l.drop = append(l.drop, nftables.SetElement{Key: keyBytes(k.Addr, k.Proto, k.Port)})
	}
	for _, k := range c.AddKeys {
		l := list(places(k.Place), k.Six)
		l.add = append(l.add, nftables.SetElement{Key: keyBytes(k.Addr, k.Proto, k.Port), Comment: want.Keys[k],
			VerdictData: &expr.Verdict{Kind: expr.VerdictGoto, Chain: want.Keys[k]}})
	}
	for _, b := range c.DropBeyond {
		l := list("beyond", b.At.Addr().Is6())
		l.drop = append(l.drop, nftables.SetElement{Key: keyBytes(b.At.Addr(), b.Proto, b.At.Port())})
	}
	for _, b := range c.AddBeyond {
		l := list("beyond", b.At.Addr().Is6())
		l.add = append(l.add, nftables.SetElement{Key: keyBytes(b.At.Addr(), b.Proto, b.At.Port())})
	}
	for name, l := range all {
		if len(l.drop) > 0 {
			if err := t.conn.SetDeleteElements(sets[name], l.drop); err != nil {
				return err
			}
		}
		for len(l.add) > 0 { // the kernel bounds one list by 64 KiB
			n := min(len(l.add), 200)
			if err := t.conn.SetAddElements(sets[name], l.add[:n]); err != nil {
				return err
			}
			l.add = l.add[n:]
		}
	}
	return nil
}

func places(p decide.Place) string {
	switch p {
	case decide.External:
		return "external"
	case decide.NodePort:
		return "nodeports"
	}
	return "cluster"
}

// keyBytes is a map's key: each part fills registers of four bytes. An address that is not set is none.
func keyBytes(a netip.Addr, proto decide.Proto, port uint16) []byte {
	var key []byte
	if a.IsValid() {
		key = a.AsSlice()
	}
	key = append(key, byte(proto), 0, 0, 0)
	return append(binary.BigEndian.AppendUint16(key, port), 0, 0)
}

// parseKey is the way back. Keys of another make are not ours: ok is false.
func parseKey(key []byte) (a netip.Addr, proto decide.Proto, port uint16, ok bool) {
	n := len(key) - 8
	if n != 0 && n != 4 && n != 16 {
		return a, 0, 0, false
	}
	if n > 0 {
		a, _ = netip.AddrFromSlice(key[:n])
	}
	return a, decide.Proto(key[n]), binary.BigEndian.Uint16(key[n+4:]), true
}
