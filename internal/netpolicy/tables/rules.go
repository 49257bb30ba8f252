// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"encoding/binary"
	"encoding/json"
	"net"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/netfilter"
	"github.com/wherryproject/wherry/internal/netpolicy/decide"
	"github.com/wherryproject/wherry/internal/runtime/network"
)

const (
	reg1 = netfilter.Reg1
	reg8 = netfilter.Reg8
)

// baseChain is one of those that are always there. A nil hook makes a chain to jump to.
type baseChain struct {
	name  string
	l2    bool // in the bridge's table
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

// unicastFirst is before anything else looks at a frame in the bridge's prerouting.
const unicastFirst = -300

// base are these chains, each behind those that it jumps to.
func (h Host) base(mac net.HardwareAddr) []baseChain {
	filter := *nftables.ChainPriorityFilter
	jump := func(match []expr.Any, to string) []expr.Any {
		return netfilter.All(match, netfilter.Verdict(expr.VerdictJump, to))
	}
	var begun, deny, out, in [][]expr.Any
	for _, verdict := range []*[][]expr.Any{&out, &in} {
		*verdict = [][]expr.Any{
			netfilter.All(isReply(), accept()), netfilter.All(netfilter.InState(expr.CtStateBitRELATED), accept()),
			jump(middle(), "begun"),
		}
	}
	for _, f := range h.families() {
		if f.Six { // what a link needs is nobody's connection; IPv4 has ARP for it
			out, in = append(out, netfilter.All(isDiscovery(), accept())),
				append(in, netfilter.All(isDiscovery(), accept()))
		}
		reset := []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_TCP_RST}}
		for _, at := range []uint32{f.SrcAt, f.DstAt} {
			begun = append(begun, netfilter.All(netfilter.IsFamily(f), addrIn(f, at, decide.SetIsolated), reset))
		}
		deny = append(deny, netfilter.All(netfilter.IsFamily(f), selfIn(f), accept()))
		out = append(out, netfilter.All(netfilter.IsFamily(f), addrTo(f, f.SrcAt, decide.SetOut)))
		in = append(in, netfilter.All(netfilter.IsFamily(f), addrTo(f, f.DstAt, decide.SetIn)))
	}
	unknown := netfilter.Verdict(expr.VerdictGoto, "unknown")
	out, in = append(out, unknown), append(in, unknown)
	begun = append(begun, netfilter.Verdict(expr.VerdictReturn, ""))
	deny = append(deny, drop())
	return []baseChain{
		{name: decide.Deny, rules: deny},
		{name: "unknown", rules: [][]expr.Any{netfilter.All(isDiscovery(), accept()), drop()}}, // without IPv6 of pods
		{name: "begun", rules: begun},
		{name: "out", rules: out},
		{name: "in", rules: in},
		{name: "egress", hook: nftables.ChainHookForward, prio: filter,
			rules: [][]expr.Any{jump(netfilter.From(h.Bridge, expr.CmpOpEq), "out")}},
		{name: "egress-host", hook: nftables.ChainHookInput, prio: filter,
			rules: [][]expr.Any{jump(netfilter.From(h.Bridge, expr.CmpOpEq), "out")}},
		{name: "ingress", hook: nftables.ChainHookForward, prio: filter + 1,
			rules: [][]expr.Any{jump(netfilter.To(h.Bridge), "in")}},
		{name: "route", l2: true, hook: nftables.ChainHookPrerouting, prio: unicastFirst, rules: [][]expr.Any{
			netfilter.All(h.fromPods(), isDiscovery(), accept()),
			netfilter.All(h.fromPods(), isEther(unix.ETH_P_IP), toOthers(), toHost(mac)),
			netfilter.All(h.fromPods(), isEther(unix.ETH_P_IPV6), toOthers(), toHost(mac)),
		}},
		{name: "between", l2: true, hook: nftables.ChainHookForward, prio: filter, rules: [][]expr.Any{
			netfilter.All(h.fromPods(), isEther(unix.ETH_P_ARP), accept()),
			netfilter.All(h.fromPods(), isDiscovery(), accept()),
			netfilter.All(h.fromPods(), isEther(unix.ETH_P_IP), toOne(), accept()),
			netfilter.All(h.fromPods(), isEther(unix.ETH_P_IPV6), toOne(), accept()),
			netfilter.All(h.fromPods(), drop()),
		}},
	}
}

// policyRules are those of a chain of package decide.
func (h Host) policyRules(c decide.Chain) [][]expr.Any {
	var out [][]expr.Any
	for _, r := range c.Rules {
		if r.Peers == "" && !r.Block.CIDR.IsValid() && r.Named == "" && !r.Names {
			out = append(out, netfilter.All(portIn(r), then(r.Then)))
			continue
		}
		for _, f := range h.families() {
			if r.Block.CIDR.IsValid() && r.Block.CIDR.Addr().Is6() != f.Six {
				continue
			}
			out = append(out, netfilter.All(netfilter.IsFamily(f), otherEnd(f, c.Dir, r), portIn(r), placeIn(f, r),
				then(r.Then)))
		}
	}
	if len(out) == 0 { // all of another family: a rule is needed to say what the chain is made from
		out = append(out, netfilter.Verdict(expr.VerdictReturn, ""))
	}
	return out
}

func then(to string) []expr.Any {
	if to == decide.Accept {
		return accept()
	}
	return netfilter.Verdict(expr.VerdictJump, to)
}

// otherEnd matches the address of a connection's other end.
func otherEnd(f netfilter.Family, dir decide.Direction, r decide.Rule) (out []expr.Any) {
	at := f.SrcAt
	if dir == decide.Out {
		at = f.DstAt
	}
	if r.Peers != "" {
		out = addrIn(f, at, r.Peers)
	}
	if r.Block.CIDR.IsValid() {
		out = append(out, netfilter.Within(f, at, r.Block.CIDR, expr.CmpOpEq)...)
		for _, e := range r.Block.Except {
			if e.Addr().Is6() == f.Six {
				out = append(out, netfilter.Within(f, at, e, expr.CmpOpNeq)...)
			}
		}
	}
	return out
}

// portIn matches protocol and numbers of ports.
func portIn(r decide.Rule) (out []expr.Any) {
	if r.Proto == 0 {
		return nil
	}
	out = netfilter.IsProto(byte(r.Proto))
	if r.Low == 0 {
		return out
	}
	low, high := binary.BigEndian.AppendUint16(nil, r.Low), binary.BigEndian.AppendUint16(nil, r.High)
	out = append(out, &expr.Payload{DestRegister: reg1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2})
	if r.Low == r.High {
		return append(out, &expr.Cmp{Op: expr.CmpOpEq, Register: reg1, Data: low})
	}
	return append(out, &expr.Cmp{Op: expr.CmpOpGte, Register: reg1, Data: low},
		&expr.Cmp{Op: expr.CmpOpLte, Register: reg1, Data: high})
}

// placeIn matches destinations, with their ports, of a set.
func placeIn(f netfilter.Family, r decide.Rule) (out []expr.Any) {
	for set, wanted := range map[string]bool{r.Named: r.Named != "", decide.SetNames: r.Names} {
		if !wanted {
			continue
		}
		at := reg8 + f.AddrLen/4
		out = append(out,
			&expr.Payload{DestRegister: reg8, Base: expr.PayloadBaseNetworkHeader, Offset: f.DstAt, Len: f.AddrLen},
			&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: at},
			&expr.Payload{DestRegister: at + 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
			&expr.Lookup{SourceRegister: reg8, SetName: set + f.Suffix})
	}
	return out
}

func addr(f netfilter.Family, at, register uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: at, Len: f.AddrLen}
}

func addrIn(f netfilter.Family, at uint32, set string) []expr.Any {
	return []expr.Any{addr(f, at, reg1), &expr.Lookup{SourceRegister: reg1, SetName: set + f.Suffix}}
}

func addrTo(f netfilter.Family, at uint32, set string) []expr.Any {
	return []expr.Any{addr(f, at, reg1), &expr.Lookup{SourceRegister: reg1, SetName: set + f.Suffix,
		DestRegister: unix.NFT_REG_VERDICT, IsDestRegSet: true}}
}

func selfIn(f netfilter.Family) []expr.Any {
	return []expr.Any{addr(f, f.SrcAt, reg8), addr(f, f.DstAt, reg8+f.AddrLen/4),
		&expr.Lookup{SourceRegister: reg8, SetName: decide.SetSelf + f.Suffix}}
}

func accept() []expr.Any { return netfilter.Verdict(expr.VerdictAccept, "") }
func drop() []expr.Any   { return netfilter.Verdict(expr.VerdictDrop, "") }

// isReply matches what the side sends that did not begin a connection. A packet without one matches nothing of it.
func isReply() []expr.Any {
	const reply = 1 // IP_CT_DIR_REPLY
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeyDIRECTION, Register: reg1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg1, Data: []byte{reply}},
	}
}

// middle matches TCP from the middle of a connection that the kernel does not know: it cannot say who began it.
func middle() []expr.Any {
	const fin, syn, rst, ack = 1, 2, 4, 16
	return netfilter.All(netfilter.IsProto(unix.IPPROTO_TCP), netfilter.InState(expr.CtStateBitNEW), []expr.Any{
		&expr.Payload{DestRegister: reg1, Base: expr.PayloadBaseTransportHeader, Offset: 13, Len: 1},
		&expr.Bitwise{SourceRegister: reg1, DestRegister: reg1, Len: 1, Mask: []byte{fin | syn | rst | ack},
			Xor: []byte{0}},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: reg1, Data: []byte{syn}},
	})
}

// isDiscovery matches what IPv6 needs on a link: discovery of neighbours and routers, and of listeners to multicast.
func isDiscovery() []expr.Any {
	const from, to = 130, 137 // ICMPv6 types; 143, the newer report of listeners, only reaches bridges and routers
	return netfilter.All(isEther(unix.ETH_P_IPV6), netfilter.IsProto(unix.IPPROTO_ICMPV6), []expr.Any{
		&expr.Payload{DestRegister: reg1, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 1},
		&expr.Cmp{Op: expr.CmpOpGte, Register: reg1, Data: []byte{from}},
		&expr.Cmp{Op: expr.CmpOpLte, Register: reg1, Data: []byte{to}},
	})
}

// fromPods matches frames that come by a pod's device of this bridge.
func (h Host) fromPods() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFGROUP, Register: reg1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg1,
			Data: binaryutil.NativeEndian.PutUint32(network.PodGroup(h.Bridge))},
	}
}

func isEther(proto uint16) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyPROTOCOL, Register: reg1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg1, Data: binary.BigEndian.AppendUint16(nil, proto)},
	}
}

// toOthers matches frames to a single device that is not the bridge.
func toOthers() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyPKTTYPE, Register: reg1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg1, Data: []byte{unix.PACKET_OTHERHOST}},
	}
}

// toOne matches frames to a single device. From pods to one another none is left, as chain route has them routed, but
// those of services, which br_netfilter translates and sends on by itself: it has the inet tables judge them.
func toOne() []expr.Any {
	const group = 1 // the bit of an Ethernet address for several
	return []expr.Any{
		&expr.Payload{DestRegister: reg1, Base: expr.PayloadBaseLLHeader, Offset: 0, Len: 1},
		&expr.Bitwise{SourceRegister: reg1, DestRegister: reg1, Len: 1, Mask: []byte{group}, Xor: []byte{0}},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg1, Data: []byte{0}},
	}
}

// toHost turns a frame into one for the bridge itself.
func toHost(mac net.HardwareAddr) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: reg1, Data: mac},
		&expr.Payload{OperationType: expr.PayloadWrite, SourceRegister: reg1, Base: expr.PayloadBaseLLHeader,
			Offset: 0, Len: 6},
		&expr.Immediate{Register: reg1, Data: []byte{unix.PACKET_HOST}},
		&expr.Meta{Key: expr.MetaKeyPKTTYPE, SourceRegister: true, Register: reg1},
	}
}
