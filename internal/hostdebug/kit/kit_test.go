// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wherryproject/wherry/internal/hostdebug/session"
	"github.com/wherryproject/wherry/internal/runtime/bundle"
)

// What is in a folder is a kit, whatever was in it before; an earlier one that is in use stays as it was.
func TestUnpack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kit")
	for _, left := range []string{dir, dir + ".new"} {
		if err := os.MkdirAll(filepath.Join(left, session.KitRunc), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := Unpack(t.Context(), dir); errors.Is(err, bundle.ErrNotBuilt) {
		t.Skip("this needs the helper programs: run make helpers")
	} else if err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(filepath.Join(dir, session.KitRunc))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := Unpack(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{session.KitRunc, session.KitFirst, session.KitProgram, session.KitToolbox + "/bin/sh"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if info, err := held.Stat(); err != nil || info.Size() == 0 || info.Mode().Perm() != 0o755 {
		t.Errorf("the one in use: %v, %v", info, err)
	}
	if _, err := os.Stat(dir + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what it was made in is left: %v", err)
	}
}
