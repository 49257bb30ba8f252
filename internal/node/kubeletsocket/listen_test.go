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
	if err := Remove(folder); err != nil {
		t.Error(err)
	}
	if c, err = Dial(t.Context(), filepath.Join(folder, Name)); err != nil {
		t.Fatal("a socket that is served was removed:", err)
	}
	c.Close()
	for range 2 {
		_ = second.Close()
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// What is left of a killed process is removed; what is others' stays.
func TestRemove(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "device-plugins")
	l, err := Listen(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.(*listener).Listener.Close(); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(folder, "vendor.sock")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Remove(folder); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Remove(folder); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the empty folder is left: %v", err)
	}
}
