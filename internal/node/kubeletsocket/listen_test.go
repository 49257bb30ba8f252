// SPDX-License-Identifier: Apache-2.0

package kubeletsocket

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A socket that somebody serves is left alone, what a killed process has left is replaced, and nothing stays at the
// end; also where the path is longer than the kernel takes.
func TestListen(t *testing.T) {
	folder := filepath.Join(t.TempDir(), strings.Repeat("long", 30), "device-plugins")
	first, err := Listen(folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(folder); !errors.Is(err, ErrOccupied) ||
		!strings.Contains(err.Error(), filepath.Join(folder, Name)) {
		t.Errorf("beside another: %v", err)
	}
	if err := first.(*listener).Listener.Close(); err != nil { // as kill -9 does
		t.Fatal(err)
	}
	second, err := Listen(folder)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dial(t.Context(), filepath.Join(folder, Name))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	for range 2 {
		_ = second.Close()
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
