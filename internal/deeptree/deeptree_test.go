// SPDX-License-Identifier: Apache-2.0

package deeptree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/deeptree"
)

// nest makes folders within one another, which no path could name, with a file in some.
func nest(t *testing.T, dir string, levels int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for level := range levels {
		if err := unix.Mkdirat(at, "d", 0o700); err != nil {
			t.Fatal(err)
		}
		if level%1000 == 0 {
			if err := unix.Mknodat(at, "file", unix.S_IFREG|0o600, 0); err != nil {
				t.Fatal(err)
			}
		}
		next, err := unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(at)
		at = next
	}
	unix.Close(at)
}

func remove(t *testing.T, path string) error {
	t.Helper()
	parent, err := os.Open(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	defer parent.Close()
	return deeptree.Remove(parent, filepath.Base(path))
}

// RS-08: folders that are nested deeper than a process may have files open, and than a path may be long, are removed.
func TestDeep(t *testing.T) {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	few := old
	few.Cur = 256
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &old) })
	dir := filepath.Join(t.TempDir(), "dir")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".removing-1"), nil, 0o600); err != nil { // as if by a removal before
		t.Fatal(err)
	}
	nest(t, dir, 10_000)
	if err := remove(t, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("still there: %v", err)
	}
}

// RS-08: what is not deep is removed too: files, links without what they point at, wide folders; and what is not there.
func TestRemove(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(dir, "tree")
	for _, sub := range []string{"a/b/c", "a/empty", "wide"} {
		if err := os.MkdirAll(filepath.Join(tree, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1000 {
		if err := os.WriteFile(filepath.Join(tree, "wide", strings.Repeat("x", i%200+1)+string(rune('a'+i%26))), nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir, filepath.Join(tree, "a", "link")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := remove(t, tree); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(tree); !os.IsNotExist(err) {
		t.Errorf("still there: %v", err)
	}
	if _, err := os.Lstat(kept); err != nil {
		t.Error(err)
	}
}
