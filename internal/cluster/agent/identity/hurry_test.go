// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Whoever says that there is a new authority is heard after a while, and not more often; without an identity, or shortly
// before it is renewed, nobody is waited for. Where it was said in vain, it is heard later.
func TestHurry(t *testing.T) {
	for _, test := range []struct {
		name  string
		hurry time.Duration // after the beginning; 0: nobody does
		wait  time.Duration
		has   bool
		vain  int // how often it was in vain before
		want  time.Duration
	}{
		{"nobody", 0, time.Hour, true, 0, time.Hour},
		{"at once", time.Second, time.Hour, true, 0, hurryPause},
		{"later", 20 * time.Minute, time.Hour, true, 0, 20 * time.Minute},
		{"once in vain", time.Second, time.Hour, true, 1, 2 * hurryPause},
		{"often in vain", time.Second, time.Hour, true, 99, mostCalm},
		{"nearly over", time.Second, time.Minute, true, 0, time.Minute},
		{"none yet", time.Second, time.Hour, false, 0, time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			k, began := New(Cluster{}, "n1", nil), time.Now()
			for range test.vain {
				k.calm = calmFor(k.calm, true)
			}
			if test.hurry > 0 {
				time.AfterFunc(test.hurry, func() {
					k.Hurry()
					k.Hurry()
				})
			}
			if !k.pause(t.Context(), test.wait, test.has) || time.Since(began) != test.want {
				t.Errorf("%s: after %s", test.name, time.Since(began))
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if k.pause(ctx, test.wait, test.has) {
				t.Errorf("%s: goes on after its end", test.name)
			}
		})
	}
}

// A new authority, and a renewal that nobody has hurried, ends the calm.
func TestCalmFor(t *testing.T) {
	if got := calmFor(mostCalm, false); got != hurryPause {
		t.Errorf("%s", got)
	}
}
