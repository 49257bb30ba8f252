// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// RS-08: a purge that was cut off while it removed the data folder can be repeated: as long as anything is in the folder, it says whose
// it is. Each entry is in the way once, so that whatever the order is, something would have been removed before it.
func TestPurgeCanBeRepeated(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("what is in the way is a mount point; it needs root")
	}
	dir := t.TempDir()
	var names []string
	for i := range 20 {
		names = append(names, filepath.Join(dir, fmt.Sprintf("entry-%d", i)))
	}
	for _, inTheWay := range names {
		for _, name := range names {
			if err := os.MkdirAll(name, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := checkVersion(dir, stamp{Format: format}); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("tmpfs", inTheWay, "tmpfs", 0, "size=4k"); err != nil {
			t.Skipf("no file system can be mounted here: %v", err)
		}
		err := removeDataFolder(dir)
		if uerr := unix.Unmount(inTheWay, unix.MNT_DETACH); uerr != nil {
			t.Fatal(uerr)
		}
		if err == nil {
			t.Errorf("the folder with the mount point %s was removed", inTheWay)
		}
		if !ours(dir) {
			t.Errorf("what is left, with %s in it, does not say whose it is", inTheWay)
		}
	}
	if err := removeDataFolder(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder is still there")
	}
}
