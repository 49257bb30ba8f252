// SPDX-License-Identifier: Apache-2.0

package copyfiles

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// unpack makes what one stream holds, and returns how many entries were made.
func unpack(r io.Reader, folder, name string, skipped func(path, why string)) (int, error) {
	u, err := New(folder, name, skipped)
	if err != nil {
		return 0, err
	}
	err = u.From(r)
	return u.made, errors.Join(err, u.Close())
}

func never(t *testing.T) func(string, string) {
	return func(path, why string) { t.Errorf("left out: %s: %s", path, why) }
}

// What was packed comes out the same under its new name: contents, modes, times, links.
func TestThereAndBack(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	tree := filepath.Join(from, "tree")
	old := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, mode := range map[string]fs.FileMode{"plain": 0o644, "run": 0o755, "sealed": 0o400, "deep/er/file": 0o600} {
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"near": "plain", "away": "/etc/passwd"} {
		if err := os.Symlink(target, filepath.Join(tree, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(tree, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(tree, "deep"), 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.Chmod(filepath.Join(tree, "deep"), 0o700)
		_ = os.Chmod(filepath.Join(to, "new", "deep"), 0o700)
	})
	var stream bytes.Buffer
	var left []string
	if err := Pack(&stream, tree, "tree", func(path, _ string) { left = append(left, path) }); err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || left[0] != filepath.Join(tree, "fifo") {
		t.Errorf("left out %v, want the fifo", left)
	}
	if n, err := unpack(&stream, to, "new", never(t)); err != nil || n != 9 {
		t.Fatalf("made %d entries, %v", n, err)
	}
	for name, mode := range map[string]fs.FileMode{"plain": 0o644, "run": 0o755, "sealed": 0o400, "deep/er/file": 0o600} {
		path := filepath.Join(to, "new", name)
		text, err := os.ReadFile(path)
		info, serr := os.Stat(path)
		if err != nil || serr != nil || string(text) != name || info.Mode() != mode || !info.ModTime().Equal(old) {
			t.Errorf("%s: %q, %v, %v, %v", name, text, info, err, serr)
		}
	}
	if link, err := os.Readlink(filepath.Join(to, "new", "away")); err != nil || link != "/etc/passwd" {
		t.Errorf("link %q, %v", link, err)
	}
	if info, err := os.Stat(filepath.Join(to, "new", "deep")); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("folder %v, %v", info, err)
	}
}

// All of a folder, which has no name in the stream, goes into another one as it is; links within lead where they led.
func TestAllOfAFolder(t *testing.T) {
	for _, name := range []string{".", "new"} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range []tar.Header{{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755}, {Typeflag: tar.TypeDir, Name: "./bin/", Mode: 0o755},
			{Typeflag: tar.TypeReg, Name: "./bin/a", Mode: 0o755}, {Typeflag: tar.TypeLink, Name: "./bin/b", Linkname: "./bin/a"},
			{Typeflag: tar.TypeReg, Name: "./bin-file", Mode: 0o644}} {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if _, err := unpack(&b, dir, name, never(t)); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"bin/a", "bin/b", "bin-file"} {
			if _, err := os.Stat(filepath.Join(dir, name, file)); err != nil {
				t.Error(err)
			}
		}
	}
}

// A single file takes the new name, and replaces what has it; a folder is not replaced.
func TestSingleFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	if err := os.WriteFile(file, []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	pack := func() io.Reader {
		var b bytes.Buffer
		if err := Pack(&b, file, "a", never(t)); err != nil {
			t.Fatal(err)
		}
		return &b
	}
	if err := os.WriteFile(filepath.Join(dir, "b"), []byte("old and longer"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := unpack(pack(), dir, "b", never(t)); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "b")); err != nil || string(text) != "new" {
		t.Errorf("%q, %v", text, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "c"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := unpack(pack(), dir, "c", never(t)); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("over a folder: %v", err)
	}
	pipe := filepath.Join(dir, "d")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := unpack(pack(), dir, "d", never(t)); err == nil || !strings.Contains(err.Error(), "is a device, pipe or socket") {
		t.Errorf("over a pipe: %v", err)
	}
	if info, err := os.Lstat(pipe); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		t.Errorf("the pipe is now %v, %v", info, err)
	}
}

// evil are streams that try to get out of the folder.
func evil() map[string][]tar.Header {
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644} }
	return map[string][]tar.Header{
		"parent":               {file("../x")},
		"deep parent":          {file("t/../../x")},
		"absolute":             {file("/x")},
		"through a link":       {{Typeflag: tar.TypeSymlink, Name: "t/out", Linkname: "../.."}, file("t/out/x")},
		"through an absolute":  {{Typeflag: tar.TypeSymlink, Name: "t/out", Linkname: "/"}, file("t/out/x")},
		"hard link outside":    {{Typeflag: tar.TypeLink, Name: "t/x", Linkname: "../secret"}},
		"hard link by a link":  {{Typeflag: tar.TypeSymlink, Name: "t/out", Linkname: "../.."}, {Typeflag: tar.TypeLink, Name: "t/x", Linkname: "t/out/secret"}},
		"the top is a link":    {{Typeflag: tar.TypeSymlink, Name: "t", Linkname: "../"}, file("t/x")},
		"folder through links": {{Typeflag: tar.TypeSymlink, Name: "t/out", Linkname: "../.."}, {Typeflag: tar.TypeDir, Name: "t/out/x", Mode: 0o755}},
	}
}

func outside(t *testing.T, dir string) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, e := range entries {
		out[e.Name()] = true
	}
	return out
}

// Nothing in a stream reaches a file outside the folder.
func TestNothingGetsOut(t *testing.T) {
	for name, headers := range evil() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			in := filepath.Join(dir, "in")
			if err := os.MkdirAll(filepath.Join(in, "t"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "secret"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			was := outside(t, dir)
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			for _, h := range headers {
				if err := w.WriteHeader(&h); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := unpack(&b, in, "t", never(t)); err == nil {
				t.Error("it was not refused")
			}
			if now := outside(t, dir); !maps.Equal(was, now) {
				t.Errorf("outside there is now %v", now)
			}
		})
	}
}

// FuzzUnpack: no stream panics, or gets out.
func FuzzUnpack(f *testing.F) {
	for _, headers := range evil() {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range headers {
			if err := w.WriteHeader(&h); err != nil {
				f.Fatal(err)
			}
		}
		_ = w.Close() // what there is of it is a seed all the same
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		if len(stream) > 1<<16 {
			return
		}
		dir := t.TempDir()
		in := filepath.Join(dir, "in")
		if err := os.Mkdir(in, 0o755); err != nil {
			t.Fatal(err)
		}
		_, _ = unpack(io.LimitReader(bytes.NewReader(stream), 1<<20), in, "t", func(string, string) {}) // any error is fine
		if now := outside(t, dir); len(now) != 1 {
			t.Errorf("outside there is now %v", now)
		}
	})
}

// IX-04: a copy that is cut off leaves the file that was there, and nothing else.
func TestCutOff(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(from, "file"), bytes.Repeat([]byte("new!"), 1<<18), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, "file"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	none := func(path, why string) { t.Errorf("%s is left out: %s", path, why) }
	if err := Pack(&stream, filepath.Join(from, "file"), "file", none); err != nil {
		t.Fatal(err)
	}
	for _, part := range []int{700, stream.Len() / 2} {
		if _, err := unpack(bytes.NewReader(stream.Bytes()[:part]), to, "file", none); err == nil {
			t.Error("a stream that ends in the middle is well")
		}
	}
	entries, err := os.ReadDir(to)
	if text, rerr := os.ReadFile(filepath.Join(to, "file")); err != nil || rerr != nil || string(text) != "old" || len(entries) != 1 {
		t.Errorf("%q, %v, %v, %v", text, entries, err, rerr)
	}
	if _, err := unpack(&stream, to, "file", none); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(to, "file")); err != nil || len(text) != 1<<20 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// ATTACK B19: what is nothing but zeros takes no room: a container's file may be terabytes of holes.
func TestZerosTakeNoRoom(t *testing.T) {
	dir := t.TempDir()
	const size = 64<<20 + 5
	content := make([]byte, size)
	copy(content[1<<20+1:], "text")
	copy(content[size-3:], "end")
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a", Size: size, Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := unpack(&b, dir, "a", never(t)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "a"))
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	info, err := os.Stat(filepath.Join(dir, "a"))
	if err != nil || info.Sys().(*syscall.Stat_t).Blocks > 2048 {
		t.Errorf("%+v, %v", info, err)
	}
}

// DA-09: a stream that was cut goes on in another one, from where it was; what is made is what an uncut one makes. One that begins where
// nobody has stopped is refused, and so is the end of one of which a file has gone.
func TestGoesOn(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 40<<10)
	stream := func(headers ...tar.Header) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range headers {
			h.Mode, h.ModTime, h.Format = 0o750, time.Unix(1700000000, 5), tar.FormatPAX
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(content[:h.Size]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	size := int64(len(content))
	whole := stream(tar.Header{Name: "d/", Typeflag: tar.TypeDir}, tar.Header{Name: "d/small", Size: 7}, tar.Header{Name: "d/large", Size: size})
	dir := t.TempDir()
	u, err := New(dir, "d", never(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.From(bytes.NewReader(whole[:100])); !Cut(err) || u.Reached().String() != "" {
		t.Errorf("cut before anything was whole: %v, %s", err, u.Reached())
	}
	if err := u.From(bytes.NewReader(whole[:len(whole)/2])); !Cut(err) {
		t.Fatalf("cut in the middle: %v", err)
	}
	at := u.part.at
	want := fmt.Sprintf("%d:%d:1700000000000000005:d/large", at, size)
	if at < 100<<10 || u.Reached().String() != want {
		t.Fatalf("it has come to %s, want %s", u.Reached(), want)
	}
	rest := func(name string, from int64) tar.Header {
		return tar.Header{Name: name, Size: size, PAXRecords: map[string]string{offsetRecord: fmt.Sprint(from)}}
	}
	if err := u.From(bytes.NewReader(stream(rest("d/large", at))[:(2<<10)+at])); !Cut(err) {
		t.Errorf("cut again: %v", err)
	}
	at = u.part.at
	if err := u.From(bytes.NewReader(stream(rest("d/large", at)))); err != nil {
		t.Fatal(err)
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "d", "large"))
	info, serr := os.Stat(filepath.Join(dir, "d", "large"))
	if err != nil || serr != nil || !bytes.Equal(got, content) || info.Mode() != 0o750 || info.ModTime().UnixNano() != 1700000000000000005 {
		t.Errorf("%d bytes, %+v, %v", len(got), info, err)
	}
	for what, wrong := range map[string]tar.Header{"another file": rest("d/other", 10), "another place": rest("d/large", at+1), "no number": {
		Name: "d/large", Size: size, PAXRecords: map[string]string{offsetRecord: "x"}}} {
		dir := t.TempDir()
		u, err := New(dir, "d", never(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := u.From(bytes.NewReader(whole[:len(whole)/2])); !Cut(err) {
			t.Fatal(err)
		}
		if err := u.From(bytes.NewReader(stream(wrong))); err == nil || Cut(err) || !strings.Contains(err.Error(), "of which the beginning is not here") {
			t.Errorf("%s: %v", what, err)
		}
		if err := u.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(filepath.Join(dir, "d")); err != nil || len(left) != 1 {
			t.Errorf("%s left %v, %v", what, left, err)
		}
	}
	u, err = New(t.TempDir(), "d", never(t))
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if err := u.From(bytes.NewReader(whole[:len(whole)/2])); !Cut(err) {
		t.Fatal(err)
	}
	if err := u.From(bytes.NewReader(stream())); err == nil || !strings.Contains(err.Error(), "d/large was removed or replaced") {
		t.Errorf("the file is gone: %v", err)
	}
}
