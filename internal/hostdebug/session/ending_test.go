// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wherryproject/wherry/internal/hostdebug/guard"
	"github.com/wherryproject/wherry/internal/hostdebug/ocispec"
)

// A session whose process is told to end says so, whoever hears it first; and one that is late says that.
func TestCalledOff(t *testing.T) {
	signalled := &Signalled{syscall.SIGTERM}
	heard, words := signalled.ended()
	for _, test := range []struct {
		cause error
		code  int
		why   string
	}{
		{signalled, heard, words.Error()},
		{fmt.Errorf("x: %w", signalled), 143, "the session has ended: wherry was told to end (terminated)"},
		{&Ended{"it is late"}, killed, "the session has ended: it is late"},
		{context.Canceled, 0, ""},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if code, why := calledOff(ctx); why != nil {
			t.Errorf("before its end: %d, %v", code, why)
		}
		cancel(test.cause)
		code, why := calledOff(ctx)
		got := ""
		if why != nil {
			got = why.Error()
		}
		if code != test.code || got != test.why {
			t.Errorf("%v: %d, %q", test.cause, code, got)
		}
	}
}

// What comes before the command has a bound of its own, which is over once the command runs.
func TestPrepared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late, _ := prepared(t.Context(), time.Minute)
		good, ready := prepared(t.Context(), time.Minute)
		free, _ := prepared(t.Context(), 0)
		ready()
		time.Sleep(time.Hour)
		if code, why := calledOff(late); code != killed || why == nil {
			t.Errorf("%d, %v", code, why)
		}
		if good.Err() != nil || free.Err() != nil {
			t.Errorf("%v, %v", context.Cause(good), context.Cause(free))
		}
	})
}

// DA-09: the end that others see of a session is that of its command, not of what it took to begin.
func TestBegun(t *testing.T) {
	dir := t.TempDir()
	ready := false
	s := &session{id: "0123456789ab", machine: guard.Machine{Run: filepath.Join(dir, "run")},
		ready: func() { ready = true }, since: time.Now().UTC().Add(-10 * time.Minute), req: Request{TTL: time.Minute}}
	if err := s.machine.Make(s.id); err != nil {
		t.Fatal(err)
	}
	if err := s.record(s.since); err != nil {
		t.Fatal(err)
	}
	until := func() time.Time {
		all, err := s.machine.Sessions()
		if err != nil || len(all) != 1 || !all[0].Since.Equal(s.since) {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[0].Until
	}
	if got := until(); !got.Equal(s.since.Add(time.Minute)) {
		t.Errorf("until %s", got)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // it ends with this function, and sees no record
		err := privateMounts(s.machine.Dir(s.id))
		if err == nil {
			s.begun()
		}
		done <- err
	}()
	if err := <-done; errors.Is(err, os.ErrPermission) {
		t.Skipf("a file system cannot be mounted here: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if got := until(); got.Before(time.Now()) || !ready {
		t.Errorf("until %s, ready %v", got, ready)
	}
	if left, err := os.ReadDir(s.machine.Dir(s.id)); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

// A session in the network of a container does not say that its pod has ended when that container has.
func TestWithoutKeeper(t *testing.T) {
	for name, want := range map[string]string{"": "its pod has ended",
		"app": "container app, in whose network it was, has ended"} {
		if got := (Request{KeeperName: name}).withoutKeeper(); got.Why != want {
			t.Errorf("%q: %q", name, got.Why)
		}
	}
}

// DA-04: a session that its memory limit has ended says so, and one of whose programs it has ended too.
func TestOutOfMemory(t *testing.T) {
	for _, c := range []struct {
		limit       int64
		code, kills int
		err, note   string
	}{
		{64 << 20, killed, 0, "", ""},
		{64 << 20, killed, 1, "the session has ended: it has reached its memory limit of 64Mi (--memory)", ""},
		{1_000_000, 0, 1, "", "one of its programs was killed: it has reached its memory limit of 1000000 (--memory)"},
		{1500 << 10, 1, 3, "", "3 of its programs were killed: it has reached its memory limit of 1500Ki (--memory)"},
		{0, killed, 1, "the session has ended: the machine has run out of memory", ""},
	} {
		note := ""
		s := &session{req: Request{Options: ocispec.Options{Memory: c.limit}, Note: func(text string) { note = text }}}
		got := ""
		if err := s.outOfMemory(c.code, c.kills); err != nil {
			got = err.Error()
		}
		if got != c.err || note != c.note {
			t.Errorf("%+v: %q, %q", c, got, note)
		}
	}
}

// DA-01: a session that is stopped while it starts, as soon as others see it, ends by that and not by the signal, and
// can say who has stopped it.
func TestSignalDuringStart(t *testing.T) {
	ctx, stopListening := untilSignal(t.Context())
	defer stopListening()
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if code, why := calledOff(ctx); code != 128+int(syscall.SIGTERM) || why == nil {
		t.Errorf("%d, %v", code, why)
	}
}
