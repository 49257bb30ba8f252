// SPDX-License-Identifier: Apache-2.0

package ondemand

import (
	"testing"
	"time"
)

// TestRestart: WL-06, a controller that keeps ending is left alone longer and longer, and one that has worked well is
// not.
func TestRestart(t *testing.T) {
	failures, pause := 0, time.Duration(0)
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		if failures, pause = restart(failures, time.Second); pause != want*time.Second {
			t.Errorf("after %d failures: %v, want %v", failures, pause, want*time.Second)
		}
	}
	if failures, pause = restart(failures, goodLife); failures != 1 || pause != firstRestart {
		t.Errorf("after a good life: %d failures, %v", failures, pause)
	}
}
