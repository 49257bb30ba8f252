// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/leaktest"
)

// A container for which there was no room for a tap may run without one: a later process does not take it for a tapped
// one whose output has ended.
func TestPassingWithoutRoom(t *testing.T) {
	defer leaktest.None(t)
	dir := t.TempDir()
	ring := filepath.Join(dir, "c", ringFile)
	if err := os.MkdirAll(ring+".new", 0o700); err != nil { // stands for a disk without room
		t.Fatal(err)
	}
	s := Spec{Stdout: filepath.Join(dir, "c", "stdout"), Stderr: filepath.Join(dir, "c", "stderr"), FromNow: true}
	for _, path := range s.paths() {
		if err := unix.Mkfifo(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := testTaps(t, dir).Start("c", s, func() error { return errors.New("it was created") }); err == nil ||
		strings.Contains(err.Error(), "created") {
		t.Errorf("a container without room for a tap: %v", err)
	}
	if err := os.Remove(ring + ".new"); err != nil {
		t.Fatal(err)
	}
	taps := testTaps(t, dir)
	taps.Recover()
	taps.Stop()
	if taps.Passes("c") {
		t.Error("a container that has no tap is taken for one that has")
	}
}
