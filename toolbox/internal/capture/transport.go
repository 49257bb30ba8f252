// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// transport words what is inside of IP.
func (p *printer) transport(e ends, d []byte) string {
	switch {
	case e.proto == 6 && len(d) >= 20:
		return p.tcp(e, d)
	case e.proto == 17 && len(d) >= 8:
		return p.udp(e, d)
	case e.proto == 1 && len(d) >= 8:
		return fmt.Sprintf("%s > %s: ICMP %s, length %d", e.from, e.to, icmpWords(d), e.length)
	case e.proto == 58 && len(d) >= 4:
		return fmt.Sprintf("%s > %s: ICMP6, %s, length %d", e.from, e.to, icmp6Words(d), e.length)
	}
	return fmt.Sprintf("%s > %s: %s, length %d", e.from, e.to, protocolName(e.proto), e.length)
}

// heads are the two ends with their ports, which every protocol with ports has first.
func (e ends) heads(d []byte) (from, to string) {
	a, b := binary.BigEndian.Uint16(d), binary.BigEndian.Uint16(d[2:])
	return fmt.Sprintf("%s.%d", e.from, a), fmt.Sprintf("%s.%d", e.to, b)
}

func (p *printer) tcp(e ends, d []byte) string {
	from, to := e.heads(d)
	head := int(d[12]>>4) * 4
	seq, ack, flags, inside := binary.BigEndian.Uint32(d[4:]), binary.BigEndian.Uint32(d[8:]), d[13],
		max(e.length-head, 0)
	if p.quiet {
		return fmt.Sprintf("%s > %s: tcp %d", from, to, inside)
	}
	word := ""
	for i, letter := range "FSRP.UEW" {
		if flags&(1<<i) != 0 {
			word += string(letter)
		}
	}
	if word == "" {
		word = "none"
	}
	seq, ack = p.relative(from, to, seq, ack, flags)
	b := fmt.Sprintf("%s > %s: Flags [%s]", from, to, word)
	if inside > 0 {
		b += fmt.Sprintf(", seq %d:%d", seq, seq+uint32(inside))
	} else if flags&7 != 0 {
		b += fmt.Sprintf(", seq %d", seq)
	}
	if flags&16 != 0 {
		b += fmt.Sprintf(", ack %d", ack)
	}
	b += fmt.Sprintf(", win %d", binary.BigEndian.Uint16(d[14:]))
	if head > 20 && head <= len(d) && (p.verbose > 0 || flags&2 != 0) {
		b += ", options [" + options(d[20:head]) + "]"
	}
	b += fmt.Sprintf(", length %d", inside)
	if head <= len(d) {
		b += httpWords(d[head:])
	}
	return b
}

// relative counts from the first numbers of a connection that were seen.
func (p *printer) relative(from, to string, seq, ack uint32, flags byte) (uint32, uint32) {
	if p.absolute {
		return seq, ack
	}
	if p.starts == nil || len(p.starts) > 1<<16 {
		p.starts = map[string]uint32{}
	}
	mine, theirs := from+">"+to, to+">"+from
	if flags&2 != 0 {
		p.starts[mine] = seq
		if flags&16 != 0 {
			p.starts[theirs] = ack - 1
			return seq, 1
		}
		return seq, ack // the start itself is shown as it is
	}
	if _, ok := p.starts[mine]; !ok {
		p.starts[mine] = seq - 1
	}
	if _, ok := p.starts[theirs]; !ok {
		p.starts[theirs] = ack - 1
	}
	return seq - p.starts[mine], ack - p.starts[theirs]
}

func options(d []byte) string {
	var out []string
	for len(d) > 0 {
		kind, n := d[0], 1
		if kind > 1 {
			if len(d) < 2 || int(d[1]) < 2 || int(d[1]) > len(d) {
				return strings.Join(append(out, "cut off"), ",")
			}
			n = int(d[1])
		}
		switch {
		case kind == 0:
			out = append(out, "eol")
		case kind == 1:
			out = append(out, "nop")
		case kind == 2 && n == 4:
			out = append(out, fmt.Sprintf("mss %d", binary.BigEndian.Uint16(d[2:])))
		case kind == 3 && n == 3:
			out = append(out, fmt.Sprintf("wscale %d", d[2]))
		case kind == 4:
			out = append(out, "sackOK")
		case kind == 8 && n == 10:
			out = append(out, fmt.Sprintf("TS val %d ecr %d", binary.BigEndian.Uint32(d[2:]),
				binary.BigEndian.Uint32(d[6:])))
		default:
			out = append(out, fmt.Sprintf("option %d", kind))
		}
		if kind == 0 {
			break
		}
		d = d[n:]
	}
	return strings.Join(out, ",")
}

// httpWords are the first line of a question or an answer.
func httpWords(d []byte) string {
	line, _, _ := strings.Cut(string(d[:min(len(d), 200)]), "\r\n")
	if first, rest, ok := strings.Cut(line, " "); ok && (strings.HasPrefix(first, "HTTP/1.") ||
		strings.Contains(rest, " HTTP/1.")) {
		return ": HTTP: " + line
	}
	return ""
}

func (p *printer) udp(e ends, d []byte) string {
	from, to := e.heads(d)
	a, b := binary.BigEndian.Uint16(d), binary.BigEndian.Uint16(d[2:])
	if (a == 53 || b == 53) && !p.quiet {
		if words := dnsWords(d[8:]); words != "" {
			return fmt.Sprintf("%s > %s: %s (%d)", from, to, words, e.length-8)
		}
	}
	return fmt.Sprintf("%s > %s: UDP, length %d", from, to, e.length-8)
}

// dnsWords says what is asked and answered.
func dnsWords(d []byte) string {
	var m dnsmessage.Message
	if m.Unpack(d) != nil {
		return ""
	}
	short := func(t dnsmessage.Type) string { return strings.TrimPrefix(t.String(), "Type") }
	if !m.Response {
		for _, q := range m.Questions {
			return fmt.Sprintf("%d%s %s? %s", m.ID, map[bool]string{true: "+"}[m.RecursionDesired], short(q.Type),
				q.Name)
		}
		return ""
	}
	words := fmt.Sprintf("%d %s%d/%d/%d", m.ID, map[dnsmessage.RCode]string{dnsmessage.RCodeNameError: "NXDomain ",
		dnsmessage.RCodeServerFailure: "ServFail ", dnsmessage.RCodeRefused: "Refused "}[m.RCode], len(m.Answers),
		len(m.Authorities), len(m.Additionals))
	var list []string
	for _, r := range m.Answers {
		value := ""
		switch body := r.Body.(type) {
		case *dnsmessage.AResource:
			value = " " + netip.AddrFrom4(body.A).String()
		case *dnsmessage.AAAAResource:
			value = " " + netip.AddrFrom16(body.AAAA).String()
		case *dnsmessage.CNAMEResource:
			value = " " + body.CNAME.String()
		}
		list = append(list, short(r.Header.Type)+value)
	}
	return strings.TrimSpace(words + " " + strings.Join(list, ", "))
}

func icmpWords(d []byte) string {
	id, seq := binary.BigEndian.Uint16(d[4:]), binary.BigEndian.Uint16(d[6:])
	switch d[0] {
	case 0:
		return fmt.Sprintf("echo reply, id %d, seq %d", id, seq)
	case 8:
		return fmt.Sprintf("echo request, id %d, seq %d", id, seq)
	case 3:
		about := ""
		if len(d) >= 36 {
			to, _ := netip.AddrFromSlice(d[24:28])
			about = to.String() + " "
			if head := 8 + int(d[8]&15)*4; (d[17] == 6 || d[17] == 17) && len(d) >= head+4 && d[1] == 3 {
				return fmt.Sprintf("%s %s port %d unreachable", to, strings.ToLower(protocolName(d[17])),
					binary.BigEndian.Uint16(d[head+2:]))
			}
		}
		if word, ok := map[byte]string{0: "net unreachable", 1: "host unreachable", 2: "protocol unreachable",
			4: "unreachable - need to frag", 13: "admin prohibited"}[d[1]]; ok {
			return about + word
		}
		return fmt.Sprintf("%sunreachable, code %d", about, d[1])
	case 11:
		return "time exceeded in-transit"
	case 5:
		return "redirect"
	}
	return fmt.Sprintf("type %d, code %d", d[0], d[1])
}

func icmp6Words(d []byte) string {
	target := func() string {
		if len(d) < 24 {
			return ""
		}
		a, _ := netip.AddrFromSlice(d[8:24])
		return " " + a.String()
	}
	switch d[0] {
	case 1:
		return fmt.Sprintf("destination unreachable, code %d", d[1])
	case 2:
		return "packet too big"
	case 3:
		return "time exceeded in-transit"
	case 128, 129:
		if len(d) < 8 {
			return "echo"
		}
		return fmt.Sprintf("echo %s, id %d, seq %d", map[byte]string{128: "request", 129: "reply"}[d[0]],
			binary.BigEndian.Uint16(d[4:]), binary.BigEndian.Uint16(d[6:]))
	case 133:
		return "router solicitation"
	case 134:
		return "router advertisement"
	case 135:
		return "neighbor solicitation, who has" + target()
	case 136:
		return "neighbor advertisement, tgt is" + target()
	}
	return fmt.Sprintf("type %d, code %d", d[0], d[1])
}
