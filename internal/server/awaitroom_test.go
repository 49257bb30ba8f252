// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wherryproject/wherry/internal/store"
)

// TestAwaitRoomHasTheReserve: RS-02 a server that could not go on, since its disk was full, starts again in the room of the reserve: what fills
// the disk may be a pod's, which nobody else evicts.
func TestAwaitRoomHasTheReserve(t *testing.T) {
	dir := smallDisk(t, "20m")
	held := newReserve(dir, slog.New(slog.DiscardHandler))
	if err := layOut(held.path, reserveBytes); err != nil {
		t.Fatal(err)
	}
	fillUp(t, dir)
	over, cancel := context.WithCancel(t.Context())
	cancel() // whoever waits is told to end at once
	if err := AwaitRoom(over, dir, 0, slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("with a reserve: %v", err)
	}
	fillUp(t, dir)
	if err := AwaitRoom(over, dir, 0, slog.New(slog.DiscardHandler)); !errors.Is(err, context.Canceled) {
		t.Errorf("without a reserve, and without room: %v", err)
	}
}

// TestVainStartHasTheReserve: RS-02 a start in vain is followed by one that has all there is, also where there was more room than the least: what
// it lacked is not known. Of a reserve that was never whole nobody expects room.
func TestVainStartHasTheReserve(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	held := newReserve(dir, log)
	if err := os.WriteFile(held.path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if newReserve(dir, log).held {
		t.Error("an empty file is taken for the reserve")
	}
	if err := layOut(held.path, reserveBytes); err != nil {
		t.Fatal(err)
	}
	if !newReserve(dir, log).held {
		t.Error("the reserve is not seen")
	}
	synctest.Test(t, func(t *testing.T) {
		if err := AwaitRoom(t.Context(), dir, 1, log); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Stat(held.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the reserve is still there: %v", err)
	}
}

// TestStartedInVain: RS-02 a server that took its own place on a full disk waits for room when it cannot start in what there is, whichever part
// says so; one that somebody started says so and ends, and a start that failed for another reason ends both.
func TestStartedInVain(t *testing.T) {
	full := fmt.Errorf("records: %w", &os.PathError{Op: "write", Path: "/d/.store.1", Err: syscall.ENOSPC})
	for name, c := range map[string]struct {
		err   error
		again bool
		vain  bool
	}{
		"a file could not be written": {full, true, true},
		"the store was too large":     {fmt.Errorf("store: %w", store.ErrDiskFull), true, true},
		"refused":                     {&Refusal{Code: ExitDiskFull, What: "only 3 MiB are free"}, true, true},
		"the runtime's words":         {errors.New("rpc error: mkdir /d/runtime: no space left on device"), true, true},
		"somebody started it":         {full, false, false},
		"another reason":              {&Refusal{Code: ExitPortTaken}, true, false},
	} {
		got, is := errors.AsType[*AgainError](startedInVain(c.err, c.again))
		if is != c.vain || is && (!got.Vain || !errors.Is(got, c.err)) {
			t.Errorf("%s: again %v, want %v (%v)", name, is, c.vain, got)
		}
	}
	if err := startedInVain(nil, true); err != nil {
		t.Error(err)
	}
	if vainPause(1) != time.Second || vainPause(500) != 10*time.Second {
		t.Errorf("pauses of %v and %v", vainPause(1), vainPause(500))
	}
}
