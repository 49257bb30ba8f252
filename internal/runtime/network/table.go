// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// tablePrefix begins the name of every nftables table of ours; the bridge's name follows.
const tablePrefix = "wherry-"

// ServicesTable is the name of the table in which a service proxy has its rules for a bridge. No bridge has such a
// name.
func ServicesTable(bridge string) string { return tablePrefix + bridge + "/services" }

// Register numbers as the kernel has them: 1 to 4 are 16 bytes each, 8 to 23 are the same space in steps of 4 bytes.
const (
	reg1     = unix.NFT_REG_1
	reg32_00 = unix.NFT_REG32_00
)

// family is what differs between IPv4 and IPv6 in the rules.
type family struct {
	proto    byte   // NFPROTO_*
	addrLen  uint32 // bytes of an address
	srcAt    uint32 // offset of the source address in the network header
	dstAt    uint32
	loopback netip.Prefix
	addrType nftables.SetDatatype
}

func ipv4() family {
	return family{unix.NFPROTO_IPV4, 4, 12, 16, netip.MustParsePrefix("127.0.0.0/8"), nftables.TypeIPAddr}
}

func ipv6() family {
	return family{unix.NFPROTO_IPV6, 16, 8, 24, netip.MustParsePrefix("::1/128"), nftables.TypeIP6Addr}
}

func familyOf(a netip.Addr) family {
	if a.Is4() {
		return ipv4()
	}
	return ipv6()
}

// table is our nftables table of one bridge and a connection to speak about it:
//
//	table inet wherry-<bridge> {
//	  map hostports4    { type inet_proto . inet_service : ipv4_addr . inet_service }               elements: one per host port
//	  map hostports4_ip { type ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service }   those with a hostIP
//	  map hostports6, hostports6_ip likewise
//	  set nodes4, nodes6 { flags interval }                                                         networks of other nodes' pods
//	  chain guard       { filter prerouting raw:  iifname <bridge> ip daddr 127.0.0.0/8 drop }
//	  chain guard-nodes { filter prerouting raw:  iifname <device> ip daddr 127.0.0.0/8 drop; and saddr }   see leaves.go
//	  chain prerouting  { nat prerouting dstnat:  fib daddr type local jump hostports }
//	  chain output      { nat output dstnat:      fib daddr type local jump hostports }
//	  chain hostports   { dnat ip to meta l4proto . th dport map @hostports4; … }
//	  chain postrouting { nat postrouting srcnat: ip saddr <pods> ip daddr @nodes4 accept
//	                      ip saddr <pods> oifname != <bridge> masquerade
//	                      oifname <bridge> ip saddr 127.0.0.0/8 masquerade
//	                      oifname <bridge> ip saddr <pods> ct status dnat masquerade }
//	}
//
// guard is there because host ports on 127.0.0.1 need route_localnet on the bridge, which without the rule would let
// pods reach what listens on the host's loopback only.
type table struct {
	conn *nftables.Conn
	t    *nftables.Table
}

func openTable(bridge string) (*table, error) {
	conn, err := nftables.New(nftables.AsLasting())
	if err != nil {
		return nil, fmt.Errorf("nftables: %w (does this kernel have CONFIG_NF_TABLES, and are we root?)", err)
	}
	return &table{conn, &nftables.Table{Name: tablePrefix + bridge, Family: nftables.TableFamilyINet}}, nil
}

func (t *table) close() { _ = t.conn.CloseLasting() }

// hostPortMap describes one of the maps. withIP are those whose key begins with the host's address.
func (t *table) hostPortMap(f family, withIP bool) *nftables.Set {
	name := "hostports4"
	if f.proto == unix.NFPROTO_IPV6 {
		name = "hostports6"
	}
	key := []nftables.SetDatatype{nftables.TypeInetProto, nftables.TypeInetService}
	if withIP {
		name += "_ip"
		key = append([]nftables.SetDatatype{f.addrType}, key...)
	}
	return &nftables.Set{
		Table:        t.t,
		Name:         name,
		IsMap:        true,
		KeyType:      nftables.MustConcatSetType(key...),
		DataType:     nftables.MustConcatSetType(f.addrType, nftables.TypeInetService),
		KeyByteOrder: binaryutil.BigEndian,
	}
}

// ensure creates what is missing of the table and replaces all rules, in one transaction. Elements of the maps stay:
// pods outlive the server.
func (t *table) ensure(c Config) error {
	t.conn.AddTable(t.t)
	for _, f := range []family{ipv4(), ipv6()} {
		for _, withIP := range []bool{false, true} {
			if err := t.conn.AddSet(t.hostPortMap(f, withIP), nil); err != nil {
				return err
			}
		}
	}
	for _, f := range []family{ipv4(), ipv6()} {
		if err := t.conn.AddSet(t.nodeSet(f), nil); err != nil {
			return err
		}
	}
	devices, err := leaves(c)
	if err != nil {
		return err
	}
	t.guard(c)
	t.guardNodes(devices)
	t.dnat()
	t.masquerade(c)
	if err := t.conn.Flush(); err != nil {
		return explain(err, t.missing)
	}
	return nil
}

// chain creates and empties a chain. A nil hook makes a chain to jump to.
func (t *table) chain(name string, typ nftables.ChainType, hook *nftables.ChainHook,
	prio *nftables.ChainPriority) func(...[]expr.Any) {
	ch := &nftables.Chain{Name: name, Table: t.t}
	if hook != nil {
		ch.Type, ch.Hooknum, ch.Priority = typ, hook, prio
	}
	t.conn.AddChain(ch)
	t.conn.FlushChain(ch)
	return func(parts ...[]expr.Any) {
		var all []expr.Any
		for _, p := range parts {
			all = append(all, p...)
		}
		t.conn.AddRule(&nftables.Rule{Table: t.t, Chain: ch, Exprs: all})
	}
}

func (t *table) guard(c Config) {
	rule := t.chain("guard", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityRaw)
	f := ipv4()
	rule(device(expr.MetaKeyIIFNAME, expr.CmpOpEq, c.Bridge), isFamily(f), within(f, f.dstAt, f.loopback, true),
		verdict(expr.VerdictDrop, ""))
}

func (t *table) dnat() {
	for _, hook := range []struct {
		name string
		hook *nftables.ChainHook
	}{{"prerouting", nftables.ChainHookPrerouting}, {"output", nftables.ChainHookOutput}} {
		// hostports must exist before the first jump to it in this transaction.
		t.conn.AddChain(&nftables.Chain{Name: "hostports", Table: t.t})
		t.chain(hook.name, nftables.ChainTypeNAT, hook.hook,
			nftables.ChainPriorityNATDest)(local(), verdict(expr.VerdictJump, "hostports"))
	}
	rule := t.chain("hostports", "", nil, nil)
	for _, f := range []family{ipv4(), ipv6()} {
		match := isFamily(f)
		if f.proto == unix.NFPROTO_IPV6 {
			// A packet from ::1 cannot leave loopback: let the connection be refused at once instead of timing out.
			match = append(match, within(f, f.dstAt, f.loopback, false)...)
		}
		for _, withIP := range []bool{true, false} {
			rule(match, translate(f, t.hostPortMap(f, withIP).Name, withIP))
		}
	}
}

func (t *table) masquerade(c Config) {
	rule := t.chain("postrouting", nftables.ChainTypeNAT, nftables.ChainHookPostrouting,
		nftables.ChainPriorityNATSource)
	masq := []expr.Any{&expr.Masq{}}
	for _, p := range c.CIDRs {
		f := familyOf(p.Addr())
		rule(isFamily(f), within(f, f.srcAt, p, true), t.toNode(f), verdict(expr.VerdictAccept, ""))
		rule(isFamily(f), within(f, f.srcAt, p, true), device(expr.MetaKeyOIFNAME, expr.CmpOpNeq, c.Bridge), masq)
		// A pod that reaches itself or a neighbour by a host port: the answer must come back through the host.
		rule(device(expr.MetaKeyOIFNAME, expr.CmpOpEq, c.Bridge), isFamily(f), within(f, f.srcAt, p, true), dnated(),
			masq)
		if f.proto == unix.NFPROTO_IPV4 {
			rule(device(expr.MetaKeyOIFNAME, expr.CmpOpEq, c.Bridge), isFamily(f), within(f, f.srcAt, f.loopback, true),
				masq)
		}
	}
}

// remove deletes the table with all that is in it. A table that is not there is fine.
func (t *table) remove() error {
	t.conn.AddTable(t.t) // makes the deletion idempotent within one transaction
	t.conn.DelTable(t.t)
	if err := t.conn.Flush(); err != nil {
		return fmt.Errorf("remove nftables table %s: %w", t.t.Name, err)
	}
	return nil
}

// removeL2 deletes the table of this name of bridges, if there is one.
func (t *table) removeL2() error {
	found, err := dump(func() ([]*nftables.Table, error) {
		return t.conn.ListTablesOfFamily(nftables.TableFamilyBridge)
	})
	if err != nil {
		return fmt.Errorf("nftables: list tables of bridges: %w", err)
	}
	for _, l2 := range found {
		if l2.Name != t.t.Name {
			continue
		}
		t.conn.DelTable(l2)
		if err := t.conn.Flush(); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove nftables table %s of bridges: %w", l2.Name, err)
		}
	}
	return nil
}

// The pieces rules are made of.

func isFamily(f family) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: reg1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg1, Data: []byte{f.proto}},
	}
}

func device(key expr.MetaKey, op expr.CmpOp, name string) []expr.Any {
	data := make([]byte, unix.IFNAMSIZ)
	copy(data, name)
	return []expr.Any{&expr.Meta{Key: key, Register: reg1}, &expr.Cmp{Op: op, Register: reg1, Data: data}}
}

// within matches packets whose address at offset lies in p, or does not.
func within(f family, offset uint32, p netip.Prefix, inside bool) []expr.Any {
	mask := make([]byte, f.addrLen)
	for i := range p.Bits() {
		mask[i/8] |= 1 << (7 - i%8)
	}
	op := expr.CmpOpEq
	if !inside {
		op = expr.CmpOpNeq
	}
	return []expr.Any{
		&expr.Payload{DestRegister: reg1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: f.addrLen},
		&expr.Bitwise{SourceRegister: reg1, DestRegister: reg1, Len: f.addrLen, Mask: mask,
			Xor: make([]byte, f.addrLen)},
		&expr.Cmp{Op: op, Register: reg1, Data: p.Masked().Addr().AsSlice()},
	}
}

// local matches packets to an address of this machine.
func local() []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: reg1, FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg1, Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)},
	}
}

// dnated matches packets of connections whose destination was translated.
func dnated() []expr.Any {
	const ipsDstNAT = 1 << 5 // IPS_DST_NAT of nf_conntrack_common.h
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATUS, Register: reg1},
		&expr.Bitwise{
			SourceRegister: reg1, DestRegister: reg1, Len: 4,
			Mask: binaryutil.NativeEndian.PutUint32(ipsDstNAT), Xor: make([]byte, 4),
		},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: reg1, Data: make([]byte, 4)},
	}
}

// translate looks the packet's destination up in a map of host ports and rewrites it to what it finds there.
func translate(f family, mapName string, withIP bool) []expr.Any {
	var out []expr.Any
	at := uint32(reg32_00)
	if withIP {
		out = append(out, &expr.Payload{DestRegister: at, Base: expr.PayloadBaseNetworkHeader, Offset: f.dstAt,
			Len: f.addrLen})
		at += f.addrLen / 4
	}
	return append(out,
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: at},
		&expr.Payload{DestRegister: at + 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Lookup{SourceRegister: reg32_00, SetName: mapName, DestRegister: reg1, IsDestRegSet: true},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(f.proto), RegAddrMin: reg1,
			RegProtoMin: reg32_00 + f.addrLen/4},
	)
}

func verdict(kind expr.VerdictKind, chain string) []expr.Any {
	return []expr.Any{&expr.Verdict{Kind: kind, Chain: chain}}
}

// feature is a part of nftables and a way to try whether the kernel has it.
type feature struct {
	what string
	try  func() error
}

// explain turns the bare errno of a refused transaction into the name of what the kernel lacks.
func explain(err error, features func() []feature) error {
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("nftables: %w: this needs root (CAP_NET_ADMIN)", err)
	}
	var lacking []string
	for _, f := range features() {
		if f.try() != nil {
			lacking = append(lacking, f.what)
		}
	}
	if len(lacking) == 0 {
		return fmt.Errorf("nftables rejected the pod network's table: %w", err)
	}
	return fmt.Errorf("this kernel does not support the pod network: %w: missing %s", err, strings.Join(lacking, ", "))
}

// missing tries the parts of nftables one by one in a scratch table that no transaction ever commits with success and
// keeps: each try deletes it in the same transaction.
func (t *table) missing() []feature {
	scratch := func(build func(s *table)) func() error {
		return func() error {
			s, err := openTable(t.t.Name[len(tablePrefix):] + "-probe")
			if err != nil {
				return err
			}
			defer s.close()
			s.conn.AddTable(s.t)
			build(s)
			s.conn.DelTable(s.t)
			return s.conn.Flush()
		}
	}
	filter := func(exprs ...[]expr.Any) func() error {
		return scratch(func(s *table) {
			s.chain("probe", nftables.ChainTypeFilter, nftables.ChainHookPrerouting,
				nftables.ChainPriorityRaw)(exprs...)
		})
	}
	return []feature{
		{"nf_tables with the inet family (CONFIG_NF_TABLES, CONFIG_NF_TABLES_INET)", scratch(func(*table) {})},
		{"nat chains (CONFIG_NF_NAT, CONFIG_NFT_NAT)", scratch(func(s *table) {
			s.chain("probe", nftables.ChainTypeNAT, nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest)()
		})},
		{"masquerade (CONFIG_NFT_MASQ)", scratch(func(s *table) {
			s.chain("probe", nftables.ChainTypeNAT, nftables.ChainHookPostrouting,
				nftables.ChainPriorityNATSource)([]expr.Any{&expr.Masq{}})
		})},
		{"fib (CONFIG_NFT_FIB_INET)", filter(local())},
		{"connection tracking (CONFIG_NF_CONNTRACK, CONFIG_NFT_CT)", filter(dnated())},
		{"maps (nft_set_hash of CONFIG_NF_TABLES)",
			scratch(func(s *table) { _ = s.conn.AddSet(s.hostPortMap(ipv4(), false), nil) })},
	}
}
