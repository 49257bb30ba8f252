// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"

	"golang.org/x/net/bpf"
)

// Protocols by their number in Ethernet's header.
const (
	ipv4 = 0x0800
	arp  = 0x0806
	ipv6 = 0x86dd
)

func (p *parser) ether(proto uint32) node {
	if p.live {
		return test{[]bpf.Instruction{bpf.LoadExtension{Num: bpf.ExtProto}}, bpf.JumpEqual, proto}
	}
	return test{[]bpf.Instruction{bpf.LoadAbsolute{Off: 0, Size: 2}}, bpf.JumpEqual, proto}
}

func (p *parser) load(off uint32, size int) bpf.Instruction {
	return bpf.LoadAbsolute{Off: p.base + off, Size: size}
}

func (p *parser) byteIs(off, value uint32) node {
	return test{[]bpf.Instruction{p.load(off, 1)}, bpf.JumpEqual, value}
}

// protocol is that of a word alone.
func (p *parser) protocol(name string) node {
	four := func(n uint32) node { return both{p.ether(ipv4), p.byteIs(9, n)} }
	six := func(n uint32) node { return both{p.ether(ipv6), p.byteIs(6, n)} }
	switch name {
	case "ip":
		return p.ether(ipv4)
	case "ip6":
		return p.ether(ipv6)
	case "arp":
		return p.ether(arp)
	case "icmp":
		return four(1)
	case "icmp6":
		return six(58)
	}
	n := map[string]uint32{"tcp": 6, "udp": 17, "sctp": 132}[name]
	return either{four(n), six(n)}
}

// address is a test of the sender's or the receiver's address, in ARP too.
func (p *parser) address(q qualifiers, net netip.Prefix) node {
	at := func(proto, src, dst uint32) node {
		from, to := p.within(src, net), p.within(dst, net)
		return both{p.ether(proto), sides(q.dir, from, to)}
	}
	if net.Addr().Is6() {
		return at(ipv6, 8, 24)
	}
	switch q.proto {
	case "ip":
		return at(ipv4, 12, 16)
	case "arp":
		return at(arp, 14, 24)
	}
	return either{at(ipv4, 12, 16), at(arp, 14, 24)}
}

func sides(dir string, src, dst node) node {
	switch dir {
	case "src":
		return src
	case "dst":
		return dst
	case "both":
		return both{src, dst}
	}
	return either{src, dst}
}

// within compares an address with a network, four bytes at a time.
func (p *parser) within(off uint32, net netip.Prefix) node {
	raw, bits := net.Addr().AsSlice(), net.Bits()
	// of no bits: always
	var out node = test{cond: bpf.JumpGreaterOrEqual, loads: []bpf.Instruction{bpf.LoadConstant{Dst: bpf.RegA}}}
	for i := 0; i < len(raw) && bits > 0; i += 4 {
		loads := []bpf.Instruction{p.load(off+uint32(i), 4)}
		if bits < 32 {
			loads = append(loads, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: ^uint32(0) << (32 - bits)})
		}
		part := test{loads, bpf.JumpEqual, binary.BigEndian.Uint32(raw[i:])}
		if i == 0 {
			out = part
		} else {
			out = both{out, part}
		}
		bits -= 32
	}
	return out
}

// portsOf tests ports: behind IPv4's header of any length, but not in later fragments; or IPv6's without extensions.
func (p *parser) portsOf(dir string, protos []uint32, from, to uint32, six bool) node {
	kind, off := p.ether(ipv4), uint32(9)
	if six {
		kind, off = p.ether(ipv6), 6
	}
	proto := p.byteIs(off, protos[0])
	for _, n := range protos[1:] {
		proto = either{proto, p.byteIs(off, n)}
	}
	side := func(at uint32) node {
		loads := []bpf.Instruction{p.load(40+at, 2)}
		if !six {
			loads = []bpf.Instruction{bpf.LoadMemShift{Off: p.base}, bpf.LoadIndirect{Off: p.base + at, Size: 2}}
		}
		if from == to {
			return test{loads, bpf.JumpEqual, from}
		}
		return both{test{loads, bpf.JumpGreaterOrEqual, from}, test{loads, bpf.JumpLessOrEqual, to}}
	}
	match := both{proto, sides(dir, side(0), side(2))}
	if !six {
		match = both{p.unfragmented(), match}
	}
	return both{kind, match}
}

func (p *parser) unfragmented() node {
	return test{[]bpf.Instruction{p.load(6, 2)}, bpf.JumpBitsNotSet, 0x1fff}
}

// bytes is PROTO[OFFSET:SIZE] & MASK = NUMBER.
func (p *parser) bytes(proto string) (node, error) {
	p.take("[")
	off, err := p.constant()
	size := 1
	if word := p.peek(); err == nil && len(word) == 2 && word[0] == ':' {
		size, err = strconv.Atoi(word[1:])
		p.words = p.words[1:]
	}
	if err != nil {
		return nil, err
	}
	if p.take("]") == "" || size != 1 && size != 2 && size != 4 {
		return nil, fmt.Errorf("expected %s[OFFSET] or %s[OFFSET:SIZE], with a size of 1, 2 or 4", proto, proto)
	}
	loads, guard := []bpf.Instruction{p.load(off, size)}, p.protocol(proto)
	switch proto {
	case "tcp", "udp", "sctp", "icmp": // behind IPv4's header; pcap knows these for IPv4 only
		loads = []bpf.Instruction{bpf.LoadMemShift{Off: p.base}, bpf.LoadIndirect{Off: p.base + off, Size: size}}
		guard = both{both{p.ether(ipv4), guard}, p.unfragmented()}
	case "icmp6":
		loads = []bpf.Instruction{p.load(40+off, size)}
	}
	if p.take("&") != "" {
		mask, err := p.constant()
		if err != nil {
			return nil, err
		}
		loads = append(loads, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: mask})
	}
	op := p.take("<=", ">=", "<", ">", "=", "==", "!=")
	if op == "" {
		return nil, fmt.Errorf("%s[...] needs a comparison", proto)
	}
	n, err := p.constant()
	return both{guard, test{loads, relation(op), n}}, err
}

func relation(op string) bpf.JumpTest {
	return map[string]bpf.JumpTest{"<=": bpf.JumpLessOrEqual, ">=": bpf.JumpGreaterOrEqual, "<": bpf.JumpLessThan,
		">": bpf.JumpGreaterThan, "=": bpf.JumpEqual, "==": bpf.JumpEqual, "!=": bpf.JumpNotEqual}[op]
}

// constant reads a number, a name that pcap knows, or several of them with | in brackets.
func (p *parser) constant() (uint32, error) {
	if p.take("(") != "" {
		all, err := p.constant()
		for err == nil && p.take("|") != "" {
			var n uint32
			n, err = p.constant()
			all |= n
		}
		if err == nil && p.take(")") == "" {
			err = fmt.Errorf("a ) is missing")
		}
		return all, err
	}
	word := p.peek()
	if word == "" {
		return 0, fmt.Errorf("a number is missing at the end")
	}
	p.words = p.words[1:]
	if off, size, ok := cutSize(word); ok { // 4:2
		p.words = append([]string{size}, p.words...)
		word = off
	}
	if n, ok := map[string]uint32{"tcpflags": 13, "tcp-fin": 1, "tcp-syn": 2, "tcp-rst": 4, "tcp-push": 8,
		"tcp-ack": 16, "tcp-urg": 32, "icmptype": 0, "icmpcode": 1, "icmp-echoreply": 0, "icmp-unreach": 3,
		"icmp-redirect": 5, "icmp-echo": 8, "icmp-timxceed": 11, "tcp": 6, "udp": 17, "icmp": 1, "icmp6": 58,
		"sctp": 132}[word]; ok {
		return n, nil
	}
	n, err := strconv.ParseUint(word, 0, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", word)
	}
	return uint32(n), nil
}

func cutSize(word string) (off, size string, ok bool) {
	for i := range word {
		if word[i] == ':' && i > 0 {
			return word[:i], word[i:], true
		}
	}
	return word, "", false
}

// program is what is assembled: jumps go to labels until all is there.
type program struct {
	code   []bpf.Instruction
	jumps  map[int]int // where there is a jump: its label
	labels []int       // where a label is
}

// assemble makes the program: each test is followed by two jumps, so that no distance is too far.
func assemble(n node) ([]bpf.Instruction, error) {
	p := &program{jumps: map[int]int{}}
	yes, no := p.label(), p.label()
	p.emit(n, yes, no)
	p.place(yes)
	p.code = append(p.code, bpf.RetConstant{Val: 262144})
	p.place(no)
	p.code = append(p.code, bpf.RetConstant{Val: 0})
	for at, label := range p.jumps {
		p.code[at] = bpf.Jump{Skip: uint32(p.labels[label] - at - 1)}
	}
	if len(p.code) > 4096 {
		return nil, fmt.Errorf("the filter is too long: %d instructions, and the kernel takes 4096", len(p.code))
	}
	return p.code, nil
}

func (p *program) label() int {
	p.labels = append(p.labels, 0)
	return len(p.labels) - 1
}

func (p *program) place(label int) { p.labels[label] = len(p.code) }

func (p *program) jump(label int) {
	p.jumps[len(p.code)] = label
	p.code = append(p.code, nil)
}

func (p *program) emit(n node, yes, no int) {
	switch n := n.(type) {
	case both:
		next := p.label()
		p.emit(n.a, next, no)
		p.place(next)
		p.emit(n.b, yes, no)
	case either:
		next := p.label()
		p.emit(n.a, yes, next)
		p.place(next)
		p.emit(n.b, yes, no)
	case inverse:
		p.emit(n.a, no, yes)
	case test:
		p.code = append(p.code, n.loads...)
		p.code = append(p.code, bpf.JumpIf{Cond: n.cond, Val: n.value, SkipFalse: 1})
		p.jump(yes)
		p.jump(no)
	}
}
