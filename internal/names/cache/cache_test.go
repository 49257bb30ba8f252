// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/wherryproject/wherry/internal/names"
)

func query(t testing.TB, name string, kind dnsmessage.Type, id uint16) names.Query {
	t.Helper()
	q := names.Query{Header: dnsmessage.Header{ID: id, RecursionDesired: true}, Size: 512,
		Question: dnsmessage.Question{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}}
	return q
}

// answer is one of another resolver: an address with a time to live, or a no.
func answer(t testing.TB, name string, ttl uint32, change func(*dnsmessage.Message)) []byte {
	t.Helper()
	n := dnsmessage.MustNewName(name)
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 1, Response: true},
		Questions: []dnsmessage.Question{{Name: n, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
		Answers: []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: n, Class: dnsmessage.ClassINET, TTL: ttl},
			Body: &dnsmessage.AResource{A: [4]byte{192, 0, 2, 1}}}}}
	if change != nil {
		change(&m)
	}
	out, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func saysNo(minimum uint32, soa bool) func(*dnsmessage.Message) {
	return func(m *dnsmessage.Message) {
		m.RCode, m.Answers = dnsmessage.RCodeNameError, nil
		if soa {
			n := dnsmessage.MustNewName("example.")
			m.Authorities = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: n, Class: dnsmessage.ClassINET, TTL: 900},
				Body: &dnsmessage.SOAResource{NS: n, MBox: n, MinTTL: minimum}}}
		}
	}
}

// WL-13 (P): an answer is kept as long as it says, and no longer than is good; a no as long as its zone says.
func TestLifetime(t *testing.T) {
	for name, c := range map[string]struct {
		message []byte
		want    time.Duration
	}{
		"an address":          {answer(t, "a.example.", 60, nil), time.Minute},
		"for a day":           {answer(t, "a.example.", 86400, nil), Longest},
		"not at all":          {answer(t, "a.example.", 0, nil), 0},
		"no":                  {answer(t, "a.example.", 0, saysNo(10, true)), 10 * time.Second},
		"no for a day":        {answer(t, "a.example.", 0, saysNo(86400, true)), LongestNo},
		"no without a zone":   {answer(t, "a.example.", 0, saysNo(0, false)), 0},
		"cut":                 {answer(t, "a.example.", 60, func(m *dnsmessage.Message) { m.Truncated = true }), 0},
		"the resolver failed": {answer(t, "a.example.", 60, func(m *dnsmessage.Message) { m.RCode = dnsmessage.RCodeServerFailure }), 0},
	} {
		t.Run(name, func(t *testing.T) {
			var c2 Cache
			q, now := query(t, "a.example.", dnsmessage.TypeA, 5), time.Unix(1000, 0)
			c2.Put(q, c.message, now)
			_, kept := c2.Get(q, now)
			if kept != (c.want > 0) {
				t.Fatalf("kept: %v", kept)
			}
			if !kept {
				return
			}
			if _, kept := c2.Get(q, now.Add(c.want-1)); !kept {
				t.Error("it is gone too early")
			}
			if _, kept := c2.Get(q, now.Add(c.want)); kept {
				t.Error("it is kept too long")
			}
		})
	}
}

// WL-13 (P): what is kept comes with the number and the letters of who asks, older by as much as it is; who asks in another way gets another.
func TestKept(t *testing.T) {
	var c Cache
	now := time.Unix(1000, 0)
	c.Put(query(t, "a.example.", dnsmessage.TypeA, 5), answer(t, "a.example.", 60, nil), now)
	got, ok := c.Get(query(t, "A.exAMple.", dnsmessage.TypeA, 77), now.Add(20*time.Second))
	if !ok {
		t.Fatal("it is not kept")
	}
	var m dnsmessage.Message
	if err := m.Unpack(got); err != nil {
		t.Fatal(err)
	}
	if m.ID != 77 || !m.RecursionDesired || m.Questions[0].Name.String() != "A.exAMple." || m.Answers[0].Header.TTL != 40 {
		t.Errorf("%+v", m)
	}
	for name, q := range map[string]names.Query{
		"another type": query(t, "a.example.", dnsmessage.TypeAAAA, 5), "another name": query(t, "b.example.", dnsmessage.TypeA, 5),
		"another size": {Size: 1232, EDNS: true, Question: query(t, "a.example.", dnsmessage.TypeA, 5).Question},
	} {
		if _, ok := c.Get(q, now); ok {
			t.Errorf("%s is answered alike", name)
		}
	}
	if _, ok := c.Get(query(t, "a.example.", dnsmessage.TypeA, 5), now.Add(-time.Hour)); ok {
		t.Error("it is kept though the clock was put back")
	}
}

// WL-13 (P): however much is asked for, there is a bounded number of answers.
func TestBounded(t *testing.T) {
	var c Cache
	now := time.Unix(1000, 0)
	for i := range 3 * Most {
		name := fmt.Sprintf("n%d.example.", i)
		c.Put(query(t, name, dnsmessage.TypeA, 1), answer(t, name, 60, nil), now)
	}
	if len(c.answers) > Most {
		t.Errorf("%d are kept", len(c.answers))
	}
}

// WL-13 (P): an answer is one to the question that was asked, with its number; what else comes is not taken.
func TestChecked(t *testing.T) {
	question := query(t, "A.example.", dnsmessage.TypeA, 0).Question
	for name, c := range map[string]struct {
		message []byte
		ok      bool
	}{
		"the answer":              {answer(t, "a.EXAMPLE.", 1, nil), true},
		"another number":          {answer(t, "a.example.", 1, func(m *dnsmessage.Message) { m.ID = 2 }), false},
		"a question":              {answer(t, "a.example.", 1, func(m *dnsmessage.Message) { m.Response = false }), false},
		"of another name":         {answer(t, "b.example.", 1, nil), false},
		"without a question":      {answer(t, "a.example.", 1, func(m *dnsmessage.Message) { m.Questions = nil }), false},
		"a refusal without one":   {answer(t, "a.example.", 1, func(m *dnsmessage.Message) { m.Questions, m.Answers, m.RCode = nil, nil, dnsmessage.RCodeRefused }), true},
		"nothing that is to read": {[]byte("abc"), false},
	} {
		if _, err := Checked(c.message, 1, question); (err == nil) != c.ok || err != nil && len(c.message) > 12 && !errors.Is(err, ErrAnother) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzCache (WL-13): whatever another resolver answers, it is kept or not; what is kept comes back whole, but for its number, letters and times.
func FuzzCache(f *testing.F) {
	f.Add(answer(f, "a.example.", 60, nil), uint16(3))
	f.Add(answer(f, "a.example.", 60, saysNo(5, true)), uint16(3))
	f.Add([]byte{}, uint16(1))
	f.Fuzz(func(t *testing.T, message []byte, later uint16) {
		q, now := query(t, "A.eXample.", dnsmessage.TypeA, 9), time.Unix(1000, 0)
		if _, err := Checked(message, 1, q.Question); err != nil {
			return
		}
		var c Cache
		before := bytes.Clone(message)
		c.Put(q, message, now)
		got, ok := c.Get(q, now.Add(time.Duration(later)*time.Second/100))
		if !bytes.Equal(before, message) {
			t.Error("the message was changed")
		}
		if ok && len(got) != len(message) {
			t.Errorf("%d bytes became %d", len(message), len(got))
		}
	})
}
