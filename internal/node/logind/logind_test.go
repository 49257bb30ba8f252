// SPDX-License-Identifier: Apache-2.0

package logind

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fake is a logind that does what it is told; late is how often its limit is asked for before a raise has an effect.
type fake struct {
	limit, raised time.Duration
	late          int
	downs         chan bool
	did           []string
	fail          error
}

func (f *fake) say(format string, args ...any) { f.did = append(f.did, fmt.Sprintf(format, args...)) }

func (f *fake) Limit() (time.Duration, error) {
	if f.raised > 0 {
		if f.late--; f.late < 0 {
			f.limit = f.raised
		}
	}
	return f.limit, nil
}

func (f *fake) Raise(to time.Duration) error { f.say("raise %s", to); f.raised = to; return nil }

func (f *fake) Lock() (func(), error) {
	f.say("lock")
	return func() { f.say("release") }, f.fail
}

func (f *fake) Downs() (<-chan bool, error) { return f.downs, nil }
func (f *fake) Close()                      { f.say("close") }

// TestWatch proves PL-32: a shutdown is held up until pods have ended, one that is called off is told, and the next is
// held up again; logind's limit is raised where it is too low.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{limit: 5 * time.Second, late: 2, downs: make(chan bool)}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- watch(ctx, f, 30*time.Second, func(_ context.Context, goes bool) { f.say("down %v", goes) })
		}()
		for _, goes := range []bool{true, false, true} {
			f.downs <- goes
		}
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		want := "raise 30s, lock, down true, release, down false, lock, down true, release, close"
		if got := strings.Join(f.did, ", "); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	})
}

// TestWatchFails proves PL-32: what keeps it from holding a shutdown up is said.
func TestWatchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none := func(context.Context, bool) {}
		low := &fake{limit: 5 * time.Second, late: 100, downs: make(chan bool)}
		if err := watch(t.Context(), low, time.Minute, none); err == nil || !strings.Contains(err.Error(), "for 5s at most, pods may need 1m0s") {
			t.Error(err)
		}
		locked := &fake{limit: time.Hour, fail: errors.New("no"), downs: make(chan bool)}
		if err := watch(t.Context(), locked, time.Minute, none); err == nil || err.Error() != "inhibitor lock: no" {
			t.Error(err)
		}
		gone := &fake{limit: time.Hour, downs: make(chan bool)}
		close(gone.downs)
		if err := watch(t.Context(), gone, time.Minute, none); err == nil || !strings.Contains(err.Error(), "has ended") {
			t.Error(err)
		}
	})
}
