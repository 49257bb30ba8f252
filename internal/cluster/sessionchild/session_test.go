// SPDX-License-Identifier: Apache-2.0

package sessionchild

import (
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// A reader who does not read holds up a line, and what comes after it, no longer than it may.
func TestPrint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := io.Pipe()
		began := time.Now()
		lines{to, true}.print("wherry: over")
		if took := time.Since(began); took != printTime {
			t.Errorf("after %s", took)
		}
		text := make([]byte, 100)
		if n, err := from.Read(text); err != nil || string(text[:n]) != "wherry: over\r\n" {
			t.Errorf("%q, %v", text[:n], err)
		}
	})
}
