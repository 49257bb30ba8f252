// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Whoever says that there is a new authority is heard after a while, and not more often; without an identity, or shortly
// before it is renewed, nobody is waited for.
func TestHurry(t *testing.T) {
	for _, test := range []struct {
		name  string
		hurry time.Duration // after the beginning; 0: nobody does
		wait  time.Duration
		has   bool
		want  time.Duration
	}{
		{"nobody", 0, time.Hour, true, time.Hour},
		{"at once", time.Second, time.Hour, true, hurryPause},
		{"later", 20 * time.Minute, time.Hour, true, 20 * time.Minute},
		{"nearly over", time.Second, time.Minute, true, time.Minute},
		{"none yet", time.Second, time.Hour, false, time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			k, began := New(Cluster{}, "n1", nil), time.Now()
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
