// SPDX-License-Identifier: Apache-2.0

package netfilter

import (
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Register numbers as the kernel has them: 1 to 4 are 16 bytes each, 8 to 23 are the same space in steps of 4 bytes.
const (
	Reg1 = unix.NFT_REG_1
	Reg8 = unix.NFT_REG32_00
)

// Family is what differs between IPv4 and IPv6.
type Family struct {
	Six     bool
	Suffix  string // of names in the kernel
	Proto   byte   // NFPROTO_*
	AddrLen uint32 // bytes
	SrcAt   uint32 // offset of the source address in the network header
	DstAt   uint32
	Addr    nftables.SetDatatype
}

// FamilyOf is IPv4 or IPv6.
func FamilyOf(six bool) Family {
	if six {
		return Family{true, "6", unix.NFPROTO_IPV6, 16, 8, 24, nftables.TypeIP6Addr}
	}
	return Family{false, "4", unix.NFPROTO_IPV4, 4, 12, 16, nftables.TypeIPAddr}
}

// Families are both.
func Families() []Family { return []Family{FamilyOf(false), FamilyOf(true)} }

// All puts the parts of a rule together.
func All(parts ...[]expr.Any) (out []expr.Any) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// IsFamily matches packets of IPv4 or IPv6.
func IsFamily(f Family) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: Reg1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: Reg1, Data: []byte{f.Proto}},
	}
}

// IsProto matches a protocol by its number.
func IsProto(p byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: Reg1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: Reg1, Data: []byte{p}},
	}
}

// From matches the device that a packet came by; that of one of the machine itself is without a name.
func From(device string, op expr.CmpOp) []expr.Any {
	data := make([]byte, unix.IFNAMSIZ)
	copy(data, device)
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: Reg1},
		&expr.Cmp{Op: op, Register: Reg1, Data: data},
	}
}

// To matches the device that a packet leaves by.
func To(device string) []expr.Any {
	data := make([]byte, unix.IFNAMSIZ)
	copy(data, device)
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: Reg1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: Reg1, Data: data},
	}
}

// InState matches packets whose connection is in a state: one of expr.CtStateBit.
func InState(bit uint32) []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: Reg1},
		&expr.Bitwise{SourceRegister: Reg1, DestRegister: Reg1, Len: 4,
			Mask: binaryutil.NativeEndian.PutUint32(bit), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: Reg1, Data: make([]byte, 4)},
	}
}

// Within compares the address at an offset with a network.
func Within(f Family, offset uint32, p netip.Prefix, op expr.CmpOp) []expr.Any {
	mask := make([]byte, f.AddrLen)
	for i := range p.Bits() {
		mask[i/8] |= 1 << (7 - i%8)
	}
	return []expr.Any{
		&expr.Payload{DestRegister: Reg1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: f.AddrLen},
		&expr.Bitwise{SourceRegister: Reg1, DestRegister: Reg1, Len: f.AddrLen, Mask: mask,
			Xor: make([]byte, f.AddrLen)},
		&expr.Cmp{Op: op, Register: Reg1, Data: p.Masked().Addr().AsSlice()},
	}
}

// Local matches packets to an address of this machine.
func Local() []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: Reg1, FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: Reg1, Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)},
	}
}

// Translated matches packets of connections whose destination was translated.
func Translated() []expr.Any {
	const ipsDstNAT = 1 << 5 // IPS_DST_NAT of nf_conntrack_common.h
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATUS, Register: Reg1},
		&expr.Bitwise{SourceRegister: Reg1, DestRegister: Reg1, Len: 4,
			Mask: binaryutil.NativeEndian.PutUint32(ipsDstNAT), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: Reg1, Data: make([]byte, 4)},
	}
}

// Verdict is what becomes of the packet.
func Verdict(kind expr.VerdictKind, chain string) []expr.Any {
	return []expr.Any{&expr.Verdict{Kind: kind, Chain: chain}}
}
