// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// EC-19, IX-01: a container that has ended while its limit is set needs none, be its cgroup gone before the limit's file is opened or
// since; a limit that cannot be set for another reason is told.
func TestRemoved(t *testing.T) {
	for err, want := range map[error]bool{
		fs.ErrNotExist: true,
		&os.PathError{Op: "write", Path: "pids.max", Err: unix.ENODEV}:       true,
		fmt.Errorf("limit: %w", &os.PathError{Op: "open", Err: unix.ENOENT}): true,
		&os.PathError{Op: "write", Path: "pids.max", Err: unix.EINVAL}:       false,
		fmt.Errorf("limit: %w", &os.PathError{Op: "open", Err: unix.EACCES}): false,
	} {
		if got := removed(err); got != want {
			t.Errorf("%v: %t", err, got)
		}
	}
}

// EC-19: the limit of a cgroup that is taken away between the opening of its file and the writing is no fault (seen with a command that
// ended at once); the kernel says ENODEV then.
func TestRemovedInBetween(t *testing.T) {
	host, err := Detect()
	if err != nil || host.V2 || host.Mounts["pids"] == "" {
		t.Skipf("no pids cgroup of version 1 on this machine (%v)", err)
	}
	dir := filepath.Join(host.Mounts["pids"], fmt.Sprintf("wherry-test-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("no cgroup can be made here: %v", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "pids.max"), os.O_WRONLY, 0)
	if err == nil {
		defer f.Close()
	}
	if rerr := os.Remove(dir); err != nil || rerr != nil {
		t.Fatal(err, rerr)
	}
	if _, err := f.WriteString("7"); err == nil || !removed(err) {
		t.Errorf("a limit for a cgroup that is gone: %v", err)
	}
}
