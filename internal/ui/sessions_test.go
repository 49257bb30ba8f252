// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"fmt"
	"testing"
	"time"
)

// clock is a time that a test moves.
type clock struct{ at time.Time }

func newClock() *clock                      { return &clock{time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)} }
func (c *clock) now() time.Time             { return c.at }
func (c *clock) moves(d time.Duration)      { c.at = c.at.Add(d) }
func (s *sessions) signedIn(id string) bool { _, done := s.begin(id); defer done(); return s.has(id) }
func (s *sessions) has(id string) bool      { return s.byKey[hashOf(id)] != nil }

// UI-03: a link signs in once, within five minutes.
func TestLinks(t *testing.T) {
	c := newClock()
	l := &links{now: c.now}
	first, second := l.add(), l.add()
	if first == second || len(first) < 43 {
		t.Fatalf("%q, %q: want 256 bits each", first, second)
	}
	for _, wrong := range []string{"", "x", first + "x", first[1:]} {
		if l.use(wrong) {
			t.Errorf("%q signed in", wrong)
		}
	}
	if !l.use(first) || l.use(first) {
		t.Error("a link must sign in once, and no second time")
	}
	c.moves(linkLife - 1)
	third := l.add()
	c.moves(1)
	if l.use(second) {
		t.Error("a link of five minutes ago signed in")
	}
	if !l.use(third) {
		t.Error("a link that was just made did not sign in")
	}
	oldest := l.add()
	for range mostLinks {
		l.add()
	}
	if l.use(oldest) || len(l.waiting) != mostLinks {
		t.Errorf("%d links wait, want %d", len(l.waiting), mostLinks)
	}
}

// UI-03: a session ends when it was idle for 12 hours or is signed out, with its streams; one with an open stream is
// not idle.
func TestSessionsEnd(t *testing.T) {
	c := newClock()
	s := newSessions(c.now)
	idle, busy, out := s.add("", "a"), s.add("", "b"), s.add("", "c")
	stream, done := s.begin(busy)
	leaving, leave := s.begin(out)
	s.remove(out)
	if s.signedIn(out) || leaving.ended.Err() == nil {
		t.Error("a session that was signed out goes on")
	}
	leave()
	c.moves(idleLimit)
	if s.signedIn(idle) {
		t.Error("a session that was idle for 12 hours goes on")
	}
	if stream.ended.Err() != nil {
		t.Error("a session with an open stream was ended")
	}
	done()
	c.moves(idleLimit - 1)
	if !s.signedIn(busy) {
		t.Error("a session ended sooner than 12 hours after its last stream")
	}
	c.moves(idleLimit)
	if s.signedIn(busy) || len(s.byKey) != 0 {
		t.Error("the last session goes on")
	}
	for key := range newSessionsWith(t, 3).byKey {
		if key == (secretHash{}) {
			t.Error("a session is kept under no hash")
		}
	}
}

func newSessionsWith(t *testing.T, n int) *sessions {
	t.Helper()
	c := newClock()
	s := newSessions(c.now)
	for i := range n {
		c.moves(time.Second)
		s.add("", fmt.Sprint("user", i))
	}
	return s
}

// UI-03: a flood of sign-ins is bounded, and one person's signs out no one else.
func TestSignInFlood(t *testing.T) {
	c := newClock()
	s := newSessions(c.now)
	victim := s.add("", "victim")
	c.moves(time.Second)
	used := s.add("", "flood")
	_, done := s.begin(used)
	defer done()
	for range 10 * mostSessions {
		c.moves(time.Millisecond)
		s.add("", "flood")
	}
	if len(s.byKey) != mostOwn+1 || !s.has(victim) || !s.has(used) {
		t.Errorf("%d sessions, want %d; the other person's is there: %t, the one in use: %t", len(s.byKey), mostOwn+1,
			s.has(victim), s.has(used))
	}
	if all := newSessionsWith(t, 2*mostSessions); len(all.byKey) != mostSessions {
		t.Errorf("%d sessions, want %d", len(all.byKey), mostSessions)
	}
}
