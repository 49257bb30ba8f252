// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/bpf"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// ip makes an IP packet around what is given.
func ip(from, to string, proto byte, inside []byte) packet {
	a, b := netip.MustParseAddr(from), netip.MustParseAddr(to)
	p := packet{proto: ipv6, kind: unknownKind, at: time.Unix(0, 0).UTC()}
	var d []byte
	if a.Is4() {
		p.proto = ipv4
		d = make([]byte, 12, 20)
		d[0], d[8], d[9] = 0x45, 64, proto
		binary.BigEndian.PutUint16(d[2:], uint16(20+len(inside)))
	} else {
		d = make([]byte, 8, 40)
		d[0], d[6], d[7] = 0x60, proto, 64
		binary.BigEndian.PutUint16(d[4:], uint16(len(inside)))
	}
	p.data = slices.Concat(d, a.AsSlice(), b.AsSlice(), inside)
	p.length = len(p.data)
	return p
}

func tcp(from, to uint16, seq, ack uint32, flags byte, text string) []byte {
	d := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, from), to)
	d = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(d, seq), ack)
	return append(append(d, 0x50, flags, 1, 0, 0, 0, 0, 0), text...)
}

func udp(from, to uint16, text string) []byte {
	d := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, from), to)
	return append(binary.BigEndian.AppendUint32(d, uint32(8+len(text))<<16), text...)
}

// samples are packets by a letter.
func samples() map[rune]packet {
	who := append([]byte{0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 9}, make([]byte, 18)...)
	later := ip("10.0.0.1", "10.0.0.2", 17, udp(80, 80, "x"))
	later.data[7] = 8
	return map[rune]packet{
		's': ip("10.0.0.1", "10.0.0.2", 6, tcp(40000, 80, 1000, 0, 2, "")),
		'h': ip("10.0.0.1", "10.0.0.2", 6, tcp(40000, 80, 1001, 501, 24, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")),
		'r': ip("10.0.0.2", "10.0.0.1", 6, tcp(80, 40000, 500, 1001, 18, "")),
		'd': ip("10.0.0.1", "192.168.5.6", 17, udp(5353, 53, "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x04test\x00\x00\x01\x00\x01")),
		'u': ip("10.1.0.1", "10.0.0.2", 17, udp(1000, 2000, "hello")),
		'i': ip("10.0.0.1", "10.0.0.2", 1, []byte{8, 0, 0, 0, 0, 7, 0, 1}),
		'6': ip("fd00::1", "fd00::2", 6, tcp(40000, 443, 1, 0, 4, "")),
		'n': ip("fe80::1", "ff02::1", 58, append([]byte{135, 0, 0, 0, 0, 0, 0, 0}, netip.MustParseAddr("fe80::9").AsSlice()...)),
		'a': {proto: arp, data: who, length: len(who), kind: unknownKind, at: time.Unix(0, 0).UTC()},
		'f': later,
	}
}

// Filter expressions let those packets pass that they name.
func TestFilter(t *testing.T) {
	for expression, want := range map[string]string{
		"":                                     "6adfhinrsu",
		"tcp":                                  "6hrs",
		"udp":                                  "dfu",
		"icmp":                                 "i",
		"icmp6":                                "n",
		"arp":                                  "a",
		"ip":                                   "dfhirsu",
		"ip6":                                  "6n",
		"not ip":                               "6an",
		"! ip and ! arp":                       "6n",
		"host 10.0.0.1":                        "adfhirs",
		"src 10.0.0.1":                         "adfhis",
		"dst host 10.0.0.1":                    "r",
		"ip host 10.0.0.1":                     "dfhirs",
		"arp host 10.0.0.9":                    "a",
		"10.0.0.9":                             "a",
		"src and dst net 10.0.0.0/24":          "afhirs",
		"net 10.1":                             "u",
		"net 10.0.0.0/16":                      "adfhirsu",
		"dst net 192.168.0.0/16":               "d",
		"net 0.0.0.0/0 and not arp":            "dfhirsu",
		"host fd00::1":                         "6",
		"net fe80::/10":                        "n",
		"port 80":                              "hrs",
		"src port 80":                          "r",
		"tcp dst port 80 or 443":               "6hs",
		"udp port domain":                      "d",
		"port 80 or 53":                        "dhrs",
		"portrange 1000-2000":                  "u",
		"tcp and not port 80":                  "6",
		"host 10.0.0.2 and (udp or icmp)":      "fiu",
		"tcp[tcpflags] & (tcp-syn|tcp-fin)!=0": "rs",
		"tcp[13] = 2":                          "s",
		"tcp[0:2]>=40000":                      "hs",
		"icmp[icmptype] == icmp-echo":          "i",
		"ip[8] < 65 and ip proto 17":           "dfu",
		"ip6 proto 58":                         "n",
		"proto 6":                              "6hrs",
		"ip6[6] == 6":                          "6",
		"less 36":                              "fiu",
		"greater 64":                           "hn",
		"icmp or icmp6 or arp":                 "ain",
	} {
		filter, err := compile(expression, false)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		vm, err := bpf.NewVM(filter)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		var got []rune
		for letter, p := range samples() {
			if n, err := vm.Run(append(binary.BigEndian.AppendUint16(nil, p.proto), p.data...)); err == nil && n > 0 {
				got = append(got, letter)
			}
		}
		if slices.Sort(got); string(got) != want {
			t.Errorf("%s: %s, want %s", expression, string(got), want)
		}
		live, err := compile(expression, true)
		if err == nil {
			_, err = bpf.Assemble(live)
		}
		if err != nil {
			t.Errorf("%s, live: %v", expression, err)
		}
	}
}

// What is not a filter is refused with a reason.
func TestFilterRefused(t *testing.T) {
	for expression, why := range map[string]string{
		"port": `"" is not known`, "port x": "expected a number", "foo": "foo", "tcp and": "ends too early", "(tcp": ") is missing", "tcp )": `ends before ")"`,
		"host 10.0.0.1.2.3": "10.0.0.1.2.3", "net 10.0.0.0/40": "is not a network", "icmp port 80": "has no ports", "tcp host 1.2.3.4": "has ports, not hosts", "tcp[13] &": "number",
		"tcp[13]": "needs a comparison", "tcp[13:3] = 1": "with a size of", "inbound": "only while capturing", "len 5": "comparison", "ether host 1": "ether",
	} {
		if _, err := compile(expression, false); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %s", expression, err, why)
		}
	}
}

// run prints packets as tcpdump would, with the settings made by set.
func run(t *testing.T, letters string, set func(*printer)) string {
	t.Helper()
	var out bytes.Buffer
	p := &printer{call: &applet.Call{Out: bufio.NewWriter(&out)}, times: 1}
	set(p)
	all := samples()
	for _, l := range letters {
		p.packet(all[l])
	}
	if err := p.call.Out.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Packets in words, as tcpdump has them.
func TestWords(t *testing.T) {
	plain := func(*printer) {}
	for letters, want := range map[string]string{
		"srh": "IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 1000, win 256, length 0\n" +
			"IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [S.], seq 500, ack 1, win 256, length 0\n" +
			"IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 1:28, ack 1, win 256, length 27: HTTP: GET / HTTP/1.1\n",
		"d": "IP 10.0.0.1.5353 > 192.168.5.6.53: 4660+ A? www.test. (26)\n",
		"u": "IP 10.1.0.1.1000 > 10.0.0.2.2000: UDP, length 5\n",
		"i": "IP 10.0.0.1 > 10.0.0.2: ICMP echo request, id 7, seq 1, length 8\n",
		"6": "IP6 fd00::1.40000 > fd00::2.443: Flags [R], seq 1, win 256, length 0\n",
		"n": "IP6 fe80::1 > ff02::1: ICMP6, neighbor solicitation, who has fe80::9, length 24\n",
		"a": "ARP, Request who-has 10.0.0.9 tell 10.0.0.1, length 46\n",
		"f": "IP 10.0.0.1 > 10.0.0.2: UDP, a later fragment\n",
	} {
		if got := run(t, letters, plain); got != want {
			t.Errorf("%s:\n%swant\n%s", letters, got, want)
		}
	}
	if got := run(t, "u", func(p *printer) { p.hexText, p.times = true, 2 }); !strings.HasPrefix(got, "0.000000 IP") || !strings.Contains(got, "\t0x0010:") || !strings.Contains(got, "hell\n") {
		t.Errorf("-tt -X:\n%s", got)
	}
	if got := run(t, "u", func(p *printer) { p.verbose = 1 }); !strings.Contains(got, "ttl 64") || !strings.Contains(got, "proto UDP (17), length 33") {
		t.Errorf("-v:\n%s", got)
	}
}

// Bytes that are no whole packet are worded too, and never more than that.
func TestDamaged(t *testing.T) {
	p := &printer{call: &applet.Call{Out: bufio.NewWriter(&bytes.Buffer{})}, verbose: 1}
	for _, sample := range samples() {
		for n := range sample.data {
			k := sample
			k.data = k.data[:n]
			p.packet(k)
			for _, b := range []byte{0, 0xff, 0x4f} {
				k.data = slices.Clone(sample.data)
				k.data[n] = b
				p.packet(k)
			}
		}
	}
}

// A file holds what was written to it.
func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f.pcap")
	w, err := create(&applet.Call{}, name, 65536)
	if err != nil {
		t.Fatal(err)
	}
	all := samples()
	for _, l := range "sua6" {
		if err := w.packet(all[l]); err != nil {
			t.Fatal(err)
		}
	}
	w.close()
	var out bytes.Buffer
	call := &applet.Call{Out: bufio.NewWriter(&out)}
	filter, err := compile("not arp", false)
	if err != nil {
		t.Fatal(err)
	}
	d := &dump{Call: call, print: &printer{call: call, times: 1}, count: 2}
	if err := d.read(name, filter); err != nil {
		t.Fatal(err)
	}
	if want := "IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 1000, win 256, length 0\nIP 10.1.0.1.1000 > 10.0.0.2.2000: UDP, length 5\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	if err := os.WriteFile(name, []byte(strings.Repeat("no packets", 5)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.read(name, filter); err == nil || !strings.Contains(err.Error(), "is not a file of packets") {
		t.Errorf("another file: %v", err)
	}
}
