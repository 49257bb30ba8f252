// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"hash/fnv"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	_ "unsafe" // for go:linkname
)

// trace is what was asked of the store and of the runtime in a world, in which order and at what time: two runs of a seed are the same as far as
// theirs are.
type trace struct {
	log *slog.Logger

	mu    sync.Mutex
	count int
	sum   uint64
}

// note adds an operation.
func (t *trace) note(where, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := fnv.New64a()
	fmt.Fprintln(h, t.sum, time.Now().UnixNano(), where, what)
	t.count++
	t.sum = h.Sum64()
	// Where two runs part, the first line that differs says what did: a number that was drawn, or a piece of memory.
	t.log.Debug(where, "operation", t.count, "what", what, "draw", cheaprand(), "at", fmt.Sprintf("%p", new([48]byte)))
}

// cheaprand is the runtime's own: the next number of its generator, by which goroutines and timers of one instant are put in order.
//
//go:linkname cheaprand runtime.cheaprand
func cheaprand() uint32

// String is the whole in short.
func (t *trace) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("%d operations, trace %016x", t.count, t.sum)
}

// Two traces are alike if the same was asked in the same order at the same instants.
func TestTrace(t *testing.T) {
	of := func(pause time.Duration, what ...string) (text string) {
		synctest.Test(t, func(*testing.T) {
			tr := &trace{log: slog.New(slog.DiscardHandler)}
			for _, w := range what {
				tr.note("store", w)
			}
			time.Sleep(pause)
			tr.note("runtime", "last")
			text = tr.String()
		})
		return text
	}
	first := of(1, "a", "b")
	if again := of(1, "a", "b"); again != first {
		t.Errorf("the same: %s, not %s", again, first)
	}
	for name, other := range map[string]string{"in another order": of(1, "b", "a"), "later": of(2, "a", "b"), "less": of(1, "a"), "more": of(1, "a", "b", "b"), "something else": of(1, "a", "c")} {
		if other == first {
			t.Errorf("%s: the trace is the same", name)
		}
	}
}
