// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"math"
	"testing"
	"time"
)

// TestSeconds (RS-01): no number of seconds becomes a duration of the other sign, nor does the sum of two.
// ATTACK B18.
func TestSeconds(t *testing.T) {
	for n, want := range map[int64]time.Duration{0: 0, 30: 30 * time.Second, -1: -time.Second, math.MaxInt32: math.MaxInt32 * time.Second} {
		if got := Seconds(n); got != want {
			t.Errorf("%d: %v", n, got)
		}
	}
	for _, n := range []int64{math.MaxInt64, math.MaxInt64 - 1, MostSeconds + 1, 9223372037, 1 << 40} {
		if got := Seconds(n); got <= 0 || got+got <= 0 {
			t.Errorf("%d: %v", n, got)
		}
		if got := Seconds(-n); got >= 0 {
			t.Errorf("%d: %v", -n, got)
		}
	}
}
