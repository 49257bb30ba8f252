// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"sync"
)

const (
	// mostSessions bounds the sessions that run at once: each is a process of some 30 MiB, which is the machine's.
	mostSessions = 32
	// mostOfOne bounds those of one user, so that nobody takes debugging of the node away from all others.
	mostOfOne = 12
	// mostLooks bounds the looks for evidence that run at once, which are over soon.
	mostLooks = 8
)

// slots are what of a node's debugging is taken.
type slots struct {
	mu    sync.Mutex
	of    map[string]int // sessions, by user
	all   int            // sessions
	looks int
}

func newSlots() *slots { return &slots{of: map[string]int{}} }

// session takes a slot for a session of a user, until it is given back. The error is for him.
func (s *slots) session(by string) (giveBack func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.all >= mostSessions:
		return nil, fmt.Errorf("%d debug sessions run on this node: end one of them, or wait", s.all)
	case s.of[by] >= mostOfOne:
		return nil,
			fmt.Errorf("%d debug sessions of %s run on this node, and nobody has more: end one of them, or wait",
				s.of[by], by)
	}
	s.all++
	s.of[by]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.of[by]--; s.of[by] == 0 {
			delete(s.of, by)
		}
	}, nil
}

// look takes a slot for a look, until it is given back. The error is for who asks.
func (s *slots) look() (giveBack func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looks >= mostLooks {
		return nil, fmt.Errorf("%d others look for evidence on this node: try again in a moment", s.looks)
	}
	s.looks++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.looks--
	}, nil
}
