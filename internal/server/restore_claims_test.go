// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/backup"
)

// RS-14: volumes of claims are restored also where their folder is a file system of its own, with what is there staying
// as it is, and nothing is left over.
func TestRestoreClaimsElsewhere(t *testing.T) {
	work, folder := t.TempDir(), t.TempDir()
	if err := unix.Mount("none", folder, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, 0); err != nil {
			t.Error(err)
		}
	})
	for name, text := range map[string]string{
		filepath.Join(work, backup.ClaimsDir, "pvc-1/data/file"): "claimed",
		filepath.Join(work, backup.ClaimsDir, "pvc-2/file"):      "older",
		filepath.Join(folder, "pvc-2/file"):                      "newer",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o640)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(filepath.Join(work, backup.ClaimsDir, "pvc-1/data/file"), 1234, 5678); err != nil {
		t.Fatal(err)
	}
	s, err := stageClaims(work, folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "pvc-1")); err == nil {
		t.Error("it is in place before it is installed")
	}
	var r Restored
	if err := s.install(&r); err != nil {
		t.Fatal(err)
	}
	s.discard()
	if r.Volumes != 1 || len(r.Stayed) != 1 || r.Stayed[0] != filepath.Join(folder, "pvc-2") {
		t.Errorf("%+v", r)
	}
	for name, want := range map[string]string{"pvc-1/data/file": "claimed", "pvc-2/file": "newer"} {
		if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	var is unix.Stat_t
	if err := unix.Stat(filepath.Join(folder, "pvc-1/data/file"), &is); err != nil || is.Uid != 1234 || is.Gid != 5678 || is.Mode&0o777 != 0o640 {
		t.Errorf("owner %d:%d, mode %o, %v", is.Uid, is.Gid, is.Mode, err)
	}
	if all, err := os.ReadDir(folder); err != nil || len(all) != 2 {
		t.Errorf("left over: %v, %v", all, err)
	}
}
