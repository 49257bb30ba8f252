// SPDX-License-Identifier: Apache-2.0

package asked

import (
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/wherryproject/wherry/internal/names"
)

const (
	// Most is how many questions of a pod are remembered.
	Most = 100
	// Pods is of how many pods: those that have asked last.
	Pods = 256
	// shown is how many records of an answer are.
	shown = 4
)

// Where an answer came from.
const (
	Cluster = "cluster" // from services and pods
	Kept    = "kept"    // from what a resolver has answered before
)

// Asked is one question.
type Asked struct {
	At     time.Time     `json:"at"`
	Name   string        `json:"name"`
	Type   string        `json:"type"`
	Code   string        `json:"code"`           // NOERROR, NXDOMAIN, SERVFAIL, …; empty: nobody has answered
	Answer []string      `json:"answer"`         // the first records
	More   int           `json:"more,omitempty"` // how many others there were
	From   string        `json:"from"`           // cluster, kept, or the resolver that has answered
	Took   time.Duration `json:"took"`
}

// Note is what is remembered of a question until somebody asks. Of Reply and Message one is set.
type Note struct {
	At      time.Time
	Took    time.Duration
	Name    string
	Type    dnsmessage.Type
	From    string
	Reply   names.Reply
	Message []byte // as another resolver wrote it
}

// ring holds the last notes of a pod.
type ring struct {
	notes []Note
	next  int
	last  time.Time
}

// Book remembers. Pods are known by their UIDs. The zero value is empty.
type Book struct {
	rings map[string]*ring
}

// Add notes a question of a pod.
func (b *Book) Add(uid string, n Note) {
	if b.rings == nil {
		b.rings = map[string]*ring{}
	}
	r := b.rings[uid]
	if r == nil {
		b.makeRoom()
		r = &ring{}
		b.rings[uid] = r
	}
	r.last = n.At
	if len(r.notes) < Most {
		r.notes = append(r.notes, n)
		return
	}
	r.notes[r.next] = n
	r.next = (r.next + 1) % Most
}

// makeRoom forgets the pod that has not asked for the longest time, if there are too many.
func (b *Book) makeRoom() {
	if len(b.rings) < Pods {
		return
	}
	var oldest string
	for uid, r := range b.rings {
		if oldest == "" || r.last.Before(b.rings[oldest].last) {
			oldest = uid
		}
	}
	delete(b.rings, oldest)
}

// Forget drops all that is remembered.
func (b *Book) Forget() { b.rings = nil }

// Of returns what a pod has asked, the oldest first.
func (b *Book) Of(uid string) (all []Asked) {
	r := b.rings[uid]
	if r == nil {
		return nil
	}
	for i := range r.notes {
		all = append(all, r.notes[(r.next+i)%len(r.notes)].words())
	}
	return all
}

func (n Note) words() Asked {
	a := Asked{At: n.At, Name: n.Name, Type: names.TypeName(n.Type), From: n.From, Took: n.Took, Answer: []string{}}
	records, code, ok := n.Reply.Answers, n.Reply.Code, true
	if n.Message != nil {
		records, code, ok = names.Records(n.Message)
	} else if n.Reply.Outside {
		return a
	}
	if !ok {
		return a
	}
	a.Code = names.CodeName(code)
	for i, r := range records {
		if i == shown {
			a.More = len(records) - shown
			break
		}
		a.Answer = append(a.Answer, r.Word())
	}
	return a
}
