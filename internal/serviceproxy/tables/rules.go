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

	"github.com/wherryproject/wherry/internal/netfilter"
	"github.com/wherryproject/wherry/internal/serviceproxy/decide"
)

// afterHostPorts puts our translation behind host ports and a kube-proxy's, before that of service kubernetes.
const afterHostPorts = 5

// baseChain is one of those that are always there. A nil hook makes a chain to jump to.
type baseChain struct {
	name  string
	kind  nftables.ChainType // empty: nat
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
		return netfilter.All(append(match, netfilter.Verdict(expr.VerdictJump, to))...)
	}
	var cluster, external, post [][]expr.Any
	for _, f := range netfilter.Families() {
		cluster = append(cluster, netfilter.All(netfilter.IsFamily(f), lookup(f, "cluster", true)))
		external = append(external, netfilter.All(netfilter.IsFamily(f), lookup(f, "external", true)))
	}
	for _, f := range netfilter.Families() {
		match := netfilter.All(netfilter.IsFamily(f), netfilter.Local())
		if f.Six { // a packet from ::1 cannot leave loopback: let it be refused
			match = append(match, netfilter.Within(f, f.DstAt, netip.MustParsePrefix("::1/128"), expr.CmpOpNeq)...)
		}
		external = append(external, netfilter.All(match, lookup(f, "nodeports", false)))
		// What pods here send has the address that their network gives it beyond: their own, to other nodes.
		match = netfilter.All(netfilter.IsFamily(f), netfilter.Translated())
		for _, p := range h.Pods {
			if p.Addr().Is6() == f.Six {
				match = append(match, netfilter.Within(f, f.SrcAt, p, expr.CmpOpNeq)...)
			}
		}
		post = append(post, netfilter.All(match, inSet(f, "beyond"), []expr.Any{&expr.Masq{}}))
	}
	list := []baseChain{
		{name: decide.Refuse, rules: [][]expr.Any{
			netfilter.All(netfilter.IsProto(unix.IPPROTO_TCP), []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_TCP_RST}}),
			{&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_PORT_UNREACH}},
		}},
		{name: "cluster", rules: cluster},
		{name: "external", rules: external},
		{name: "prerouting", hook: nftables.ChainHookPrerouting, prio: dstnat + afterHostPorts, rules: [][]expr.Any{
			jump("cluster", netfilter.From(h.Bridge, expr.CmpOpEq)), jump("external")}},
		{name: "output", hook: nftables.ChainHookOutput, prio: dstnat + afterHostPorts, rules: [][]expr.Any{
			jump("cluster"), jump("external")}},
		{name: "postrouting", hook: nftables.ChainHookPostrouting, prio: *nftables.ChainPriorityNATSource, rules: post},
		{name: "forward", kind: nftables.ChainTypeFilter, hook: nftables.ChainHookForward,
			prio: *nftables.ChainPriorityFilter, rules: h.invalid()},
	}
	if h.Cgroup.ID != 0 {
		list = append(list, baseChain{name: "output-pods", hook: nftables.ChainHookOutput,
			prio: dstnat + afterHostPorts - 1, rules: [][]expr.Any{jump("cluster", h.ofPods())}})
	}
	return list
}

// invalid drops what comes from pods, or to them, and belongs to no connection that the kernel knows, such as what
// comes so late that it is outside of the window. It would not be translated: who gets it from an address that he has
// not asked answers with a reset, which ends a connection that works (kubernetes/kubernetes#74839). Where the machine
// takes such packets for what they are, only resets are left that are outside of the window, and these have to pass.
func (h Host) invalid() [][]expr.Any {
	if h.Liberal {
		return [][]expr.Any{netfilter.Verdict(expr.VerdictReturn, "")} // a chain without rules has no fingerprint
	}
	drop := netfilter.Verdict(expr.VerdictDrop, "")
	return [][]expr.Any{
		netfilter.All(netfilter.To(h.Bridge), netfilter.InState(expr.CtStateBitINVALID), drop),
		netfilter.All(netfilter.From(h.Bridge, expr.CmpOpEq), netfilter.InState(expr.CtStateBitINVALID), drop),
	}
}

// ofPods matches what pods on the machine's own network send.
func (h Host) ofPods() []expr.Any {
	id := binary.NativeEndian.AppendUint64(nil, h.Cgroup.ID)
	return []expr.Any{
		&expr.Socket{Key: expr.SocketKeyCgroupv2, Level: h.Cgroup.Depth, Register: netfilter.Reg1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: netfilter.Reg1, Data: id},
	}
}

// serviceRules are those of a service's chain. Maps without a name come with the rules that use them.
func (t *table) serviceRules(c decide.Chain) ([][]expr.Any, error) {
	f := netfilter.FamilyOf(c.Six)
	var out [][]expr.Any
	if len(c.Sources) > 0 {
		var not []expr.Any
		for _, r := range c.Sources {
			not = append(not, netfilter.Within(f, f.SrcAt, r, expr.CmpOpNeq)...)
		}
		out = append(out, netfilter.All(not, netfilter.Verdict(expr.VerdictGoto, decide.Refuse)))
	}
	if c.Inside != "" {
		inside := netfilter.Verdict(expr.VerdictGoto, c.Inside)
		out = append(out, netfilter.All(netfilter.From(t.host.Bridge, expr.CmpOpEq), inside))
		out = append(out, netfilter.All(netfilter.From("", expr.CmpOpEq), inside))
	}
	switch {
	case len(c.Ends) == 0:
		out = append(out, netfilter.Verdict(expr.VerdictGoto, decide.Refuse))
	case c.Remember != "":
		out = append(out, netfilter.All(t.remember(f, c), to(f, c.Ends[0].At)))
	case c.Timeout > 0:
		for _, e := range c.Ends {
			out = append(out, netfilter.All(clientIn(f, e.Clients), netfilter.Verdict(expr.VerdictGoto, e.Chain)))
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

func (t *table) remember(f netfilter.Family, c decide.Chain) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: netfilter.Reg1, Base: expr.PayloadBaseNetworkHeader, Offset: f.SrcAt,
			Len: f.AddrLen},
		&expr.Dynset{SrcRegKey: netfilter.Reg1, SetName: c.Remember, SetID: t.clients[c.Remember],
			Operation: uint32(unix.NFT_DYNSET_OP_UPDATE), Timeout: c.Timeout},
	}
}

func clientIn(f netfilter.Family, set string) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: netfilter.Reg1, Base: expr.PayloadBaseNetworkHeader, Offset: f.SrcAt,
			Len: f.AddrLen},
		&expr.Lookup{SourceRegister: netfilter.Reg1, SetName: set},
	}
}

// chooseEnd translates to one of several at random.
func (t *table) chooseEnd(f netfilter.Family, ends []decide.End) ([]expr.Any, error) {
	var elems []nftables.SetElement
	for i, e := range ends {
		elems = append(elems, nftables.SetElement{Key: binaryutil.NativeEndian.PutUint32(uint32(i)),
			Val: append(binary.BigEndian.AppendUint16(e.At.Addr().AsSlice(), e.At.Port()), 0, 0)})
	}
	set, err := t.anonymous(nftables.MustConcatSetType(f.Addr, nftables.TypeInetService), elems)
	if err != nil {
		return nil, err
	}
	return []expr.Any{
		&expr.Numgen{Register: netfilter.Reg1, Modulus: uint32(len(ends)), Type: unix.NFT_NG_RANDOM},
		&expr.Lookup{SourceRegister: netfilter.Reg1, DestRegister: netfilter.Reg1, IsDestRegSet: true, SetID: set.ID,
			SetName: set.Name},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(f.Proto), RegAddrMin: netfilter.Reg1,
			RegProtoMin: netfilter.Reg8 + f.AddrLen/4},
	}, nil
}

// chooseChain goes to the chain of one of several at random.
func (t *table) chooseChain(ends []decide.End) ([]expr.Any, error) {
	if len(ends) == 1 {
		return netfilter.Verdict(expr.VerdictGoto, ends[0].Chain), nil
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
		&expr.Numgen{Register: netfilter.Reg1, Modulus: uint32(len(ends)), Type: unix.NFT_NG_RANDOM},
		&expr.Lookup{SourceRegister: netfilter.Reg1, DestRegister: unix.NFT_REG_VERDICT, IsDestRegSet: true,
			SetID: set.ID, SetName: set.Name},
	}, nil
}

// to rewrites the destination.
func to(f netfilter.Family, at netip.AddrPort) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: netfilter.Reg1, Data: at.Addr().AsSlice()},
		&expr.Immediate{Register: unix.NFT_REG_2, Data: binary.BigEndian.AppendUint16(nil, at.Port())},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(f.Proto), RegAddrMin: netfilter.Reg1,
			RegProtoMin: unix.NFT_REG_2},
	}
}

// load puts destination (if with it), protocol and port into registers from netfilter.Reg8 on, as the maps' keys have
// them.
func load(f netfilter.Family, withAddr bool) []expr.Any {
	var out []expr.Any
	at := uint32(netfilter.Reg8)
	if withAddr {
		out = append(out, &expr.Payload{DestRegister: at, Base: expr.PayloadBaseNetworkHeader, Offset: f.DstAt,
			Len: f.AddrLen})
		at += f.AddrLen / 4
	}
	return append(out,
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: at},
		&expr.Payload{DestRegister: at + 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2})
}

// lookup goes where a map says.
func lookup(f netfilter.Family, name string, withAddr bool) []expr.Any {
	return append(load(f, withAddr), &expr.Lookup{SourceRegister: netfilter.Reg8, SetName: name + f.Suffix,
		DestRegister: unix.NFT_REG_VERDICT, IsDestRegSet: true})
}

func inSet(f netfilter.Family, name string) []expr.Any {
	return append(load(f, true), &expr.Lookup{SourceRegister: netfilter.Reg8, SetName: name + f.Suffix})
}
