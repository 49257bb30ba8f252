// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/bpf"
)

// node is a part of a filter expression, one of and, or, not and the tests.
type node any

type (
	both    struct{ a, b node }
	either  struct{ a, b node }
	inverse struct{ a node }
	// test loads a value and compares it. loads is run first.
	test struct {
		loads []bpf.Instruction
		cond  bpf.JumpTest
		value uint32
	}
)

// qualifiers say what an address or a number is. They hold until others are given: port 80 or 443.
type qualifiers struct{ proto, dir, kind string }

// parser reads an expression word by word. base is where the network header begins; before it, in files, is the
// protocol.
type parser struct {
	words []string
	last  qualifiers
	base  uint32
	live  bool
}

// compile makes a program of a filter expression. Live, the kernel tells the protocol; otherwise it is in the two bytes
// before the packet.
func compile(source string, live bool) ([]bpf.Instruction, error) {
	p := &parser{words: split(source), live: live}
	if !live {
		p.base = 2
	}
	if len(p.words) == 0 {
		return []bpf.Instruction{bpf.RetConstant{Val: 262144}}, nil
	}
	n, err := p.expression()
	if err == nil && len(p.words) > 0 {
		err = fmt.Errorf("the expression ends before %q", p.words[0])
	}
	if err != nil {
		return nil, fmt.Errorf("filter %q: %w", source, err)
	}
	return assemble(n)
}

// split takes operators and brackets apart.
func split(source string) []string {
	for _, op := range []string{"(", ")", "[", "]", "&&", "||", "<=", ">=", "==", "!="} {
		source = strings.ReplaceAll(source, op, " "+op+" ")
	}
	var words []string
	for _, w := range strings.Fields(source) {
		start := 0
		for i := 0; i < len(w); i++ {
			switch single := strings.ContainsRune("!=<>&|", rune(w[i])); {
			case single && len(w) == 2 && strings.Contains("&& || <= >= == !=", w):
				i++
			case single:
				if start < i {
					words = append(words, w[start:i])
				}
				words, start = append(words, w[i:i+1]), i+1
			}
		}
		if start < len(w) {
			words = append(words, w[start:])
		}
	}
	return words
}

func (p *parser) peek() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.words[0]
}

func (p *parser) take(options ...string) string {
	for _, o := range options {
		if len(p.words) > 0 && p.words[0] == o {
			p.words = p.words[1:]
			return o
		}
	}
	return ""
}

// expression: and and or have one precedence, from left to right, as pcap has it.
func (p *parser) expression() (node, error) {
	a, err := p.term()
	for err == nil {
		op := p.take("and", "&&", "or", "||")
		if op == "" {
			return a, nil
		}
		var b node
		if b, err = p.term(); op == "and" || op == "&&" {
			a = both{a, b}
		} else {
			a = either{a, b}
		}
	}
	return nil, err
}

func (p *parser) term() (node, error) {
	switch {
	case len(p.words) == 0:
		return nil, fmt.Errorf("it ends too early")
	case p.take("not", "!") != "":
		a, err := p.term()
		return inverse{a}, err
	case p.take("(") != "":
		a, err := p.expression()
		if err == nil && p.take(")") == "" {
			err = fmt.Errorf("a ) is missing")
		}
		return a, err
	}
	return p.primitive()
}

// primitive reads one test: [PROTO] [src|dst] [host|net|port|portrange] VALUE, a protocol alone, or PROTO[OFFSET] =
// NUMBER.
func (p *parser) primitive() (node, error) {
	switch p.peek() {
	case "less", "greater", "len":
		return p.length()
	case "inbound", "outbound":
		return p.direction()
	}
	q := qualifiers{proto: p.take("ip", "ip6", "arp", "tcp", "udp", "sctp", "icmp", "icmp6")}
	if p.peek() == "[" && q.proto != "" {
		return p.bytes(q.proto)
	}
	if p.take("proto") != "" {
		return p.number(q.proto)
	}
	if q.dir = p.take("src", "dst"); q.dir != "" {
		if op := p.take("or", "and", "||", "&&"); op != "" {
			if p.take("src", "dst") == "" {
				return nil, fmt.Errorf("src %s what", op)
			}
			q.dir = map[bool]string{true: "", false: "both"}[op == "or" || op == "||"]
		}
	}
	q.kind = p.take("host", "net", "port", "portrange")
	word := p.peek()
	if q.kind == "" && q.dir == "" && q.proto != "" && !value(word) {
		return p.protocol(q.proto), nil
	}
	if q.kind == "" && q.dir == "" && q.proto == "" && value(word) {
		q = p.last // as in: port 80 or 443
	}
	if word == "" || !value(word) {
		return nil,
			fmt.Errorf("%q is not known: host, net, port, portrange, src, dst, ip, ip6, arp, tcp, udp, icmp, icmp6, less, greater, PROTO[OFFSET] are", word)
	}
	p.words, p.last = p.words[1:], q
	switch q.kind {
	case "port", "portrange":
		return p.ports(q, word)
	case "net":
		return p.network(q, word)
	}
	return p.host(q, word)
}

// value tells whether a word may be an address, a name or a number.
func value(word string) bool {
	return word != "" && !strings.ContainsAny(word, "()[]!=<>&|") && word != "and" && word != "or" && word != "not"
}

func (p *parser) length() (node, error) {
	word, op := p.take("less", "greater", "len"), "<="
	if word == "greater" {
		op = ">="
	}
	if word == "len" {
		if op = p.take("<=", ">=", "<", ">", "=", "==", "!="); op == "" {
			return nil, fmt.Errorf("len needs a comparison")
		}
	}
	n, err := p.constant()
	return test{[]bpf.Instruction{bpf.LoadExtension{Num: bpf.ExtLen}}, relation(op), n + p.base}, err
}

func (p *parser) direction() (node, error) {
	if !p.live {
		return nil, fmt.Errorf("%s is known only while capturing", p.peek())
	}
	out := test{[]bpf.Instruction{bpf.LoadExtension{Num: bpf.ExtType}}, bpf.JumpEqual, 4} // PACKET_OUTGOING
	if p.take("inbound", "outbound") == "inbound" {
		return inverse{out}, nil
	}
	return out, nil
}

// number is ip proto 6.
func (p *parser) number(proto string) (node, error) {
	n, err := p.constant()
	four, six := both{p.ether(ipv4), p.byteIs(9, n)}, both{p.ether(ipv6), p.byteIs(6, n)}
	switch proto {
	case "ip":
		return four, err
	case "ip6":
		return six, err
	}
	return either{four, six}, err
}

// addresses reads an address or looks a name up.
func addresses(word string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(word); err == nil {
		return []netip.Addr{a}, nil
	}
	found, err := net.LookupIP(word)
	var out []netip.Addr
	for _, ip := range found {
		if a, ok := netip.AddrFromSlice(ip); ok {
			out = append(out, a.Unmap())
		}
	}
	return out, err
}

func (p *parser) host(q qualifiers, word string) (node, error) {
	if q.proto != "" && q.proto != "ip" && q.proto != "ip6" && q.proto != "arp" {
		return nil, fmt.Errorf("%s has ports, not hosts: write %s and host %s", q.proto, q.proto, word)
	}
	list, err := addresses(word)
	if err != nil {
		return nil, err
	}
	var out node
	for _, a := range list {
		n := p.address(q, netip.PrefixFrom(a, a.BitLen()))
		if out == nil {
			out = n
		} else {
			out = either{out, n}
		}
	}
	return out, nil
}

func (p *parser) network(q qualifiers, word string) (node, error) {
	full := word
	if !strings.Contains(word, ":") { // net 10.1 is 10.1.0.0/16
		addr, bits, given := strings.Cut(word, "/")
		if n := strings.Count(addr, ".") + 1; n < 4 {
			addr += strings.Repeat(".0", 4-n)
			if !given {
				bits = strconv.Itoa(8 * n)
			}
		} else if !given {
			bits = "32"
		}
		full = addr + "/" + bits
	}
	net, err := netip.ParsePrefix(full)
	if err != nil {
		return nil, fmt.Errorf("%q is not a network, for example 10.0.0.0/8", word)
	}
	return p.address(q, net.Masked()), nil
}

func (p *parser) ports(q qualifiers, word string) (node, error) {
	low, high, ranged := strings.Cut(word, "-")
	if !ranged {
		high = low
	}
	from, err1 := port(low)
	to, err2 := port(high)
	if err1 != nil || err2 != nil || ranged != (q.kind == "portrange") {
		return nil, fmt.Errorf("%s %q is not known: expected a number, or with portrange two, for example 80-90",
			q.kind, word)
	}
	protos := map[string][]uint32{"tcp": {6}, "udp": {17}, "sctp": {132}, "": {6, 17, 132}, "ip": {6, 17, 132},
		"ip6": {6, 17, 132}}[q.proto]
	if protos == nil {
		return nil, fmt.Errorf("%s has no ports", q.proto)
	}
	four, six := p.portsOf(q.dir, protos, from, to, false), p.portsOf(q.dir, protos, from, to, true)
	switch q.proto {
	case "ip":
		return four, nil
	case "ip6":
		return six, nil
	}
	return either{four, six}, nil
}

// port reads a number, or one of the names that everybody uses.
func port(word string) (uint32, error) {
	if n, ok := map[string]uint32{"http": 80, "https": 443, "domain": 53, "ssh": 22, "smtp": 25, "ntp": 123}[word]; ok {
		return n, nil
	}
	n, err := strconv.ParseUint(word, 10, 16)
	return uint32(n), err
}
