// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"net/netip"
	"slices"
	"sync"

	"github.com/wherryproject/wherry/internal/names"
	"github.com/wherryproject/wherry/internal/names/asked"
	"github.com/wherryproject/wherry/internal/names/wire"
)

// state is what the resolver knows.
type state struct {
	changed chan struct{} // the file is to be written

	mu       sync.RWMutex
	world    *names.World // nil: none was received yet
	settings wire.Settings

	book struct {
		sync.Mutex
		asked.Book
	}

	reported struct {
		sync.Mutex
		troubles []string
		listen   []chan string
	}
}

func newState(p wire.Picture) *state {
	return &state{changed: make(chan struct{}, 1), world: p.World, settings: p.Settings}
}

// touched has the file written.
func (s *state) touched() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// replace takes a whole new world.
func (s *state) replace(w *names.World, settings wire.Settings) {
	s.mu.Lock()
	s.world, s.settings = w, settings
	s.mu.Unlock()
	if settings.NoBook {
		s.book.Lock()
		s.book.Forget()
		s.book.Unlock()
	}
	s.touched()
}

// apply takes a change.
func (s *state) apply(c names.Change) {
	s.mu.Lock()
	if s.world != nil {
		s.world.Apply(c)
	}
	s.mu.Unlock()
	s.touched()
}

// answer looks a question up; known is false if there is no world yet.
func (s *state) answer(q names.Question) (r names.Reply, known bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.world == nil {
		return r, false
	}
	return s.world.Answer(q), true
}

// picture is what is to be kept; nothing before there is a world.
func (s *state) picture() (wire.Picture, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.world == nil {
		return wire.Picture{}, false
	}
	copied := names.New(s.settings.Zone)
	for _, c := range s.world.All() {
		copied.Apply(c)
	}
	return wire.Picture{Settings: s.settings, World: copied}, true
}

// now is what the settings are.
func (s *state) now() wire.Settings {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.settings
}

// of is the UID of the pod whose address it is; "" if it is none's, or nothing is remembered.
func (s *state) of(ip netip.Addr) (uid string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.world == nil || s.settings.NoBook {
		return ""
	}
	if p := s.world.PodAt(ip); p != nil {
		return p.UID
	}
	return ""
}

// inside reports whether an address is a pod's, a service's or a node's, which nobody knows before there is a world.
func (s *state) inside(ip netip.Addr) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.world == nil || s.world.Inside(ip)
}

// remember notes what a pod has asked.
func (s *state) remember(from netip.Addr, n asked.Note) {
	uid := s.of(from)
	if uid == "" {
		return
	}
	s.book.Lock()
	defer s.book.Unlock()
	s.book.Add(uid, n)
}

// asked is what a pod has asked.
func (s *state) asked(uid string) wire.Answer {
	if s.now().NoBook {
		return wire.Answer{Off: true}
	}
	s.book.Lock()
	defer s.book.Unlock()
	return wire.Answer{Asked: s.book.Of(uid)}
}

// trouble has the server log a problem, once.
func (s *state) trouble(text string) {
	s.reported.Lock()
	defer s.reported.Unlock()
	if slices.Contains(s.reported.troubles, text) {
		return
	}
	s.reported.troubles = append(s.reported.troubles, text)
	for _, c := range s.reported.listen {
		select {
		case c <- text:
		default: // it does not listen
		}
	}
}

// calm forgets troubles: their cause may be gone.
func (s *state) calm() {
	s.reported.Lock()
	defer s.reported.Unlock()
	s.reported.troubles = nil
}

// troubles hands out what there is and what comes, until done is called.
func (s *state) troubles() (texts <-chan string, done func()) {
	s.reported.Lock()
	defer s.reported.Unlock()
	c := make(chan string, 16)
	for _, t := range s.reported.troubles[:min(len(s.reported.troubles), cap(c))] {
		c <- t
	}
	s.reported.listen = append(s.reported.listen, c)
	return c, func() {
		s.reported.Lock()
		defer s.reported.Unlock()
		s.reported.listen = slices.DeleteFunc(s.reported.listen, func(o chan string) bool { return o == c })
	}
}
