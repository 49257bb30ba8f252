// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"slices"
	"sync"
)

// turn is what a pull is charged to.
type turn struct{ namespace, registry string }

// mayStart decides whether a pull may begin beside those that run. Each namespace has a number of its own, so that a
// registry that hangs holds up nobody else's; and of that number one registry leaves at least one for the others.
// (Pure.)
func mayStart(t turn, running []turn, parallel int) bool {
	mine, same := 0, 0
	for _, r := range running {
		if r.namespace != t.namespace {
			continue
		}
		mine++
		if r.registry == t.registry {
			same++
		}
	}
	return mine < parallel && same < max(1, parallel-1)
}

// turns lets pulls begin, in the order in which they came, as far as mayStart allows.
type turns struct {
	parallel int

	mu      sync.Mutex
	running []turn
	waiting []*waiter
}

// waiter is a pull that has not begun. Several namespaces may wait for it: it begins as soon as it is the turn of one
// of them.
type waiter struct {
	turns []turn
	begun chan struct{} // closed when it may begin, charged to charge
	gone  bool          // it has begun, or was called off
	// charge is set before begun is closed.
	charge turn
}

func newWaiter() *waiter { return &waiter{begun: make(chan struct{})} }

// join makes it a namespace's pull too.
func (q *turns) join(w *waiter, t turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !w.gone && !slices.Contains(w.turns, t) {
		w.turns = append(w.turns, t)
		q.start()
	}
}

// wait returns when the pull may begin, and what to call when it is over.
func (q *turns) wait(ctx context.Context, w *waiter) (over func(), err error) {
	q.mu.Lock()
	q.waiting = append(q.waiting, w)
	q.start()
	q.mu.Unlock()
	select {
	case <-w.begun:
		return func() { q.end(w) }, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.gone { // both at once
		return func() { q.end(w) }, nil
	}
	w.gone = true
	q.waiting = slices.DeleteFunc(q.waiting, func(o *waiter) bool { return o == w })
	return nil, ctx.Err()
}

func (q *turns) end(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.running, w.charge); i >= 0 {
		q.running = slices.Delete(q.running, i, i+1)
	}
	q.start()
}

// start lets those begin whose turn it is. q.mu is held.
func (q *turns) start() {
	q.waiting = slices.DeleteFunc(q.waiting, func(w *waiter) bool {
		for _, t := range w.turns {
			if mayStart(t, q.running, q.parallel) {
				q.running = append(q.running, t)
				w.charge, w.gone = t, true
				close(w.begun)
				return true
			}
		}
		return false
	})
}
