// SPDX-License-Identifier: Apache-2.0

package asked

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/wherryproject/wherry/internal/names"
)

// WL-14 (P): the last hundred questions of each pod are remembered, in their order, of those pods that asked last.
func TestBook(t *testing.T) {
	var b Book
	at := time.Unix(1000, 0)
	for i := range Most + 7 {
		b.Add("a", Note{At: at.Add(time.Duration(i)), Name: fmt.Sprint("n", i), Type: dnsmessage.TypeA})
	}
	got := b.Of("a")
	if len(got) != Most || got[0].Name != "n7" || got[Most-1].Name != fmt.Sprint("n", Most+6) {
		t.Errorf("%d: %v to %v", len(got), got[0], got[len(got)-1])
	}
	if b.Of("b") != nil {
		t.Error("a pod that has not asked has")
	}
	for i := range Pods {
		b.Add(fmt.Sprint("p", i), Note{At: at.Add(time.Hour + time.Duration(i))})
	}
	if b.Of("a") != nil || len(b.Of("p0")) != 1 {
		t.Error("the pod that asked first is not the one that was forgotten")
	}
	b.Forget()
	if b.Of("p0") != nil {
		t.Error("it is remembered")
	}
}

// WL-14 (P): what a pod was told is said in short, wherever the answer came from.
func TestWords(t *testing.T) {
	a := func(n byte) names.Record {
		return names.Record{Type: dnsmessage.TypeA, Addr: netip.AddrFrom4([4]byte{10, 0, 0, n})}
	}
	name := dnsmessage.MustNewName("x.example.")
	m := dnsmessage.Message{Header: dnsmessage.Header{Response: true}, Questions: []dnsmessage.Question{{Name: name, Type: dnsmessage.TypeA, Class: 1}},
		Answers: []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: name, Class: 1}, Body: &dnsmessage.AResource{A: [4]byte{192, 0, 2, 1}}}}}
	message, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	for want, n := range map[string]Note{
		"NOERROR [10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4] 1": {Reply: names.Reply{Answers: []names.Record{a(1), a(2), a(3), a(4), a(5)}}},
		"NXDOMAIN [] 0":         {Reply: names.Reply{Code: dnsmessage.RCodeNameError}},
		"NOERROR [192.0.2.1] 0": {Message: message},
		" [] 0":                 {Message: []byte("x")},
	} {
		n.Type = dnsmessage.TypeA
		got := n.words()
		if text := fmt.Sprint(got.Code, " ", got.Answer, " ", got.More); text != want || got.Type != "A" {
			t.Errorf("%q, want %q", text, want)
		}
	}
}
