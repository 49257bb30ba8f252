// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"context"
	"slices"
	"time"
)

// Pauses between attempts to remove what could not be removed.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// leave leaves a session to Run.
func (e *Execs) leave(s *Session) {
	e.mu.Lock()
	e.leftover = append(e.leftover, s)
	e.mu.Unlock()
	select {
	case e.left <- struct{}{}:
	default: // Run has not yet looked at the one before
	}
}

// Run removes what could not be removed when its session ended (IX-05), with growing pauses, until ctx ends. It would
// hold the disk space of pods that are gone. What is left when ctx ends is the next Sweep's.
func (e *Execs) Run(ctx context.Context) {
	pause, again := firstPause, (<-chan time.Time)(nil)
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.left:
			pause = firstPause
		case <-again:
			if e.removeLeft(ctx) {
				again = nil
				continue
			}
			pause = min(2*pause, longestPause)
		}
		again = time.After(pause)
	}
}

// removeLeft tries once more to remove each of the sessions that are left, and reports whether none is.
func (e *Execs) removeLeft(ctx context.Context) bool {
	e.mu.Lock()
	sessions := slices.Clone(e.leftover)
	e.mu.Unlock()
	for _, s := range sessions {
		own, cancel := context.WithTimeout(ctx, cleanTime)
		err := s.remove(own)
		cancel()
		if err != nil {
			e.Logger.Debug("an image exec cannot be removed yet", "session", s.id, "err", err)
			continue
		}
		e.Logger.Info("an image exec was removed at last", "session", s.id)
		e.mu.Lock()
		e.leftover = slices.DeleteFunc(e.leftover, func(o *Session) bool { return o == s })
		e.mu.Unlock()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.leftover) == 0
}
