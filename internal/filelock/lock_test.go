// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// A lock at work is refused at once; one whose holder is gone is waited for, but not for ever.
func TestTake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, second := open(t, path), open(t, path)
	if err := Take(first, 0, Nobody); err != nil {
		t.Fatal(err)
	}
	if err := Take(second, time.Hour, func() bool { return true }); !errors.Is(err, ErrHeld) {
		t.Errorf("beside a holder at work: %v", err)
	}
	if err := Take(second, 2*tick, Nobody); !errors.Is(err, ErrHeld) {
		t.Errorf("when patience is over: %v", err)
	}
	asked := 0
	left := func() bool { // as a child that executes its program at last
		if asked++; asked == 2 {
			if err := unix.Flock(int(first.Fd()), unix.LOCK_UN); err != nil {
				t.Error(err)
			}
		}
		return false
	}
	if err := Take(second, time.Hour, left); err != nil || asked != 2 {
		t.Errorf("after %d questions: %v", asked, err)
	}
}

// What is no lock at all is said.
func TestTakeOfNothing(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "lock"))
	f.Close()
	if err := Take(f, time.Hour, Nobody); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("%v", err)
	}
}
