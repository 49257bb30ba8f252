// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/wherryproject/wherry/internal/leaktest"
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

// watched says when something was written to it.
type watched struct{ text chan string }

func (w watched) Write(p []byte) (int, error) {
	w.text <- string(p)
	return len(p), nil
}

// PL-09: while the runtime opens a log anew, nothing is written: a file that was renamed is whole when the runtime has closed it, which is
// what its readers wait for. Where the runtime cannot open it, it stays the one that is written.
func TestReopenedLogIsWhole(t *testing.T) {
	defer leaktest.None(t)
	dir := t.TempDir()
	taps := testTaps(t, dir)
	s := container(t, taps, dir, false)
	theirs := open(t, s.spec.Stdout, os.O_RDONLY)
	defer theirs.Close()
	shown, done := watched{make(chan string, 8)}, make(chan error, 1)
	go func() { done <- taps.Attach(t.Context(), "c", Options{Stdout: shown}, s, nil) }()
	print := func(line string) {
		if _, err := io.WriteString(s.out, line); err != nil {
			t.Error(err)
		}
		if got := <-shown.text; got != line {
			t.Errorf("%q, want %q", got, line)
		}
	}
	print("before\n")
	refused := errors.New("not running")
	if err := taps.ReopenLog("c", func() error { return refused }); !errors.Is(err, refused) {
		t.Errorf("the runtime's error is lost: %v", err)
	}
	if err := os.Rename(s.spec.Log, s.spec.Log+".1"); err != nil {
		t.Fatal(err)
	}
	if err := taps.ReopenLog("c", func() error {
		print("meanwhile\n")
		if err := os.WriteFile(s.spec.Log, nil, 0o640); err != nil { // the runtime has opened it, but its answer is lost
			t.Error(err)
		}
		return errors.New("no answer")
	}); err != nil {
		t.Fatal(err)
	}
	s.end()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(theirs); err != nil { // its end is that of the log, too
		t.Error(err)
	}
	taps.Stop()
	was, err := os.ReadFile(s.spec.Log + ".1")
	if err != nil || strings.Contains(string(was), "meanwhile") {
		t.Errorf("the renamed file goes on: %q, %v", was, err)
	}
	is, err := os.ReadFile(s.spec.Log)
	if text := printed(string(was) + string(is)); err != nil || text != "before\nmeanwhile\n" {
		t.Errorf("both have %q, %v", text, err)
	}
}
