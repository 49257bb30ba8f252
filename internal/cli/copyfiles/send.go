// SPDX-License-Identifier: Apache-2.0

package copyfiles

import (
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Sender packs a file or tree for the toolbox's cp-unpack --keep. Each connection is a [Leg] of it; one that follows a
// cut leaves out what is there already.
type Sender struct {
	// Skipped is told what is neither file, folder nor link, and so is left out; There, how many bytes of files need
	// not be sent, for the other side has them.
	Skipped func(path, why string)
	There   func(bytes int64)

	local string

	mu      sync.Mutex
	begun   bool            // the other side was there
	gain    int64           // grows when something more is known to be there
	done    string          // the last file, in the archive's order, that is there with all before it; "": none
	parts   map[string]bool // files of legs that were cut, of which there may be a part; nil: none
	anyPart bool            // there may be more there than is known: all that is large is asked for
	queue   []queued        // entries of this leg that are not known to be there
	popped  int64           // those of it that are
	bytes   int64           // of the first one in the queue
}

// queued is an entry that was sent.
type queued struct {
	name string // "" unless it makes a file whole
}

// NewSender returns a Sender of what stands at local.
func NewSender(local string) *Sender {
	return &Sender{local: local, Skipped: func(string, string) {}, There: func(int64) {}}
}

// Reached changes whenever more is known to be there; it is "" as long as nobody was there to take anything.
func (s *Sender) Reached() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		return ""
	}
	return fmt.Sprint(s.gain)
}

// Again is for a leg whose other side may have lost what came before, or have kept it: the container was started anew.
// All is sent again that is not found there.
func (s *Sender) Again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done, s.anyPart = "", true
}

// greeted notes that the other side is there.
func (s *Sender) greeted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = true
}

// nextLeg forgets the queue, but for the files in it: of one there may be a part.
func (s *Sender) nextLeg() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queue {
		if q.name != "" {
			if s.parts == nil {
				s.parts = map[string]bool{}
			}
			s.parts[q.name] = true
		}
	}
	s.queue, s.popped, s.bytes = nil, 0, 0
}

// sent notes that an entry is on its way; name is the file's that it makes whole, if it does.
func (s *Sender) sent(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, queued{name})
}

// placed notes how far the other side is.
func (s *Sender) placed(entries, bytes int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	more := entries - s.popped
	if more < 0 || more > int64(len(s.queue)) {
		return errors.New("the other side of the copy has more than was sent")
	}
	for _, q := range s.queue[:more] {
		if q.name != "" {
			s.done = q.name
			s.gain++
			delete(s.parts, q.name)
		}
	}
	if more > 0 {
		s.bytes = 0
	}
	s.queue, s.popped = s.queue[more:], entries
	if bytes > s.bytes {
		s.gain += bytes - s.bytes
		s.bytes = bytes
	}
	return nil
}

// there reports whether a file is there, as far as is known.
func (s *Sender) there(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done != "" && (name == s.done || before(name, s.done))
}

// asks reports whether it is worth a question what there is of a file: there may be something, and it is much.
func (s *Sender) asks(name string, size int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return size >= worthAsking && (s.anyPart || s.parts[name])
}

// worthAsking is the size of the smallest file of which is asked how much of it is there.
const worthAsking = 256 << 10

// before tells whether an entry comes before another one in the order of a walk: a folder before what is in it, and
// that in the order of the names' bytes.
func before(name, other string) bool {
	a, b := strings.Split(name, "/"), strings.Split(other, "/")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return len(a) < len(b)
}
