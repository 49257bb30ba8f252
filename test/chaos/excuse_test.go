// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"sync"
	"time"
)

// excuse tells when a server may refuse what it is asked, or may not answer: while what it needs is not there, and shortly after.
type excuse struct {
	mu    sync.Mutex
	holds int
	until time.Time
}

// shortly is how long after an outage a server may take until all works again.
const shortly = 20 * time.Second

// begin begins one; the function that is returned ends it.
func (e *excuse) begin() (end func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.holds++
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.holds--
		e.until = time.Now().Add(shortly)
	}
}

// since tells whether there was one at some time since.
func (e *excuse) since(when time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.holds > 0 || e.until.After(when)
}

// try does what must work, again and again as long as there is an excuse for its failing.
func (s *storm) try(what string, do func() error) {
	s.t.Helper()
	for {
		began := time.Now()
		err := do()
		if err == nil {
			return
		}
		if !s.excuse.since(began) {
			s.t.Fatalf("%s: %v", what, err)
		}
		s.did["refusals"]++
		time.Sleep(200 * time.Millisecond) // the end of an outage is no event
	}
}
