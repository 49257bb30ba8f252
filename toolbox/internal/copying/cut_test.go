// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"archive/tar"
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// call runs one of the package's commands.
func call(t *testing.T, name string, in []byte, args ...string) (out []byte, errs string, err error) {
	t.Helper()
	input := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(input, in, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(input)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	list := Applets()
	i := slices.IndexFunc(list, func(a applet.Applet) bool { return a.Name == name })
	var stdout, stderr bytes.Buffer
	c := &applet.Call{Applet: list[i], Args: args, In: file, Out: bufio.NewWriter(&stdout), Err: &stderr}
	err = list[i].Run(c)
	if ferr := c.Out.Flush(); ferr != nil {
		t.Fatal(ferr)
	}
	return stdout.Bytes(), stderr.String(), err
}

// archive is one with a file of a size.
func archive(t *testing.T, name string, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// IX-04: a copy that is cut off leaves the file that was there, and nothing else.
func TestUnpackCutOff(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	whole := archive(t, "file", bytes.Repeat([]byte("new!"), 1<<18))
	if _, _, err := call(t, "cp-unpack", whole[:len(whole)/2], "--root", dir, "/"); err == nil {
		t.Error("an archive that ends in the middle is well")
	}
	if got := picture(t, dir); !strings.Contains(got, "old") || strings.Contains(got, partPrefix) {
		t.Errorf("it left\n%s", got)
	}
	if _, _, err := call(t, "cp-unpack", whole, "--root", dir, "/"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || len(text) != 1<<20 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// IX-04: a file that is mounted cannot be replaced, and is written to.
func TestUnpackOntoMountedFile(t *testing.T) {
	dir := t.TempDir()
	source, at := filepath.Join(dir, "source"), filepath.Join(dir, "root", "hosts")
	if err := os.Mkdir(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{source, at} {
		if err := os.WriteFile(file, []byte("a long old text"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount(source, at, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	defer unix.Unmount(at, unix.MNT_DETACH)
	if _, errs, err := call(t, "cp-unpack", archive(t, "hosts", []byte("new")), "--root", filepath.Dir(at), "/"); err != nil || errs != "" {
		t.Fatalf("%v, %s", err, errs)
	}
	if text, err := os.ReadFile(source); err != nil || string(text) != "new" {
		t.Errorf("%q, %v", text, err)
	}
	if got := picture(t, filepath.Dir(at)); strings.Contains(got, partPrefix) {
		t.Errorf("it left\n%s", got)
	}
}

// IX-04: nothing is copied to where a container has the kernel's files: it would lie hidden below them. What else the archive has arrives.
func TestUnpackOntoKernels(t *testing.T) {
	for _, row := range []struct{ at, name, want string }{
		{"/dev", "null", "/dev is the kernel's"},
		{"/dev", "", "/dev is the kernel's"}, // by which is asked whether it is a folder
		{"/", "dev/null", "/dev is the kernel's"},
		{"/", "dev/shm/new/file", "/dev/shm is the kernel's"},
		{"/link", "file", "/dev/shm is the kernel's"},
		{"/", "proc/x", "/proc is the kernel's"},
		{"/sys", "x", "/sys is the kernel's"},
		{"/device", "x", ""},
		{"/var/dev", "x", ""},
	} {
		dir := t.TempDir()
		for _, sub := range []string{"dev/shm", "proc", "sys", "device", "var/dev"} {
			if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("/dev/shm", filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		content := make([]byte, 1024) // the end of an archive
		if row.name != "" {
			content = archive(t, row.name, []byte("new"))
		}
		_, errs, err := call(t, "cp-unpack", content, "--root", dir, row.at)
		said := errs
		if err != nil {
			said += err.Error()
		}
		if row.want == "" && said != "" || !strings.Contains(said, row.want) {
			t.Errorf("%s into %s: %q", row.name, row.at, said)
		}
		if got := picture(t, dir); row.want != "" && (strings.Contains(got, `"new"`) || strings.Contains(got, "shm/new")) {
			t.Errorf("%s into %s: it left\n%s", row.name, row.at, got)
		}
	}
}

// IX-04: a copy does not put a file in the place of a device, pipe or socket, which the container's programs may need.
func TestUnpackOntoPipe(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, err := call(t, "cp-unpack", archive(t, "pipe", []byte("new")), "--root", dir, "/"); err == nil && errs == "" {
		t.Error("it is well")
	}
	if info, err := os.Lstat(pipe); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		t.Errorf("the pipe is now %v, %v", info, err)
	}
	if got := picture(t, dir); strings.Contains(got, partPrefix) {
		t.Errorf("it left\n%s", got)
	}
}

// IX-04: the last part of a path may be a pattern, unless there is a file of that very name; the size of all is told first.
func TestPackPattern(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"log/a.log": "12", "log/b.log": "345", "log/.hidden.log": "x", "log/c.txt": "6", "odd/[x].log": "7", "odd/x.log": "8"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string]struct{ names, total string }{
		"/log/*.log":   {"matches/a.log matches/b.log", "5"},
		"/log/.*.log":  {"matches/.hidden.log", "1"},
		"/log":         {"log/ log/.hidden.log log/a.log log/b.log log/c.txt", "7"},
		"/odd/[x].log": {"[x].log", "1"},
		"/lo*":         {"matches/log/ matches/log/.hidden.log matches/log/a.log matches/log/b.log matches/log/c.txt", "7"},
	} {
		out, errs, err := call(t, "cp-pack", nil, "--root", dir, "--total", pattern)
		var names []string
		r := tar.NewReader(bytes.NewReader(out))
		for h, herr := r.Next(); herr == nil; h, herr = r.Next() {
			names = append(names, h.Name)
		}
		slices.Sort(names)
		if err != nil || strings.Join(names, " ") != want.names || errs != "total "+want.total+"\n" {
			t.Errorf("%s: %q, %q, %v", pattern, names, errs, err)
		}
	}
	for _, pattern := range []string{"/log/*.none", "/none/*", "/log/[", "/*/a.log"} {
		if _, _, err := call(t, "cp-pack", nil, "--root", dir, pattern); err == nil {
			t.Errorf("%s is there", pattern)
		}
	}
}

// IX-04: so does the copy of a file with holes: what is missing of the archive is no hole.
func TestUnpackHolesCutOff(t *testing.T) {
	from, dir := t.TempDir(), t.TempDir()
	f, err := os.Create(filepath.Join(from, "file"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bytes.Repeat([]byte("new!"), 1<<16), 8<<20); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := packed(t, from, "/file")
	if err != nil {
		t.Fatal(err)
	}
	if len(whole) > 1<<20 {
		t.Skip("this file system has no holes")
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := call(t, "cp-unpack", whole[:len(whole)/2], "--root", dir, "/"); err == nil {
		t.Error("an archive that ends in the middle is well")
	}
	if got := picture(t, dir); !strings.Contains(got, "old") || strings.Contains(got, partPrefix) {
		t.Errorf("it left\n%.300s", got)
	}
	if _, _, err := call(t, "cp-unpack", whole, "--root", dir, "/"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "file")); err != nil || info.Size() != 8<<20+4<<16 {
		t.Errorf("%v, %v", info, err)
	}
}
