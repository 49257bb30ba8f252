// SPDX-License-Identifier: Apache-2.0

package names

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// classicSize is what a datagram may hold for clients that do not say what they take.
	classicSize = 512
	// LargestDatagram is what we send and take in one: it crosses no network in pieces.
	LargestDatagram = 1232
	// Largest is what a message may be over TCP.
	Largest = 1<<16 - 1
)

// Query is a message that asks.
type Query struct {
	Header   dnsmessage.Header
	Question dnsmessage.Question
	// EDNS says that the client speaks it; Size is the largest datagram that it takes, DO that it wants signatures.
	EDNS bool
	Size int
	DO   bool
	bad  bool // of a version of EDNS that nobody speaks
}

// ErrNotQuery is returned for a message that deserves no answer at all.
var ErrNotQuery = errors.New("not a query")

// Refusal says that a message is answered with a code and nothing else.
type Refusal struct {
	ID   uint16
	Code dnsmessage.RCode
}

func (r *Refusal) Error() string { return fmt.Sprintf("query refused: %s", r.Code) }

// Pack writes the refusal.
func (r *Refusal) Pack() []byte {
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: r.ID, Response: true, RCode: r.Code}}
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return out
}

// Parse reads a message of a client.
func Parse(packet []byte) (q Query, err error) {
	var p dnsmessage.Parser
	if q.Header, err = p.Start(packet); err != nil || q.Header.Response {
		return q, ErrNotQuery
	}
	if q.Header.OpCode != 0 {
		return q, &Refusal{q.Header.ID, dnsmessage.RCodeNotImplemented}
	}
	malformed := &Refusal{q.Header.ID, dnsmessage.RCodeFormatError}
	questions, err := p.AllQuestions()
	if err != nil || len(questions) != 1 {
		return q, malformed
	}
	q.Question, q.Size = questions[0], classicSize
	if q.Question.Class != dnsmessage.ClassINET && q.Question.Class != dnsmessage.ClassANY {
		return q, &Refusal{q.Header.ID, dnsmessage.RCodeRefused}
	}
	if p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil {
		return q, malformed
	}
	for {
		h, err := p.AdditionalHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return q, nil
		}
		if err != nil || h.Type == dnsmessage.TypeOPT && q.EDNS {
			return q, malformed
		}
		if h.Type == dnsmessage.TypeOPT {
			q.EDNS, q.DO, q.bad = true, h.DNSSECAllowed(), h.TTL>>16&0xff != 0
			q.Size = min(max(int(h.Class), classicSize), LargestDatagram)
		}
		if p.SkipAdditional() != nil {
			return q, malformed
		}
	}
}

// Name is the name that is asked for, without the last dot, as the client wrote it.
func (q Query) Name() string { return strings.TrimSuffix(q.Question.Name.String(), ".") }

// badVersion is the extended code of a reply to EDNS of another version (RFC 6891).
const badVersion = 16

// Pack writes the reply to a query into at most limit bytes: with as many records as fit, and a word that there are
// more.
func (r Reply) Pack(q Query, limit int) ([]byte, error) {
	if q.bad {
		r = Reply{Code: badVersion}
	}
	cut := false
	for n := len(r.Answers); ; {
		out, err := r.pack(q, n, cut)
		switch {
		case err != nil:
			return nil, err
		case len(out) <= limit:
			return out, nil
		case len(r.Extra) > 0: // what nobody has asked for goes first
			r.Extra = nil
			continue
		case n == 0:
			return nil, fmt.Errorf("a reply of %d bytes does not fit into %d", len(out), limit)
		}
		n, cut = min(n-1, n*limit/len(out)), true
	}
}

func (r Reply) pack(q Query, n int, cut bool) ([]byte, error) {
	b := dnsmessage.NewBuilder(make([]byte, 0, classicSize), dnsmessage.Header{
		ID: q.Header.ID, Response: true, Authoritative: !r.Outside, Truncated: cut,
		RecursionDesired: q.Header.RecursionDesired, RecursionAvailable: true, RCode: r.Code & 0xf,
	})
	b.EnableCompression()
	if err := errors.Join(b.StartQuestions(), b.Question(q.Question), b.StartAnswers()); err != nil {
		return nil, err
	}
	for _, a := range r.Answers[:n] {
		if err := a.add(&b, q); err != nil {
			return nil, err
		}
	}
	if err := b.StartAuthorities(); err != nil {
		return nil, err
	}
	if r.SOA != "" {
		if err := (Record{Name: r.SOA, Type: dnsmessage.TypeSOA}).add(&b, q); err != nil {
			return nil, err
		}
	}
	if err := b.StartAdditionals(); err != nil {
		return nil, err
	}
	for _, a := range r.Extra {
		if err := a.add(&b, q); err != nil {
			return nil, err
		}
	}
	if q.EDNS {
		var h dnsmessage.ResourceHeader
		if err := h.SetEDNS0(LargestDatagram, r.Code, q.DO); err != nil {
			return nil, err
		}
		if err := b.OPTResource(h, dnsmessage.OPTResource{}); err != nil {
			return nil, err
		}
	}
	return b.Finish()
}

// add writes a record. Its name is written as the client wrote it, if it is the one that was asked for: some look
// whether their own mixture of letters comes back.
func (a Record) add(b *dnsmessage.Builder, q Query) error {
	owner := q.Question.Name
	if !strings.EqualFold(a.Name, q.Name()) {
		var err error
		if owner, err = dnsmessage.NewName(a.Name + "."); err != nil {
			return err
		}
	}
	h := dnsmessage.ResourceHeader{Name: owner, Class: dnsmessage.ClassINET, TTL: TTL}
	var target dnsmessage.Name
	if a.Target != "" {
		var err error
		if target, err = dnsmessage.NewName(a.Target + "."); err != nil {
			return err
		}
	}
	switch a.Type {
	case dnsmessage.TypeA:
		return b.AResource(h, dnsmessage.AResource{A: a.Addr.As4()})
	case dnsmessage.TypeAAAA:
		return b.AAAAResource(h, dnsmessage.AAAAResource{AAAA: a.Addr.As16()})
	case dnsmessage.TypeCNAME:
		return b.CNAMEResource(h, dnsmessage.CNAMEResource{CNAME: target})
	case dnsmessage.TypePTR:
		return b.PTRResource(h, dnsmessage.PTRResource{PTR: target})
	case dnsmessage.TypeNS:
		return b.NSResource(h, dnsmessage.NSResource{NS: target})
	case dnsmessage.TypeSRV:
		return b.SRVResource(h, dnsmessage.SRVResource{Priority: a.Priority, Weight: a.Weight, Port: a.Port,
			Target: target})
	case dnsmessage.TypeMX:
		return b.MXResource(h, dnsmessage.MXResource{Pref: a.Priority, MX: target})
	case dnsmessage.TypeTXT:
		return b.TXTResource(h, dnsmessage.TXTResource{TXT: strings255(a.Text)})
	case dnsmessage.TypeSOA:
		return soa(b, h, a.Name)
	}
	return fmt.Errorf("no such record is made here: %s", a.Type)
}

// strings255 cuts a text into the strings of a TXT record, which have 255 bytes at most (RFC 1035).
func strings255(text string) (all []string) {
	for len(text) > 255 {
		all, text = append(all, text[:255]), text[255:]
	}
	return append(all, text)
}

// soa says how long a no may be kept: as short as a yes.
func soa(b *dnsmessage.Builder, h dnsmessage.ResourceHeader, zone string) error {
	ns, err := dnsmessage.NewName("ns.dns." + zone + ".")
	if err != nil {
		return err
	}
	mailbox, err := dnsmessage.NewName("hostmaster." + zone + ".")
	if err != nil {
		return err
	}
	return b.SOAResource(h, dnsmessage.SOAResource{NS: ns, MBox: mailbox, Serial: 1, Refresh: 7200, Retry: 1800,
		Expire: 86400, MinTTL: TTL})
}

// Truncated is what is sent over UDP in place of an answer of another resolver that is too long for it.
func Truncated(message []byte, q Query) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(message)
	if err != nil {
		return nil
	}
	h.Truncated = true
	out, err := (&dnsmessage.Message{Header: h, Questions: []dnsmessage.Question{q.Question}}).Pack()
	if err != nil {
		return nil
	}
	return out
}

// Ask writes the query that asks another resolver the same. The client's other options are not passed on.
func (q Query) Ask(id uint16) ([]byte, error) {
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: id, RecursionDesired: true,
		CheckingDisabled: q.Header.CheckingDisabled, AuthenticData: q.Header.AuthenticData})
	if err := errors.Join(b.StartQuestions(), b.Question(q.Question), b.StartAdditionals()); err != nil {
		return nil, err
	}
	if q.EDNS {
		var h dnsmessage.ResourceHeader
		if err := h.SetEDNS0(LargestDatagram, 0, q.DO); err != nil {
			return nil, err
		}
		if err := b.OPTResource(h, dnsmessage.OPTResource{}); err != nil {
			return nil, err
		}
	}
	return b.Finish()
}
