// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/server"
	"github.com/wherryproject/wherry/internal/server/hostapi"
)

// A command that writes a file in one step never puts one in the place of a pipe, a device or a folder.
func TestOnlyFilesAreReplaced(t *testing.T) {
	dir := t.TempDir()
	pipe, link, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "file")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	stdout := filepath.Join(dir, "stdout") // as /dev/stdout is, of a command whose output goes to a file
	if err := os.Symlink(fmt.Sprintf("/proc/self/fd/%d", out.Fd()), stdout); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		pipe: "is not a regular file", link: "is not a regular file", dir: "is a directory", file: "", "": "",
		filepath.Join(dir, "new"): "", os.DevNull: "is not a regular file", stdout: "use - for standard output",
	} {
		err := cmdline.Replaceable(name)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if _, _, err := backUp(t.Context(), nil, pipe, hostapi.BackupParts{}); err == nil {
		t.Error("a backup is written to a pipe's place")
	}
	if info, err := os.Lstat(pipe); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		t.Errorf("the pipe is now %v, %v", info, err)
	}
	if err := serve(Terminal{}, server.Options{WriteKubeconfig: pipe}, &cmdline.LogFlags{},
		&kubeletFiles{}); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("server: %v", err)
	}
	if code, _, errs := call(t, "", "image", "export", "-f", pipe, "example/app:1"); code == 0 ||
		!strings.Contains(errs, "is not a regular file") {
		t.Errorf("export: %d, %s", code, errs)
	}
}

// What cannot be made is told with the name that was asked for, and leaves nothing.
func TestBeside(t *testing.T) {
	dir := t.TempDir()
	if _, err := cmdline.Beside(dir + "/no/file"); err == nil || err.Error() != dir+"/no/file: no such file or directory" {
		t.Errorf("a folder that is not there: %v", err)
	}
	f, err := cmdline.Beside(dir + "/file")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || info.Mode().Perm() != 0o600 || f.Name() == dir+"/file" {
		t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
