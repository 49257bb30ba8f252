// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMakeInstall: make install puts the program, its manual pages and completions into DESTDIR, below PREFIX, and
// nothing elsewhere; make uninstall takes all of it away.
func TestMakeInstall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(target string) {
		t.Helper()
		// What is built is what is tested; it is not built once more.
		cmd := exec.CommandContext(t.Context(), "make", "-o", "build", "-o", "bin/wherry", "-o", "helpers", target,
			"DESTDIR="+dir, "PREFIX=/opt/wherry")
		cmd.Dir = "../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("make %s: %v\n%s", target, err, out)
		}
	}
	files := func() map[string]fs.FileMode {
		t.Helper()
		found := map[string]fs.FileMode{}
		if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			found[strings.TrimPrefix(path, dir)] = info.Mode()
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return found
	}
	run("install")
	got := files()
	pages := 0
	for path, mode := range got {
		name, below := strings.CutPrefix(path, "/opt/wherry/")
		want := fs.FileMode(0o644)
		switch name {
		case "bin/wherry":
			want = 0o755
		case "bin/kubectl-wherry", "bin/kubectl_complete-wherry":
			want = fs.ModeSymlink | 0o777
		}
		if !below || mode != want {
			t.Errorf("%s has mode %s", path, mode)
		}
		if strings.HasPrefix(name, "share/man/man1/wherry") && strings.HasSuffix(name, ".1") {
			pages++
		}
	}
	for _, name := range []string{"bin/wherry", "bin/kubectl-wherry", "bin/kubectl_complete-wherry", "share/man/man1/wherry.1", "share/man/man1/wherry-image-pull.1",
		"share/bash-completion/completions/wherry", "share/zsh/site-functions/_wherry", "share/fish/vendor_completions.d/wherry.fish"} {
		if _, ok := got["/opt/wherry/"+name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	if pages < 20 || len(got) != pages+6 {
		t.Errorf("%d manual pages of %d files", pages, len(got))
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "opt/wherry/bin/wherry"), "--version").Output()
	if err != nil || !strings.Contains(string(out), "wherry") {
		t.Errorf("the program that was installed: %q, %v", out, err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "opt/wherry/share/man/man1/wherry-run.1"))
	if err != nil || !strings.Contains(string(page), ".TH") {
		t.Errorf("a manual page: %v", err)
	}
	run("uninstall")
	if left := files(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
