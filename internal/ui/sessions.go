// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"sync"
	"time"
)

const (
	// idleLimit is how long a session lasts without a request or an open stream.
	idleLimit = 12 * time.Hour
	// mostSessions bounds the sessions of all, mostOwn those of one person: the one that was idle longest goes. With a
	// bound of all alone, one who may sign in could sign everybody else out.
	mostSessions = 256
	mostOwn      = 16
)

// secretHash is what is kept of a secret: whoever reads this process's memory or its dump cannot sign in by it.
type secretHash [sha256.Size]byte

func hashOf(secret string) secretHash { return sha256.Sum256([]byte(secret)) }

// newSecret is 256 random bits, as text that needs no escaping.
func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the process instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// session is one browser that has signed in.
type session struct {
	token string // bearer token by which it asks the API; "": the API is asked with credentials of its own
	grant *grant // of an identity provider, in place of token; nil: none
	owner string // whose mostOwn counts

	ended context.Context // done when it has been signed out
	end   context.CancelFunc

	// guarded by sessions.mu
	last time.Time // it asked for something, or a stream ended
	open int       // requests that are being answered
}

// sessions are those that are signed in. Only hashes of their secrets are kept.
type sessions struct {
	now func() time.Time

	// gone is called, without the lock, with those that ended because they were idle or too many. It must not wait.
	gone func([]*session)

	mu      sync.Mutex
	byKey   map[secretHash]*session
	dropped []*session // for gone, when mu is unlocked
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, gone: func([]*session) {}, byKey: map[secretHash]*session{}}
}

// unlock unlocks mu, and tells of those that were dropped meanwhile.
func (s *sessions) unlock() {
	dropped := s.dropped
	s.dropped = nil
	s.mu.Unlock()
	if len(dropped) > 0 {
		s.gone(dropped)
	}
}

// add signs in, and returns the session's secret.
func (s *sessions) add(token, owner string) (secret string) {
	return s.put(&session{token: token, owner: owner})
}

// put signs in with what is known of a session already.
func (s *sessions) put(one *session) (secret string) {
	secret = newSecret()
	ctx, end := context.WithCancel(context.Background())
	s.mu.Lock()
	defer s.unlock()
	s.expire()
	s.makeRoom(mostOwn, func(other *session) bool { return other.owner == one.owner })
	s.makeRoom(mostSessions, func(*session) bool { return true })
	one.ended, one.end, one.last = ctx, end, s.now()
	s.byKey[hashOf(secret)] = one
	return secret
}

// begin finds a session and says that it is in use until done is called; nil if there is none.
func (s *sessions) begin(secret string) (found *session, done func()) {
	s.mu.Lock()
	defer s.unlock()
	s.expire()
	// By hash: how long it takes tells nothing about the secrets that would be found.
	found = s.byKey[hashOf(secret)]
	if found == nil {
		return nil, func() {}
	}
	found.open++
	found.last = s.now()
	return found, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		found.open--
		found.last = s.now()
	}
}

// remove signs a session out, and ends its streams; nil: there was none.
func (s *sessions) remove(secret string) *session { return s.removeBy(hashOf(secret)) }

// removeBy does so by what is kept of the secret.
func (s *sessions) removeBy(key secretHash) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drop(key)
}

func (s *sessions) drop(key secretHash) *session {
	found := s.byKey[key]
	if found != nil {
		found.end()
		delete(s.byKey, key)
	}
	return found
}

// expire drops what has been idle for too long. It is called with every look: no timer is needed.
func (s *sessions) expire() {
	for key, one := range s.byKey {
		if one.open == 0 && s.now().Sub(one.last) >= idleLimit {
			s.dropped = append(s.dropped, s.drop(key))
		}
	}
}

// makeRoom leaves room for one more among those that are counted: one that nobody has used for longest goes, rather
// than one in use.
func (s *sessions) makeRoom(most int, counted func(*session) bool) {
	var oldest secretHash
	var of *session
	number := 0
	for key, one := range s.byKey {
		if !counted(one) {
			continue
		}
		number++
		idle := one.open == 0
		if of == nil || idle && of.open > 0 || idle == (of.open == 0) && one.last.Before(of.last) {
			oldest, of = key, one
		}
	}
	if number >= most {
		s.dropped = append(s.dropped, s.drop(oldest))
	}
}
