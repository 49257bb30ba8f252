// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/wherryproject/wherry/internal/leaktest"
)

// EC-16: of a container whose output nobody wants in a log, as that of an image exec, clients see all from the first
// byte, also what it prints while no server runs. With nobody attached nothing holds it up, however much it prints.
func TestTapWithoutLog(t *testing.T) {
	defer leaktest.None(t)
	dir := t.TempDir()
	taps := testTaps(t, dir)
	s := container(t, taps, dir, false, func(s *Spec) { s.Log = "" })
	_, _ = io.WriteString(s.out, "one\n")
	first := seen(t, taps, s)
	taps.Stop()
	if got := first(); got != ErrStopped.Error() {
		t.Errorf("a client of a runtime that stops gets %q", got)
	}
	_, _ = io.WriteString(s.out, "two\n") // stays in the pipe
	_, _ = io.WriteString(s.err, "an error")
	taps = testTaps(t, dir)
	taps.Recover()
	second := seen(t, taps, s)
	_, _ = io.WriteString(s.out, "three\n")
	s.end()
	for i, got := range []string{second(), seen(t, taps, s)()} {
		if got != "one\ntwo\nthree\n|an error" {
			t.Errorf("client %d sees %q", i, got)
		}
	}
	taps.Stop()

	dir = t.TempDir()
	taps = testTaps(t, dir)
	defer taps.Stop()
	s = container(t, taps, dir, false, func(s *Spec) { s.Log = "" })
	much := bytes.Repeat([]byte("0123456789abcde\n"), 3*ringSize/16)
	if n, err := s.out.Write(much); n != len(much) || err != nil {
		t.Fatal(n, err)
	}
	s.end()
	if got := seen(t, taps, s)(); !strings.HasSuffix(got, " of earlier output not shown]\n") ||
		!strings.HasPrefix(got, "0123456789abcde\n0") && !strings.Contains(got, "\n0123456789abcde\n") {
		t.Errorf("%d bytes, which end with %.80q", len(got), got[max(0, len(got)-80):])
	}
}

// EC-16, SC-19: the client that an image exec was made for is gone with the server that it was on the way to: the next
// one waits for it no more, which would hold up the end of what is killed then, and with it that server's start.
func TestClientGoneWithServer(t *testing.T) {
	defer leaktest.None(t)
	for log, waits := range map[string]bool{"": false, "log": true} {
		dir := t.TempDir()
		taps := testTaps(t, dir)
		s := container(t, taps, dir, false, func(s *Spec) {
			if s.Awaited = true; log == "" {
				s.Log = ""
			}
		})
		if !taps.live["c"].awaits() {
			t.Errorf("log %q: before anybody came, nobody is waited for", log)
		}
		taps.Stop()
		taps = testTaps(t, dir)
		taps.Recover()
		if got := taps.live["c"].awaits(); got != waits {
			t.Errorf("log %q: by the next server somebody is waited for: %t", log, got)
		}
		s.end()
		taps.Stop()
	}
}

// A client has room for what it is given while there is something, and none while it waits.
func TestWaitingTakesNoRoom(t *testing.T) {
	r, _ := testRing(t, 4*chunk)
	spare := &sync.Pool{}
	tap := newTap("quiet", Spec{}, r, slog.New(slog.DiscardHandler), spare)
	tap.pumps = 0 // there will be no more
	c, of := tap.add(r.start(), [2]uint64{})
	put(r, stdout, "hello")
	in := lent{spare: spare}
	if text, s, _, err := tap.await(t.Context(), c, of, &in); string(text) != "hello" || s != stdout || err != nil {
		t.Errorf("%q of %s, %v", text, s, err)
	}
	if text, _, _, err := tap.await(t.Context(), c, of, &in); len(text) > 0 || err != nil || in.have != nil {
		t.Errorf("%q, %v; it has room: %t", text, err, in.have != nil)
	}
}
