// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestTurnstile: so many enter at once, the others when one has left or its time is over, each pod for itself; nothing is kept of
// a pod that has none (EC-17).
func TestTurnstile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := turnstile{atOnce: stopsAtOnce, turn: stopTurn}
		begin := time.Now()
		enter := func(pod string) (leave func(), after time.Duration) {
			leave, err := gate.enter(context.Background(), types.UID(pod))
			if err != nil {
				t.Fatal(err)
			}
			return leave, time.Since(begin)
		}
		var leaves []func()
		for range stopsAtOnce {
			leave, after := enter("a")
			if after != 0 {
				t.Fatalf("one of the first waits %v", after)
			}
			leaves = append(leaves, leave)
		}
		if leave, after := enter("b"); after != 0 {
			t.Errorf("another pod waits %v", after)
		} else {
			leave()
		}
		time.AfterFunc(100*time.Millisecond, leaves[0])
		leave, after := enter("a")
		if after != 100*time.Millisecond {
			t.Errorf("the next enters after %v, not when one has left", after)
		}
		leaves[0] = leave
		cut, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		if _, err := gate.enter(cut, "a"); err == nil {
			t.Error("one that was called off has entered")
		}
		leave, after = enter("a")
		if after != stopTurn {
			t.Errorf("the next enters after %v, not when the turn of those who stay is over", after)
		}
		for _, leave := range append(leaves, leave) {
			leave()
		}
		if len(gate.pods) != 0 {
			t.Errorf("%d pods are kept", len(gate.pods))
		}
	})
}
