// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"context"
	"time"
)

// ending knows whether a container has ended, by asking running.
type ending struct {
	running func() bool

	asked      bool
	delay      time.Duration // until running is asked again
	closedSeen uint64        // of watcher.closed
}

// Running is asked seldom while nothing hints at an end, and in quick succession after the runtime closed the log,
// which comes shortly before the container counts as exited.
const (
	askSeldom = 5 * time.Second
	askFirst  = 100 * time.Millisecond // the log may have been closed just before it was watched
	askSoon   = 5 * time.Millisecond
)

// wait returns when there may be something to read, or with true when the container has ended. What it wrote before may
// not have been read then.
func (e *ending) wait(ctx context.Context, w *watcher) (ended bool, err error) {
	if !e.asked {
		e.asked, e.delay = true, askFirst
		if !e.running() {
			return true, nil
		}
	}
	if n := w.closed.Load(); n != e.closedSeen {
		e.closedSeen, e.delay = n, askSoon
	}
	ask := time.NewTimer(e.delay)
	defer ask.Stop()
	wake, tick := w.events()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-wake:
		return false, nil
	case <-tick:
		return false, nil
	case <-ask.C:
		e.delay = min(2*e.delay, askSeldom)
		return !e.running(), nil
	}
}
