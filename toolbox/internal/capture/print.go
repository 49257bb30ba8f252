// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// unknownKind is that of a packet of which nobody wrote down whether it came or went.
const unknownKind = 255

// printer words packets.
type printer struct {
	call                      *applet.Call
	live                      bool
	times, verbose            int
	quiet, absolute, link     bool
	hexOnly, hexText, asciiOK bool
	starts                    map[string]uint32 // of sequence numbers, by connection and direction
}

func (p *printer) flags(c *applet.Call) {
	c.Do("t", "no times; -tt seconds, -tttt with the date", func() { p.times++ })
	c.Do("v", "more: time to live, lengths, options", func() { p.verbose++ })
	for _, f := range []struct {
		names, help string
		to          *bool
	}{{"q", "less", &p.quiet}, {"S", "sequence numbers as they are, not counted from the connection's start",
		&p.absolute}, {"e", "the sender's hardware address", &p.link},
		{"x", "the bytes as numbers", &p.hexOnly}, {"X", "the bytes as numbers and text", &p.hexText},
		{"A", "the bytes as text", &p.asciiOK}} {
		c.Do(f.names, f.help, func() { *f.to = true })
	}
}

func (p *printer) packet(k packet) {
	var b strings.Builder
	switch p.times {
	case 0:
		b.WriteString(k.at.Format("15:04:05.000000 "))
	case 1:
	case 2:
		fmt.Fprintf(&b, "%d.%06d ", k.at.Unix(), k.at.Nanosecond()/1000)
	default:
		b.WriteString(k.at.Format("2006-01-02 15:04:05.000000 "))
	}
	if k.device != "" {
		fmt.Fprintf(&b, "%-5s ", k.device)
	}
	if kinds := []string{"In ", "B  ", "M  ", "P  ", "Out"}; int(k.kind) < len(kinds) {
		b.WriteString(kinds[k.kind] + " ")
	}
	if p.link && len(k.from) > 0 {
		fmt.Fprintf(&b, "%s, length %d: ", net.HardwareAddr(k.from), k.length)
	}
	b.WriteString(p.network(k.proto, k.data, k.length))
	p.call.Println(b.String())
	switch {
	case p.hexText, p.hexOnly:
		for i, line := range strings.Split(strings.TrimSuffix(hex.Dump(k.data), "\n"), "\n") {
			numbers, text, _ := strings.Cut(line[min(10, len(line)):], "  |")
			if p.hexOnly && !p.hexText {
				text = ""
			}
			p.call.Printf("\t0x%04x:  %-49s %s\n", 16*i, numbers, strings.TrimSuffix(text, "|"))
		}
	case p.asciiOK:
		p.call.Println(strings.Map(func(r rune) rune {
			if r >= ' ' && r < 0x7f || r == '\n' || r == '\t' {
				return r
			}
			return '.'
		}, string(k.data)))
	}
}

// network words a packet of a protocol of Ethernet's.
func (p *printer) network(proto uint16, d []byte, length int) string {
	switch {
	case proto == ipv4 && len(d) >= 20:
		return p.ip4(d)
	case proto == ipv6 && len(d) >= 40:
		return p.ip6(d)
	case proto == arp && len(d) >= 28:
		return arpWords(d, length)
	case proto == ipv4 || proto == ipv6 || proto == arp:
		return fmt.Sprintf("[|%#04x] cut off, length %d", proto, length)
	}
	return fmt.Sprintf("ethertype %#04x, length %d", proto, length)
}

func arpWords(d []byte, length int) string {
	sender, _ := netip.AddrFromSlice(d[14:18])
	target, _ := netip.AddrFromSlice(d[24:28])
	switch binary.BigEndian.Uint16(d[6:]) {
	case 1:
		return fmt.Sprintf("ARP, Request who-has %s tell %s, length %d", target, sender, length)
	case 2:
		return fmt.Sprintf("ARP, Reply %s is-at %s, length %d", sender, net.HardwareAddr(d[8:14]), length)
	}
	return fmt.Sprintf("ARP, operation %d, length %d", binary.BigEndian.Uint16(d[6:]), length)
}

// ends are a packet's two addresses, and what is between them and the next protocol.
type ends struct {
	from, to netip.Addr
	proto    byte
	length   int // of what is inside
}

func (p *printer) ip4(d []byte) string {
	head, total := int(d[0]&15)*4, int(binary.BigEndian.Uint16(d[2:]))
	if head < 20 || len(d) < head {
		return "IP, cut off"
	}
	if total == 0 || total < head { // left to the interface
		total = len(d)
	}
	e := ends{proto: d[9], length: total - head}
	e.from, _ = netip.AddrFromSlice(d[12:16])
	e.to, _ = netip.AddrFromSlice(d[16:20])
	word, part := "IP", binary.BigEndian.Uint16(d[6:])
	if p.verbose > 0 {
		flags := map[uint16]string{0: "none", 0x4000: "DF", 0x2000: "+"}[part&0x6000]
		word = fmt.Sprintf("IP (tos %#x, ttl %d, id %d, offset %d, flags [%s], proto %s (%d), length %d)\n   ", d[1],
			d[8], binary.BigEndian.Uint16(d[4:]), 8*(part&0x1fff), flags, protocolName(e.proto), e.proto, total)
	}
	if part&0x1fff != 0 {
		return fmt.Sprintf("%s %s > %s: %s, a later fragment", word, e.from, e.to, protocolName(e.proto))
	}
	return word + " " + p.transport(e, d[head:min(len(d), total)])
}

func (p *printer) ip6(d []byte) string {
	e := ends{proto: d[6], length: int(binary.BigEndian.Uint16(d[4:]))}
	e.from, _ = netip.AddrFromSlice(d[8:24])
	e.to, _ = netip.AddrFromSlice(d[24:40])
	word, rest := "IP6", d[40:]
	if p.verbose > 0 {
		word = fmt.Sprintf("IP6 (hlim %d, next-header %s (%d), payload length %d)", d[7], protocolName(e.proto),
			e.proto, e.length)
	}
	for (e.proto == 0 || e.proto == 43 || e.proto == 60) && len(rest) >= 8 { // headers for routers and receivers
		n := 8 + 8*int(rest[1])
		if e.proto, e.length = rest[0], e.length-n; n > len(rest) {
			break
		}
		rest = rest[n:]
	}
	return word + " " + p.transport(e, rest[:min(len(rest), max(e.length, 0))])
}

func protocolName(n byte) string {
	if name, ok := map[byte]string{1: "ICMP", 2: "IGMP", 6: "TCP", 17: "UDP", 58: "ICMPv6", 132: "SCTP", 50: "ESP",
		47: "GRE", 4: "IPIP"}[n]; ok {
		return name
	}
	return fmt.Sprintf("proto-%d", n)
}
