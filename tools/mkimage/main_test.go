// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseFile(t *testing.T) {
	src := filepath.Join(t.TempDir(), "src")
	if err := os.WriteFile(src, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	for arg, want := range map[string]fs.FileMode{
		src + "=/app":      0,
		src + "=/app:0640": 0o640,
		src + "=/app:4755": fs.ModeSetuid | 0o755,
		"=/tmp:1777":       fs.ModeDir | fs.ModeSticky | 0o777,
	} {
		f, err := parseFile(arg)
		if err != nil || f.Mode != want {
			t.Errorf("%s: mode %v (%v), want %v", arg, f.Mode, err, want)
		}
		if !want.IsDir() && (f.Path != "/app" || string(f.Data) != "data") {
			t.Errorf("%s: %q at %s", arg, f.Data, f.Path)
		}
	}
	for arg, want := range map[string]string{"src": "want SRC=DST", src + "=/app:rwx": "not octal", "/not/there=/app": "no such file"} {
		if _, err := parseFile(arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", arg, err, want)
		}
	}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	args := func(out string) []string {
		return []string{"-o", out, "-ref", "wherry.dev/x:1", "-file", "=/etc", "-entrypoint", "/app", "-label", "a=b", "-env", "C=d"}
	}
	a, b := filepath.Join(dir, "a.tar"), filepath.Join(dir, "b.tar")
	for _, out := range []string{a, b} {
		if err := run(args(out)); err != nil {
			t.Fatal(err)
		}
	}
	x, _ := os.ReadFile(a)
	y, _ := os.ReadFile(b)
	if len(x) == 0 || !bytes.Equal(x, y) {
		t.Errorf("two archives of the same differ (%d and %d bytes)", len(x), len(y))
	}
	if err := run([]string{"-o", a}); err == nil {
		t.Error("an image without a name was written")
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("%d files, want the 2 archives", len(left))
	}
}

// TestReadTree: a folder goes in as it is, with modes and links.
func TestReadTree(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "su"), []byte("x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "bin", "su"), fs.ModeSetuid|0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("su", filepath.Join(dir, "bin", "sh")); err != nil {
		t.Fatal(err)
	}
	files, err := readTree(dir)
	if err != nil || len(files) != 3 {
		t.Fatalf("%+v, %v", files, err)
	}
	if f := files[1]; f.Path != "/bin/sh" || string(f.Data) != "su" || f.Mode&fs.ModeSymlink == 0 {
		t.Errorf("link %+v", f)
	}
	if f := files[2]; f.Path != "/bin/su" || f.Mode != fs.ModeSetuid|0o755 {
		t.Errorf("file %+v", f)
	}
	if _, err := readTree(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there was read")
	}
}
