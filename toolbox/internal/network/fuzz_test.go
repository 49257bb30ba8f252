// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// FuzzSocketFilter reads ss's filters, and asks them about a socket.
func FuzzSocketFilter(f *testing.F) {
	for _, s := range []string{"state established ( sport = :80 or dport = :80 )", "exclude all", "not dst 10.0.0.0/8 and src [::1]:5", "state", "( (", "sport >= :99999", "dport = :http"} {
		f.Add(s)
	}
	s := socket{kind: "tcp", state: "ESTAB", from: netip.MustParseAddrPort("10.0.0.1:80"), to: netip.MustParseAddrPort("[fd00::1]:99")}
	f.Fuzz(func(_ *testing.T, text string) {
		if m, err := socketFilter(strings.Fields(text)); err == nil {
			m.has(s)
			m.has(socket{}) // of the unix kind, without addresses
		}
	})
}

// FuzzEndpoint reads addresses as the kernel writes them.
func FuzzEndpoint(f *testing.F) {
	f.Add("0100007F:1F90")
	f.Add("00000000000000000000000001000000:0035")
	f.Add("0100007F00:")
	f.Fuzz(func(t *testing.T, text string) {
		if a := endpoint(text); endpointWord(a) == "" {
			t.Errorf("%q", text)
		}
	})
}

// FuzzAnswer words what a name server answers.
func FuzzAnswer(f *testing.F) {
	name := dnsmessage.MustNewName("a.example.")
	head := func() dnsmessage.ResourceHeader {
		return dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET}
	}
	m := dnsmessage.Message{Header: dnsmessage.Header{Response: true}, Answers: []dnsmessage.Resource{
		{Header: head(), Body: &dnsmessage.AResource{A: [4]byte{10, 0, 0, 1}}},
		{Header: head(), Body: &dnsmessage.MXResource{Pref: 1, MX: name}},
		{Header: head(), Body: &dnsmessage.SRVResource{Target: name}},
		{Header: head(), Body: &dnsmessage.TXTResource{TXT: []string{"a", "\x1b"}}},
		{Header: head(), Body: &dnsmessage.SOAResource{NS: name, MBox: name}},
	}}
	data, err := m.Pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Fuzz(func(_ *testing.T, data []byte) {
		var m dnsmessage.Message
		if m.Unpack(data) != nil {
			return
		}
		for _, r := range m.Answers {
			_ = value(r.Body)
		}
		_ = rcode(m.RCode)
	})
}

// FuzzComplaint reads what the kernel says of a packet that did not arrive.
func FuzzComplaint(f *testing.F) {
	f.Add([]byte("\x30\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x0b\x00\x00\x00\x6f\x00\x00\x00\x02\x03\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x0a\x00\x00\x01"))
	f.Add([]byte{})
	f.Fuzz(func(_ *testing.T, aux []byte) {
		t := &tracer{}
		_, _ = t.read(aux)
	})
}
