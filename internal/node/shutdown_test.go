// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"testing"

	"github.com/wherryproject/wherry/internal/node/shutdown"
)

// TestCalledOff: whoever waits for pods to end hears that it is called off, a drain whose turn comes after that ends nothing, and the next
// drain begins anew (PL-32).
func TestCalledOff(t *testing.T) {
	var e ending
	if e.callOff() || e.is() {
		t.Error("nothing to call off was called off")
	}
	off, first := e.begin()
	same, again := e.begin()
	if !first || again || off != same || !e.is() {
		t.Errorf("two drains: first %v, second %v, one channel %v", first, again, off == same)
	}
	if !e.callOff() || e.callOff() || e.is() {
		t.Error("it is called off once")
	}
	select {
	case <-off:
	default:
		t.Error("who waits does not hear of it")
	}
	if err := new(Agent).endGroup(t.Context(), off, shutdown.Group{}); !errors.Is(err, errCalledOff) {
		t.Errorf("a drain whose turn comes late: %v", err)
	}
	if next, first := e.begin(); !first || next == off {
		t.Error("the next drain is the one that was called off")
	}
}
