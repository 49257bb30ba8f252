// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/test/hangfs"
)

// RS-08: a file system that does not answer, with another one mounted on a folder of it, can be unmounted.
func TestUnmountOfWhatHangs(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "volume")
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	fs, err := hangfs.Mount(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fs.End)
	if err := unix.Mount("inner", filepath.Join(at, "dir"), "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	fs.Hang()
	done := make(chan error, 1)
	go func() { done <- unmountBelow(dir) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("unmounting waits for the file system")
	}
	if err := os.Remove(at); err != nil {
		t.Error(err)
	}
}
