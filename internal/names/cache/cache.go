// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/wherryproject/wherry/internal/names"
)

const (
	// Most is how many answers are kept.
	Most = 1000
	// Longest is how long one is kept at most, LongestNo how long one that says no.
	Longest, LongestNo = 5 * time.Minute, 30 * time.Second
)

// headerSize is that of a message: its number, flags and counts.
const headerSize = 12

// Key is what a query must share with another to get its answer.
type Key struct {
	Name           string // in lower case
	Type           dnsmessage.Type
	EDNS, DO, CD   bool
	Size           int
	Authentic, Any bool
}

// KeyOf is a query's.
func KeyOf(q names.Query) Key {
	return Key{Name: strings.ToLower(q.Name()), Type: q.Question.Type, EDNS: q.EDNS, DO: q.DO, Size: q.Size,
		CD: q.Header.CheckingDisabled, Authentic: q.Header.AuthenticData, Any: q.Question.Class == dnsmessage.ClassANY}
}

type kept struct {
	message []byte
	ttls    []int // where the times to live are in it
	since   time.Time
	until   time.Time
}

// Cache is what is kept. The zero value is empty.
type Cache struct {
	answers map[Key]kept
}

// Get returns an answer to q, if there is one.
func (c *Cache) Get(q names.Query, now time.Time) ([]byte, bool) {
	key := KeyOf(q)
	k, ok := c.answers[key]
	if !ok {
		return nil, false
	}
	if !now.Before(k.until) || now.Before(k.since) {
		delete(c.answers, key)
		return nil, false
	}
	out := append([]byte(nil), k.message...)
	age := uint32(now.Sub(k.since) / time.Second)
	for _, at := range k.ttls {
		ttl := binary.BigEndian.Uint32(out[at:])
		binary.BigEndian.PutUint32(out[at:], ttl-min(ttl, age))
	}
	return ForQuery(out, q), true
}

// Put keeps an answer to q that has been checked, if it may be kept.
func (c *Cache) Put(q names.Query, message []byte, now time.Time) {
	life, ttls, ok := lifetime(message)
	if !ok || life <= 0 {
		return
	}
	if c.answers == nil {
		c.answers = map[Key]kept{}
	}
	for key, k := range c.answers {
		if len(c.answers) < Most && now.Before(k.until) {
			break // one that is over goes with each that comes; if there are too many, any does
		}
		delete(c.answers, key)
	}
	c.answers[KeyOf(q)] = kept{message: append([]byte(nil), message...), ttls: ttls, since: now, until: now.Add(life)}
}

// ForQuery makes an answer to the same question that of q: with its number, and with the name as it was written. It
// changes the message.
func ForQuery(message []byte, q names.Query) []byte {
	binary.BigEndian.PutUint16(message, q.Header.ID)
	if len(message) > 2 && q.Header.RecursionDesired {
		message[2] |= 1
	}
	at := headerSize
	for _, label := range strings.Split(q.Name(), ".") {
		if at+1+len(label) > len(message) || int(message[at]) != len(label) {
			return message // written in another way, as only the root is
		}
		copy(message[at+1:], label)
		at += 1 + len(label)
	}
	return message
}

// ErrAnother is the answer to something else.
var ErrAnother = errors.New("not the answer to this question")

// Checked says whether a message that came answers the question with the number that was sent.
func Checked(message []byte, id uint16, question dnsmessage.Question) (dnsmessage.Header, error) {
	var p dnsmessage.Parser
	h, err := p.Start(message)
	if err != nil {
		return h, err
	}
	got, err := p.Question()
	switch {
	case h.ID != id || !h.Response:
		return h, ErrAnother
	case errors.Is(err, dnsmessage.ErrSectionDone) && h.RCode != dnsmessage.RCodeSuccess &&
		h.RCode != dnsmessage.RCodeNameError:
		return h, nil // some leave the question out when they refuse
	case err != nil || got.Type != question.Type || !strings.EqualFold(got.Name.String(), question.Name.String()):
		return h, ErrAnother
	}
	return h, nil
}

// lifetime is how long an answer may be kept, and where in it the times to live are.
func lifetime(message []byte) (life time.Duration, ttls []int, ok bool) {
	var p dnsmessage.Parser
	h, err := p.Start(message)
	if err != nil || h.Truncated || h.RCode != dnsmessage.RCodeSuccess && h.RCode != dnsmessage.RCodeNameError {
		return 0, nil, false
	}
	answers, no := 0, false
	life = Longest
	ok = walk(message, func(section int, kind dnsmessage.Type, ttlAt int, body []byte) {
		if kind == dnsmessage.TypeOPT {
			return
		}
		ttls = append(ttls, ttlAt)
		ttl := binary.BigEndian.Uint32(message[ttlAt:])
		if section == 0 {
			answers++
		}
		if section == 1 && kind == dnsmessage.TypeSOA && len(body) >= 4 {
			ttl, no = min(ttl, binary.BigEndian.Uint32(body[len(body)-4:])), true
		}
		life = min(life, time.Duration(ttl)*time.Second)
	})
	if answers == 0 || h.RCode != dnsmessage.RCodeSuccess {
		life, ok = min(life, LongestNo), ok && no // without a SOA nobody says how long
	}
	return life, ttls, ok
}

// walk goes through the records of a message: of the answer (section 0), the authorities (1) and what is additional
// (2).
func walk(message []byte, each func(section int, kind dnsmessage.Type, ttlAt int, body []byte)) bool {
	if len(message) < headerSize {
		return false
	}
	at, ok := headerSize, true
	for range binary.BigEndian.Uint16(message[4:]) {
		if at, ok = skipName(message, at); !ok || at+4 > len(message) {
			return false
		}
		at += 4
	}
	for section := range 3 {
		for range binary.BigEndian.Uint16(message[6+2*section:]) {
			if at, ok = skipName(message, at); !ok || at+10 > len(message) {
				return false
			}
			body := at + 10
			end := body + int(binary.BigEndian.Uint16(message[at+8:]))
			if end > len(message) {
				return false
			}
			each(section, dnsmessage.Type(binary.BigEndian.Uint16(message[at:])), at+4, message[body:end])
			at = end
		}
	}
	return true
}

// skipName returns where a name ends.
func skipName(message []byte, at int) (int, bool) {
	for at < len(message) {
		n := int(message[at])
		switch {
		case n == 0:
			return at + 1, true
		case n&0xc0 == 0xc0: // the rest is elsewhere
			return at + 2, true
		case n&0xc0 != 0:
			return 0, false
		}
		at += 1 + n
	}
	return 0, false
}
