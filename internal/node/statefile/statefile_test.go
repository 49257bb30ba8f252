// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is written is read, whole or as it was before; a folder that is gone and a file that is damaged are told apart.
func TestReplaced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	var got map[string]int
	if err := Read(file, &got); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing is there: %v", err)
	}
	for n := range 2 {
		if err := Write(file, map[string]int{"n": n}); err != nil {
			t.Fatal(err)
		}
		if err := Read(file, &got); err != nil || got["n"] != n {
			t.Errorf("%v, %v, want %d", got, err, n)
		}
	}
	if err := Write(file, func() {}); err == nil {
		t.Error("a function is no JSON")
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := Read(file, &got); err != nil || got["n"] != 1 {
		t.Errorf("after a write that failed: %v, %v", got, err)
	}
	if err := Write(filepath.Join(filepath.Dir(file), "gone", "x"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a folder: %v", err)
	}
	if err := os.WriteFile(file, []byte(`{"n":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Read(file, &got); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("damaged: %v", err)
	}
}
