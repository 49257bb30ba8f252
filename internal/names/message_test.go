// SPDX-License-Identifier: Apache-2.0

package names

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// asks makes the message that asks for a name.
func asks(t testing.TB, name string, kind dnsmessage.Type, change func(*dnsmessage.Message)) []byte {
	t.Helper()
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}}}
	if change != nil {
		change(&m)
	}
	out, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func edns(size int, version uint32) func(*dnsmessage.Message) {
	return func(m *dnsmessage.Message) {
		h := dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName("."), Type: dnsmessage.TypeOPT, Class: dnsmessage.Class(size), TTL: version << 16}
		m.Additionals = append(m.Additionals, dnsmessage.Resource{Header: h, Body: &dnsmessage.OPTResource{}})
	}
}

// reply answers a message from the example's world.
func reply(t testing.TB, packet []byte) dnsmessage.Message {
	t.Helper()
	q, err := Parse(packet)
	if err != nil {
		t.Fatal(err)
	}
	out, err := example().Answer(Question{Name: q.Name(), Type: q.Question.Type}).Pack(q, q.Size)
	if err != nil {
		t.Fatal(err)
	}
	var m dnsmessage.Message
	if err := m.Unpack(out); err != nil {
		t.Fatal(err)
	}
	return m
}

// WL-13 (P): a reply has the question as it was asked, its number, and the zone that says no.
func TestReply(t *testing.T) {
	m := reply(t, asks(t, "WeB.shop.svc.CLUSTER.local.", dnsmessage.TypeA, nil))
	if m.ID != 7 || !m.Response || !m.Authoritative || !m.RecursionDesired || !m.RecursionAvailable || len(m.Answers) != 1 || len(m.Additionals) != 0 {
		t.Errorf("%+v", m)
	}
	if got := m.Answers[0].Header.Name.String(); got != "WeB.shop.svc.CLUSTER.local." {
		t.Errorf("the name came back as %s", got)
	}
	m = reply(t, asks(t, "nope.shop.svc.cluster.local.", dnsmessage.TypeA, nil))
	if m.RCode != dnsmessage.RCodeNameError || len(m.Authorities) != 1 {
		t.Fatalf("%+v", m)
	}
	soa, ok := m.Authorities[0].Body.(*dnsmessage.SOAResource)
	if !ok || soa.MinTTL != TTL || m.Authorities[0].Header.Name.String() != "cluster.local." {
		t.Errorf("%+v", m.Authorities[0])
	}
	for _, kind := range []dnsmessage.Type{dnsmessage.TypeNS, dnsmessage.TypeSOA} {
		if m := reply(t, asks(t, "cluster.local.", kind, nil)); len(m.Answers) != 1 {
			t.Errorf("%s: %+v", kind, m)
		}
	}
	if m := reply(t, asks(t, "_sql._tcp.db.shop.svc.cluster.local.", dnsmessage.TypeSRV, nil)); len(m.Answers) != 2 || len(m.Additionals) != 3 {
		t.Errorf("%+v", m)
	}
}

// WL-13 (P): EDNS is answered with EDNS, another version of it by saying so.
func TestEDNS(t *testing.T) {
	m := reply(t, asks(t, "web.shop.svc.cluster.local.", dnsmessage.TypeA, edns(4096, 0)))
	if len(m.Additionals) != 1 || m.Additionals[0].Header.Type != dnsmessage.TypeOPT || m.Additionals[0].Header.Class != LargestDatagram {
		t.Errorf("%+v", m.Additionals)
	}
	m = reply(t, asks(t, "web.shop.svc.cluster.local.", dnsmessage.TypeA, edns(4096, 1)))
	if len(m.Answers) != 0 || len(m.Additionals) != 1 || m.Additionals[0].Header.ExtendedRCode(m.RCode) != badVersion {
		t.Errorf("%+v", m)
	}
	q, err := Parse(asks(t, "a.", dnsmessage.TypeA, edns(100, 0)))
	if err != nil || q.Size != classicSize {
		t.Errorf("%d, %v", q.Size, err)
	}
}

// WL-13 (P): what does not fit into a datagram is cut, and says so; over TCP all of it fits.
func TestTruncation(t *testing.T) {
	w := New(Zone{Domain: "cluster.local"})
	w.Apply(Change{Service: &Service{Namespace: "a", Name: "big"}})
	s := &Slice{Namespace: "a", Name: "s", Service: "big", Ports: []Port{{"p", "tcp", 1}}}
	for i := range 300 {
		s.Endpoints = append(s.Endpoints, Endpoint{Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 1, byte(i / 250), byte(i % 250)})}})
	}
	w.Apply(Change{Slice: s})
	for _, c := range []struct {
		name  string
		kind  dnsmessage.Type
		limit int
		least int
		cut   bool
	}{
		{"big.a.svc.cluster.local.", dnsmessage.TypeA, 512, 25, true},
		{"big.a.svc.cluster.local.", dnsmessage.TypeA, LargestDatagram, 65, true},
		{"big.a.svc.cluster.local.", dnsmessage.TypeA, Largest, 300, false},
		{"_p._tcp.big.a.svc.cluster.local.", dnsmessage.TypeSRV, 512, 6, true},
		{"_p._tcp.big.a.svc.cluster.local.", dnsmessage.TypeSRV, Largest, 300, false},
	} {
		q, err := Parse(asks(t, c.name, c.kind, nil))
		if err != nil {
			t.Fatal(err)
		}
		out, err := w.Answer(Question{Name: q.Name(), Type: c.kind}).Pack(q, c.limit)
		if err != nil || len(out) > c.limit {
			t.Fatalf("%d bytes, %v", len(out), err)
		}
		var m dnsmessage.Message
		if err := m.Unpack(out); err != nil || m.Truncated != c.cut || len(m.Answers) < c.least {
			t.Errorf("%s %s in %d: %d answers, cut %v, %v", c.name, c.kind, c.limit, len(m.Answers), m.Truncated, err)
		}
	}
}

// WL-13 (P): what is no question is refused with the code that says why, or not answered at all.
func TestRefusals(t *testing.T) {
	class := func(c dnsmessage.Class) func(*dnsmessage.Message) {
		return func(m *dnsmessage.Message) { m.Questions[0].Class = c }
	}
	for name, c := range map[string]struct {
		packet []byte
		code   dnsmessage.RCode
		silent bool
	}{
		"nothing":       {packet: nil, silent: true},
		"short":         {packet: []byte("ab"), silent: true},
		"a reply":       {packet: asks(t, "a.", dnsmessage.TypeA, func(m *dnsmessage.Message) { m.Response = true }), silent: true},
		"an update":     {packet: asks(t, "a.", dnsmessage.TypeA, func(m *dnsmessage.Message) { m.OpCode = 5 }), code: dnsmessage.RCodeNotImplemented},
		"no question":   {packet: asks(t, "a.", dnsmessage.TypeA, func(m *dnsmessage.Message) { m.Questions = nil }), code: dnsmessage.RCodeFormatError},
		"two questions": {packet: asks(t, "a.", dnsmessage.TypeA, func(m *dnsmessage.Message) { m.Questions = append(m.Questions, m.Questions[0]) }), code: dnsmessage.RCodeFormatError},
		"chaos":         {packet: asks(t, "a.", dnsmessage.TypeTXT, class(dnsmessage.ClassCHAOS)), code: dnsmessage.RCodeRefused},
		"cut off":       {packet: asks(t, "abc.", dnsmessage.TypeA, nil)[:14], code: dnsmessage.RCodeFormatError},
		"two OPTs": {packet: asks(t, "a.", dnsmessage.TypeA, func(m *dnsmessage.Message) {
			edns(512, 0)(m)
			edns(512, 0)(m)
		}), code: dnsmessage.RCodeFormatError},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(c.packet)
			if c.silent {
				if !errors.Is(err, ErrNotQuery) {
					t.Error(err)
				}
				return
			}
			refusal, ok := errors.AsType[*Refusal](err)
			if !ok || refusal.Code != c.code || !strings.Contains(refusal.Error(), "refused") {
				t.Fatal(err)
			}
			var m dnsmessage.Message
			if err := m.Unpack(refusal.Pack()); err != nil || m.RCode != c.code || !m.Response {
				t.Errorf("%+v, %v", m, err)
			}
		})
	}
}

// WL-13 (P): what another resolver has answered is read, and told that it does not fit.
func TestOthersMessages(t *testing.T) {
	q, err := Parse(asks(t, "a.example.", dnsmessage.TypeA, edns(1232, 0)))
	if err != nil {
		t.Fatal(err)
	}
	packet, err := q.Ask(99)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(packet)
	if err != nil || again.Header.ID != 99 || !again.EDNS || again.Question != q.Question {
		t.Fatalf("%+v, %v", again, err)
	}
	h := func(kind dnsmessage.Type) dnsmessage.ResourceHeader {
		return dnsmessage.ResourceHeader{Name: q.Question.Name, Type: kind, Class: dnsmessage.ClassINET, TTL: 60}
	}
	n := dnsmessage.MustNewName("b.example.")
	m := dnsmessage.Message{Header: dnsmessage.Header{Response: true, RCode: 2}, Questions: []dnsmessage.Question{q.Question}, Answers: []dnsmessage.Resource{
		{Header: h(dnsmessage.TypeCNAME), Body: &dnsmessage.CNAMEResource{CNAME: n}},
		{Header: h(dnsmessage.TypeA), Body: &dnsmessage.AResource{A: [4]byte{192, 0, 2, 1}}},
		{Header: h(dnsmessage.TypeAAAA), Body: &dnsmessage.AAAAResource{}},
		{Header: h(dnsmessage.TypePTR), Body: &dnsmessage.PTRResource{PTR: n}},
		{Header: h(dnsmessage.TypeNS), Body: &dnsmessage.NSResource{NS: n}},
		{Header: h(dnsmessage.TypeMX), Body: &dnsmessage.MXResource{MX: n}},
		{Header: h(dnsmessage.TypeSRV), Body: &dnsmessage.SRVResource{Target: n, Port: 1}},
		{Header: h(dnsmessage.TypeTXT), Body: &dnsmessage.TXTResource{TXT: []string{"x", "y"}}},
		{Header: h(99), Body: &dnsmessage.UnknownResource{Type: 99}},
	}}
	message, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	records, code, ok := Records(message)
	var words []string
	for _, r := range records {
		words = append(words, r.Word())
	}
	if got := fmt.Sprintf("%s %s %t", words, CodeName(code), ok); got != "[-> b.example 192.0.2.1 :: b.example b.example b.example b.example:1 xy 99] SERVFAIL true" {
		t.Error(got)
	}
	if err := m.Unpack(Truncated(message, q)); err != nil || !m.Truncated || len(m.Answers) != 0 || len(m.Questions) != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	if _, _, ok := Records([]byte("x")); ok || Truncated([]byte("x"), q) != nil {
		t.Error("what is no message was read")
	}
}

// WL-09: records that another server has given for an external name are handed on as they were: mail exchangers with their preference, services
// with priority and weight, texts that are longer than one string.
func TestOthersRecords(t *testing.T) {
	q, err := Parse(asks(t, "ext.shop.svc.cluster.local.", dnsmessage.TypeMX, edns(4096, 0)))
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 600)
	reply := Reply{Answers: []Record{
		{Name: "mail.example", Type: dnsmessage.TypeMX, Target: "mx.example", Priority: 10},
		{Name: "sip.example", Type: dnsmessage.TypeSRV, Target: "a.example", Port: 5060, Priority: 1, Weight: 2},
		{Name: "t.example", Type: dnsmessage.TypeTXT, Text: long},
	}}
	packet, err := reply.Pack(q, 4096)
	if err != nil {
		t.Fatal(err)
	}
	var m dnsmessage.Message
	if err := m.Unpack(packet); err != nil || m.RCode != dnsmessage.RCodeSuccess || len(m.Answers) != 3 {
		t.Fatalf("%v %+v", err, m)
	}
	records, _, ok := Records(packet)
	if !ok || !reflect.DeepEqual(records, reply.Answers) {
		t.Errorf("%+v", records)
	}
}

// FuzzMessage (WL-13): whatever a client sends, it is refused, or answered with a message that fits and is about its question.
func FuzzMessage(f *testing.F) {
	f.Add(asks(f, "web.shop.svc.cluster.local.", dnsmessage.TypeA, edns(4096, 0)))
	f.Add(asks(f, "_sql._tcp.db.shop.svc.cluster.local.", dnsmessage.TypeSRV, nil))
	f.Add(asks(f, "7.0.96.10.in-addr.arpa.", dnsmessage.TypePTR, nil))
	f.Add(asks(f, "ext.shop.svc.cluster.local.", dnsmessage.TypeA, edns(512, 1)))
	f.Add([]byte{})
	w := example()
	f.Fuzz(func(t *testing.T, packet []byte) {
		q, err := Parse(packet)
		if err != nil {
			if refusal, ok := errors.AsType[*Refusal](err); ok && len(refusal.Pack()) == 0 {
				t.Errorf("no refusal for %x", packet)
			}
			return
		}
		if ask, err := q.Ask(1); err == nil {
			if again, err := Parse(ask); err != nil || again.Question != q.Question {
				t.Errorf("asked on as %+v, %v", again, err)
			}
		}
		r := w.Answer(Question{Name: q.Name(), Type: q.Question.Type, Turn: len(packet)})
		for _, limit := range []int{q.Size, Largest} {
			out, err := r.Pack(q, limit)
			if err != nil {
				t.Fatalf("%+v: %v", q, err)
			}
			var m dnsmessage.Message
			if err := m.Unpack(out); err != nil || len(out) > limit || m.ID != q.Header.ID || len(m.Questions) != 1 || m.Questions[0] != q.Question {
				t.Fatalf("%d bytes: %+v, %v", len(out), m, err)
			}
			Records(out)
		}
	})
}
