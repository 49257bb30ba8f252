// SPDX-License-Identifier: Apache-2.0

package podcert

import (
	"testing"
	"time"
)

// TestNext proves PL-05: a certificate is asked for once, anew when its signer says so and not sooner than a failure
// allows; a refusal is for good, and who reads events learns of what is late.
func TestNext(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	in := func(d time.Duration) time.Time { return now.Add(d) }
	for _, c := range []struct {
		name string
		f    facts
		want step
	}{
		{"at first", facts{}, step{ask: true}},
		{"under way", facts{asked: true, askedAt: now}, step{again: in(pending)}},
		{"not answered for long", facts{asked: true, askedAt: in(-pending)}, step{reportPending: true}},
		{"not answered, and told", facts{asked: true, askedAt: in(-time.Hour), reportedPending: true}, step{}},
		{"after a failure", facts{notYet: in(time.Second)}, step{again: in(time.Second)}},
		{"the failure is over", facts{notYet: in(0)}, step{ask: true}},
		{"refused", facts{refused: true}, step{}},
		{"refused in its time", facts{refused: true, has: true, renew: in(-time.Hour), ends: in(-time.Minute)}, step{}},
		{"fresh", facts{has: true, renew: in(time.Hour), ends: in(2 * time.Hour)}, step{again: in(time.Hour)}},
		{"due", facts{has: true, renew: in(0), ends: in(time.Hour)}, step{ask: true, again: in(overdue)}},
		{"due and asked", facts{has: true, asked: true, renew: in(-time.Minute), ends: in(time.Hour)}, step{again: in(overdue - time.Minute)}},
		{"due after a failure", facts{has: true, renew: in(-time.Minute), ends: in(time.Hour), notYet: in(time.Second)}, step{again: in(time.Second)}},
		{"overdue", facts{has: true, asked: true, renew: in(-overdue), ends: in(time.Hour)}, step{reportOverdue: true, again: in(time.Hour)}},
		{"overdue and told", facts{has: true, asked: true, renew: in(-overdue), ends: in(time.Hour), reportedOverdue: true}, step{again: in(time.Hour)}},
		{"ended", facts{has: true, asked: true, renew: in(-time.Hour), ends: in(0), reportedOverdue: true}, step{reportEnd: true}},
		{"ended and told", facts{has: true, asked: true, renew: in(-time.Hour), ends: in(-time.Hour), reportedOverdue: true, reportedEnd: true}, step{}},
	} {
		if got := next(c.f, now); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestBackOff(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 40: lastRetry} {
		if got := backOff(failures); got != want {
			t.Errorf("%d failures: %v, want %v", failures, got, want)
		}
	}
}
