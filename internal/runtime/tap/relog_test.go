// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// EC-16: whoever takes up a full ring whose output is all in the log may let the oldest of it go before its log has begun to read:
// the log goes on with what is new, and takes nothing of what has been overwritten for output.
func TestLogBegunBehindTheRing(t *testing.T) {
	r, _ := testRing(t, 4*chunk)
	numbered := func(from, to int) string {
		var b strings.Builder
		for i := range to - from {
			fmt.Fprintf(&b, "line %d of many, with something to make it longer\n", from+i)
		}
		return b.String()
	}
	for i := range 400 {
		put(r, stdout, numbered(40*i, 40*i+40))
	}
	head := r.h.head.Load()
	for s := range r.h.logged {
		r.h.logged[s].Store(head)
	}
	spare := &sync.Pool{}
	tap := newTap("counter", Spec{}, r, slog.New(slog.DiscardHandler), spare)
	tap.logs, tap.pumps = newLog(r, spare), 0

	c := r.start()
	want := numbered(16000, 17000)
	put(r, stdout, want)

	var got strings.Builder
	for last := false; !last; {
		var pieces []piece
		var ok bool
		pieces, last, ok = tap.unlogged(c)
		if !ok {
			t.Fatal("the tap was let go")
		}
		for _, p := range pieces {
			if end := p.at + uint64(len(p.text)); end > head {
				got.Write(p.text[max(p.at, head)-p.at:])
			}
		}
	}
	if got.String() != want {
		t.Errorf("%d bytes for %d, beginning with %.150q", got.Len(), len(want), got.String())
	}
}
