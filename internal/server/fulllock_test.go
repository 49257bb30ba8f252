// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLockOnAFullDisk: RS-02, RS-08 a folder on whose disk not a byte is left is locked all the same, by a server that would make room or a
// purge, also where no server has ever locked it.
func TestLockOnAFullDisk(t *testing.T) {
	for name, before := range map[string]bool{"locked before": true, "never locked": false} {
		t.Run(name, func(t *testing.T) {
			dir := smallDisk(t, "64k")
			if before {
				held, err := lockFolder(dir)
				if err != nil {
					t.Fatal(err)
				}
				if err := held.release(); err != nil {
					t.Fatal(err)
				}
				if pid, ok := LockHolder(dir); ok {
					t.Errorf("nobody holds it, and it names %d", pid)
				}
			}
			fillUp(t, dir)
			held, err := lockFolder(dir)
			if err != nil {
				t.Fatal(err)
			}
			if pid, ok := LockHolder(dir); ok != before || ok && pid != os.Getpid() {
				t.Errorf("it names %d, %v", pid, ok)
			}
			if !Locked(dir) {
				t.Error("it is not held")
			}
			if err := held.release(); err != nil || Locked(dir) {
				t.Errorf("released: %v, held still: %v", err, Locked(dir))
			}
		})
	}
}

// endless are zeros without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// smallDisk is a folder with a file system of its own.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// fillUp leaves not a byte of a folder's disk.
func fillUp(t *testing.T, dir string) {
	t.Helper()
	fill, err := os.OpenFile(filepath.Join(dir, "fill"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer fill.Close()
	if _, err := io.Copy(fill, endless{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk does not get full: %v", err)
	}
}
