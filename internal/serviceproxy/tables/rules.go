// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"encoding/binary"
	"encoding/json"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/serviceproxy/decide"
)

// Register numbers as the kernel has them: 1 to 4 are 16 bytes each, 8 to 23 are the same space in steps of 4 bytes.
const (
	reg1 = unix.NFT_REG_1
	reg8 = unix.NFT_REG32_00
)

// family is what differs between IPv4 and IPv6.
type family struct {
	six     bool
	suffix  string
	proto   byte   // NFPROTO_*
	addrLen uint32 // bytes
	srcAt   uint32 // offset of the source address in the network header
	dstAt   uint32
	addr    nftables.SetDatatype
}

func familyOf(six bool) family {
	if six {
		return family{true, "6", unix.NFPROTO_IPV6, 16, 8, 24, nftables.TypeIP6Addr}
	}
	return family{false, "4", unix.NFPROTO_IPV4, 4, 12, 16, nftables.TypeIPAddr}
}

func families() []family { return []family{familyOf(false), familyOf(true)} }

// afterHostPorts puts our translation behind host ports and a kube-proxy's, before that of service kubernetes.
const afterHostPorts = 5

// baseChain is one of those that are always there. A nil hook makes a chain to jump to.
type baseChain struct {
	name  string
	hook  *nftables.ChainHook
	prio  nftables.ChainPriority
	rules [][]expr.Any
}

// text is all there is of the chain.
func (b baseChain) text() string {
	text, err := json.Marshal(b.rules)
	if err != nil {
		return err.Error() // no expression of ours has anything that cannot be written
	}
	return b.name + string(text)
}

// base are these chains, each behind those that it jumps to.
func (h Host) base() []baseChain {
	dstnat := *nftables.ChainPriorityNATDest
	jump := func(to string, match ...[]expr.Any) []expr.Any {
		return all(append(match, verdict(expr.VerdictJump, to))...)
	}
	var cluster, external, post [][]expr.Any
	for _, f := range families() {
		cluster = append(cluster, all(isFamily(f), lookup(f, "cluster", true)))
		external = append(external, all(isFamily(f), lookup(f, "external", true)))
	}
	for _, f := range families() {
		match := all(isFamily(f), local())
		if f.six { // a packet from ::1 cannot leave loopback: let it be refused
			match = append(match, within(f, f.dstAt, netip.MustParsePrefix("::1/128"), expr.CmpOpNeq)...)
		}
		external = append(external, all(match, lookup(f, "nodeports", false)))
		post = append(post, all(isFamily(f), dnated(), inSet(f, "beyond"), []expr.Any{&expr.Masq{}}))
	}
	list := []baseChain{
		{name: decide.Refuse, rules: [][]expr.Any{
			all(isProto(unix.IPPROTO_TCP), []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_TCP_RST}}),
			{&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_PORT_UNREACH}},
		}},
		{name: "cluster", rules: cluster},
		{name: "external", rules: external},
		{name: "prerouting", hook: nftables.ChainHookPrerouting, prio: dstnat + afterHostPorts, rules: [][]expr.Any{
			jump("cluster", from(h.Bridge, expr.CmpOpEq)), jump("external")}},
		{name: "output", hook: nftables.ChainHookOutput, prio: dstnat + afterHostPorts, rules: [][]expr.Any{
			jump("cluster"), jump("external")}},
		{name: "postrouting", hook: nftables.ChainHookPostrouting, prio: *nftables.ChainPriorityNATSource, rules: post},
	}
	if h.Cgroup.ID != 0 {
		list = append(list, baseChain{name: "output-pods", hook: nftables.ChainHookOutput,
			prio: dstnat + afterHostPorts - 1, rules: [][]expr.Any{jump("cluster", h.ofPods())}})
	}
	return list
}

// ofPods matches what pods on the machine's own network send.
func (h Host) ofPods() []expr.Any {
	id := binary.NativeEndian.AppendUint64(nil, h.Cgroup.ID)
	return []expr.Any{
		&expr.Socket{Key: expr.SocketKeyCgroupv2, Level: h.Cgroup.Depth, Register: reg1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg1, Data: id},
	}
}

// serviceRules are those of a service's chain. Maps without a name come with the rules that use them.
func (t *table) serviceRules(c decide.Chain) ([][]expr.Any, error) {
	f := familyOf(c.Six)
	var out [][]expr.Any
	if len(c.Sources) > 0 {
		var not []expr.Any
		for _, r := range c.Sources {
			not = append(not, within(f, f.srcAt, r, expr.CmpOpNeq)...)
		}
		out = append(out, all(not, verdict(expr.VerdictGoto, decide.Refuse)))
	}
	if c.Inside != "" {
		inside := verdict(expr.VerdictGoto, c.Inside)
		out = append(out, all(from(t.host.Bridge, expr.CmpOpEq), inside))
		out = append(out, all(from("", expr.CmpOpEq), inside))
	}
	switch {
	case len(c.Ends) == 0:
		out = append(out, verdict(expr.VerdictGoto, decide.Refuse))
	case c.Remember != "":
		out = append(out, all(t.remember(f, c), to(f, c.Ends[0].At)))
	case c.Timeout > 0:
		for _, e := range c.Ends {
			out = append(out, all(clientIn(f, e.Clients), verdict(expr.VerdictGoto, e.Chain)))
		}
		chosen, err := t.chooseChain(c.Ends)
		if err != nil {
			return nil, err
		}
		out = append(out, chosen)
	case len(c.Ends) == 1:
		out = append(out, to(f, c.Ends[0].At))
	default:
		chosen, err := t.chooseEnd(f, c.Ends)
		if err != nil {
			return nil, err
		}
		out = append(out, chosen)
	}
	return out, nil
}

func (t *table) remember(f family, c decide.Chain) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: reg1, Base: expr.PayloadBaseNetworkHeader, Offset: f.srcAt, Len: f.addrLen},
		&expr.Dynset{SrcRegKey: reg1, SetName: c.Remember, SetID: t.clients[c.Remember],
			Operation: uint32(unix.NFT_DYNSET_OP_UPDATE), Timeout: c.Timeout},
	}
}

func clientIn(f family, set string) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: reg1, Base: expr.PayloadBaseNetworkHeader, Offset: f.srcAt, Len: f.addrLen},
		&expr.Lookup{SourceRegister: reg1, SetName: set},
	}
}

// chooseEnd translates to one of several at random.
func (t *table) chooseEnd(f family, ends []decide.End) ([]expr.Any, error) {
	var elems []nftables.SetElement
	for i, e := range ends {
		elems = append(elems, nftables.SetElement{Key: binaryutil.NativeEndian.PutUint32(uint32(i)),
			Val: append(binary.BigEndian.AppendUint16(e.At.Addr().AsSlice(), e.At.Port()), 0, 0)})
	}
	set, err := t.anonymous(nftables.MustConcatSetType(f.addr, nftables.TypeInetService), elems)
	if err != nil {
		return nil, err
	}
	return []expr.Any{
		&expr.Numgen{Register: reg1, Modulus: uint32(len(ends)), Type: unix.NFT_NG_RANDOM},
		&expr.Lookup{SourceRegister: reg1, DestRegister: reg1, IsDestRegSet: true, SetID: set.ID, SetName: set.Name},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(f.proto), RegAddrMin: reg1,
			RegProtoMin: reg8 + f.addrLen/4},
	}, nil
}

// chooseChain goes to the chain of one of several at random.
func (t *table) chooseChain(ends []decide.End) ([]expr.Any, error) {
	if len(ends) == 1 {
		return verdict(expr.VerdictGoto, ends[0].Chain), nil
	}
	var elems []nftables.SetElement
	for i, e := range ends {
		elems = append(elems, nftables.SetElement{Key: binaryutil.NativeEndian.PutUint32(uint32(i)),
			VerdictData: &expr.Verdict{Kind: expr.VerdictGoto, Chain: e.Chain}})
	}
	set, err := t.anonymous(nftables.TypeVerdict, elems)
	if err != nil {
		return nil, err
	}
	return []expr.Any{
		&expr.Numgen{Register: reg1, Modulus: uint32(len(ends)), Type: unix.NFT_NG_RANDOM},
		&expr.Lookup{SourceRegister: reg1, DestRegister: unix.NFT_REG_VERDICT, IsDestRegSet: true, SetID: set.ID,
			SetName: set.Name},
	}, nil
}

// to rewrites the destination.
func to(f family, at netip.AddrPort) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: reg1, Data: at.Addr().AsSlice()},
		&expr.Immediate{Register: unix.NFT_REG_2, Data: binary.BigEndian.AppendUint16(nil, at.Port())},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(f.proto), RegAddrMin: reg1, RegProtoMin: unix.NFT_REG_2},
	}
}

// load puts destination (if with it), protocol and port into registers from reg8 on, as the maps' keys have them.
func load(f family, withAddr bool) []expr.Any {
	var out []expr.Any
	at := uint32(reg8)
	if withAddr {
		out = append(out, &expr.Payload{DestRegister: at, Base: expr.PayloadBaseNetworkHeader, Offset: f.dstAt,
			Len: f.addrLen})
		at += f.addrLen / 4
	}
	return append(out,
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: at},
		&expr.Payload{DestRegister: at + 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2})
}

// lookup goes where a map says.
func lookup(f family, name string, withAddr bool) []expr.Any {
	return append(load(f, withAddr), &expr.Lookup{SourceRegister: reg8, SetName: name + f.suffix,
		DestRegister: unix.NFT_REG_VERDICT, IsDestRegSet: true})
}

func inSet(f family, name string) []expr.Any {
	return append(load(f, true), &expr.Lookup{SourceRegister: reg8, SetName: name + f.suffix})
}

func all(parts ...[]expr.Any) (out []expr.Any) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func isFamily(f family) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: reg1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg1, Data: []byte{f.proto}},
	}
}

func isProto(p byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: reg1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg1, Data: []byte{p}},
	}
}

// from matches the device that a packet came by; that of one of the machine itself is without a name.
func from(device string, op expr.CmpOp) []expr.Any {
	data := make([]byte, unix.IFNAMSIZ)
	copy(data, device)
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: reg1},
		&expr.Cmp{Op: op, Register: reg1, Data: data},
	}
}

// within compares the address at an offset with a network.
func within(f family, offset uint32, p netip.Prefix, op expr.CmpOp) []expr.Any {
	mask := make([]byte, f.addrLen)
	for i := range p.Bits() {
		mask[i/8] |= 1 << (7 - i%8)
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
		&expr.Bitwise{SourceRegister: reg1, DestRegister: reg1, Len: 4,
			Mask: binaryutil.NativeEndian.PutUint32(ipsDstNAT), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: reg1, Data: make([]byte, 4)},
	}
}

func verdict(kind expr.VerdictKind, chain string) []expr.Any {
	return []expr.Any{&expr.Verdict{Kind: kind, Chain: chain}}
}
