// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// world makes a folder with a root in it, and beside the root what must not change.
func world(t *testing.T) (dir, root string) {
	t.Helper()
	dir = t.TempDir()
	root = filepath.Join(dir, "root")
	for _, d := range []string{"root/data/sub", "root/etc", "outside/sub"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"outside/secret": "secret", "outside/sub/file": "other", "root/etc/passwd": "root", "root/data/old": "old"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"root/data/up": "../../outside", "root/data/abs": filepath.Join(dir, "outside"), "root/data/in": "/etc", "root/link": "/data", "root/loop": "loop",
		"root/data/file": filepath.Join(dir, "outside/secret"),
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return dir, root
}

// picture lists a folder with all its contents.
func picture(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(data)
		}
		fmt.Fprintf(&b, "%s %v %v %q\n", path, info.Mode(), info.ModTime().UnixNano(), text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// put unpacks headers, each with a text, into a folder of a root, and returns the errors.
func put(t *testing.T, root, dir string, list ...tar.Header) (errs []error) {
	t.Helper()
	u, err := NewUnpacker(root, dir)
	if err != nil {
		return []error{err}
	}
	defer u.Close()
	for _, h := range list {
		h.Uid, h.Gid = os.Getuid(), os.Getgid()
		if err := u.Put(&h, strings.NewReader("from the archive")); err != nil {
			errs = append(errs, err)
		}
	}
	if err := u.Finish(); err != nil {
		errs = append(errs, err)
	}
	return errs
}

func file(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644} }
func folder(name string) tar.Header {
	return tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}
}
func link(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777}
}
func hard(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to, Mode: 0o644}
}

// Issue 4, 4: nothing outside the root is written, whatever the archive says; refused is what only looks like it was meant.
func TestUnpackStaysInside(t *testing.T) {
	for name, c := range map[string]struct {
		entries []tar.Header
		refused bool
	}{
		"dots":                        {[]tar.Header{file("../../outside/secret")}, true},
		"dots inside":                 {[]tar.Header{file("sub/../../../outside/secret")}, true},
		"absolute":                    {[]tar.Header{file("/outside/secret")}, true},
		"a link up":                   {[]tar.Header{file("up/secret")}, true},  // leads to /outside in the root, where nothing is
		"an absolute link":            {[]tar.Header{file("abs/secret")}, true}, // as above
		"a link that is a file":       {[]tar.Header{file("file")}, false},      // replaces the link
		"an own link":                 {[]tar.Header{link("l", "../../outside"), file("l/secret")}, true},
		"an own link, deep":           {[]tar.Header{folder("d"), link("d/l", "/"), file("d/l/etc/passwd")}, true},
		"an own link as folder":       {[]tar.Header{link("l", "../../outside"), folder("l"), file("l/secret")}, true},
		"an own link as file":         {[]tar.Header{link("l", "../../outside/secret"), file("l")}, false},
		"a hard link up":              {[]tar.Header{hard("h", "../../outside/secret"), file("h")}, true},
		"an absolute hard link":       {[]tar.Header{hard("h", "/outside/secret")}, true},
		"a hard link through a link":  {[]tar.Header{hard("h", "abs/secret")}, true},
		"a hard link by an own link":  {[]tar.Header{link("l", "../../outside"), hard("h", "l/secret")}, true},
		"a hard link to a link":       {[]tar.Header{hard("h", "file"), file("h")}, false},
		"a device where a folder was": {[]tar.Header{{Typeflag: tar.TypeFifo, Name: "sub", Mode: 0o644}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir, root := world(t)
			before := picture(t, filepath.Join(dir, "outside"))
			errs := put(t, root, "/data", c.entries...)
			if (len(errs) > 0) != c.refused {
				t.Errorf("errors %v, want some: %v", errs, c.refused)
			}
			if after := picture(t, filepath.Join(dir, "outside")); after != before {
				t.Errorf("outside was\n%s\nis\n%s", before, after)
			}
			if text, _ := os.ReadFile(filepath.Join(root, "etc/passwd")); string(text) != "root" {
				t.Errorf("a link of the archive's own was written through: %q", text)
			}
		})
	}
}

// A link that was there before is followed as chroot would, also by way of the folder to unpack into.
func TestUnpackFollowsInside(t *testing.T) {
	_, root := world(t)
	if errs := put(t, root, "/link", file("in/new"), file("a/b/c"), folder("in")); len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, name := range []string{"etc/new", "data/a/b/c"} {
		if text, err := os.ReadFile(filepath.Join(root, name)); string(text) != "from the archive" {
			t.Errorf("%s: %q (%v)", name, text, err)
		}
	}
	if info, err := os.Lstat(filepath.Join(root, "data/in")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link to a folder was replaced: %v (%v)", info, err)
	}
	for _, dir := range []string{"/nope", "/etc/passwd", "/loop", "/data/abs", "/data/up"} {
		if errs := put(t, root, dir, file("x")); len(errs) == 0 {
			t.Errorf("unpacked into %s", dir)
		}
	}
}

// Whatever sequence of entries an archive has, what is outside of the root stays as it is.
func TestUnpackOfAnythingStaysInside(t *testing.T) {
	dir, root := world(t)
	outside := filepath.Join(dir, "outside")
	before := picture(t, outside)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	parts := []string{"..", ".", "a", "b", "l", "up", "abs", "in", "sub", "file", "", "outside", "secret", "etc"}
	name := func() string {
		n := 1 + r.IntN(4)
		var out []string
		for range n {
			out = append(out, parts[r.IntN(len(parts))])
		}
		return strings.Join(out, "/")
	}
	for round := range 300 {
		var list []tar.Header
		for range 1 + r.IntN(8) {
			switch r.IntN(5) {
			case 0:
				list = append(list, folder(name()+"/"))
			case 1:
				list = append(list, link(name(), name()))
			case 2:
				list = append(list, link(name(), filepath.Join(dir, name())))
			case 3:
				list = append(list, hard(name(), name()))
			default:
				list = append(list, file(name()))
			}
		}
		_ = put(t, root, []string{"/data", "/", "/link", "data/sub"}[r.IntN(4)], list...)
		if after := picture(t, outside); after != before {
			t.Fatalf("seed %d, round %d: outside was\n%s\nis\n%s\nby %+v", seed, round, before, after, list)
		}
	}
}

// pack packs a path of a root.
func packed(t *testing.T, root, path string) ([]byte, error) {
	t.Helper()
	r, err := openRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	dir, base, err := r.parent(path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	var buf bytes.Buffer
	p := NewPacker(&buf)
	p.Problem = func(err error) { t.Errorf("%s: %v", path, err) }
	if err := p.add(dir, base, base); err != nil {
		return nil, err
	}
	return buf.Bytes(), p.Close()
}

// Paths lead nowhere but into the root.
func TestPackStaysInside(t *testing.T) {
	_, root := world(t)
	for path, want := range map[string]string{
		"/etc/passwd": "passwd", "etc/passwd": "passwd", "/../../etc/passwd": "passwd", "/link/in/passwd": "passwd", "/link/old": "old",
		"/data/file": "file", "/link": "link", "/etc": "etc/,etc/passwd", "/etc/": "./,./passwd",
	} {
		data, err := packed(t, root, path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		var names []string
		for r := tar.NewReader(bytes.NewReader(data)); ; {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if text, _ := io.ReadAll(r); strings.Contains(string(text), "secret") {
				t.Errorf("%s: %s came from outside", path, h.Name)
			}
			names = append(names, h.Name)
		}
		if got := strings.Join(names, ","); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	for _, path := range []string{"/data/up/secret", "/data/abs/secret", "/outside/secret", "/nope/x", "/etc/passwd/x"} {
		if _, err := packed(t, root, path); err == nil {
			t.Errorf("%s was found", path)
		} else if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// What is packed comes out the same: modes, times, links of both kinds, long names, attributes, holes.
func TestRoundTrip(t *testing.T) {
	root := t.TempDir()
	from, to := filepath.Join(root, "from"), filepath.Join(root, "to")
	deep := filepath.Join(from, strings.Repeat("long-name-", 12), strings.Repeat("é", 60))
	for _, d := range []string{from, to, deep, filepath.Join(from, "locked")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(filepath.Join(deep, "file"), []byte("deep"), 0o640))
	must(os.WriteFile(filepath.Join(from, "locked", "inside"), []byte("x"), 0o400))
	must(os.Link(filepath.Join(deep, "file"), filepath.Join(from, "hard")))
	must(os.Symlink("/nowhere/at all", filepath.Join(from, "symbolic")))
	must(unix.Mkfifo(filepath.Join(from, "fifo"), 0o600))
	hasAttributes := unix.Setxattr(filepath.Join(from, "hard"), "user.note", []byte("a\x00=b\n"), 0) == nil

	const size = 300 << 20 // of which a few kB are data
	big, err := os.Create(filepath.Join(from, "big"))
	must(err)
	for _, at := range []int64{1 << 20, 100 << 20, size - 3} {
		_, err := big.WriteAt([]byte("end"), at)
		must(err)
	}
	must(big.Close())
	var st unix.Stat_t
	must(unix.Stat(filepath.Join(from, "big"), &st))
	if st.Blocks*512 > 1<<20 {
		t.Skip("this file system has no holes")
	}
	long := time.Unix(1_500_000_000, 123_456_789)
	must(os.Chmod(filepath.Join(from, "locked"), 0o500))
	for _, n := range []string{"hard", "big", "locked"} {
		must(os.Chtimes(filepath.Join(from, n), long, long))
	}

	data, err := packed(t, root, "/from")
	must(err)
	if len(data) > 1<<20 {
		t.Errorf("the archive has %d bytes: holes were packed", len(data))
	}
	u, err := NewUnpacker(root, "/to")
	must(err)
	defer u.Close()
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		must(err)
		must(u.Put(h, r))
	}
	must(u.Finish())

	copied := filepath.Join(to, "from")
	for _, n := range []string{"hard", "big", "locked"} {
		a, err := os.Stat(filepath.Join(from, n))
		must(err)
		b, err := os.Stat(filepath.Join(copied, n))
		must(err)
		if a.Mode() != b.Mode() || a.Size() != b.Size() && n != "locked" || !a.ModTime().Equal(b.ModTime()) {
			t.Errorf("%s: %v %d %v, was %v %d %v", n, b.Mode(), b.Size(), b.ModTime(), a.Mode(), a.Size(), a.ModTime())
		}
	}
	must(unix.Stat(filepath.Join(copied, "big"), &st))
	if st.Blocks*512 > 4<<20 {
		t.Errorf("the copy takes %d bytes: holes were filled", st.Blocks*512)
	}
	part := make([]byte, 3)
	f, err := os.Open(filepath.Join(copied, "big"))
	must(err)
	defer f.Close()
	for _, at := range []int64{1 << 20, 100 << 20, size - 3} {
		if _, err := f.ReadAt(part, at); err != nil || string(part) != "end" {
			t.Errorf("at %d: %q (%v)", at, part, err)
		}
	}
	a, err := os.Stat(filepath.Join(copied, "hard"))
	must(err)
	b, err := os.Stat(strings.Replace(filepath.Join(deep, "file"), from, copied, 1))
	must(err)
	if !os.SameFile(a, b) {
		t.Error("the hard link is a file of its own")
	}
	if to, err := os.Readlink(filepath.Join(copied, "symbolic")); to != "/nowhere/at all" {
		t.Errorf("symbolic link to %q (%v)", to, err)
	}
	if info, err := os.Lstat(filepath.Join(copied, "fifo")); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		t.Errorf("fifo: %v (%v)", info, err)
	}
	if hasAttributes {
		value := make([]byte, 100)
		if n, err := unix.Getxattr(filepath.Join(copied, "hard"), "user.note", value); err != nil || string(value[:n]) != "a\x00=b\n" {
			t.Errorf("attribute %q (%v)", value[:max(n, 0)], err)
		}
	}
}

// IX-04: all of a root is packed without what a container has from the kernel; a folder that is only called so is.
func TestPackLeavesOutTheKernels(t *testing.T) {
	_, root := world(t)
	for _, dir := range []string{"proc/1", "sys/kernel", "dev/shm", "data/proc"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, dir, "kcore"), []byte("1234"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"/", "/.", "/*", "/data/in/.."} {
		whole, errs, err := call(t, "cp-pack", nil, "--root", root, "--total", path)
		if err != nil || errs != "total 11\n" { // passwd, old, one kcore
			t.Errorf("%s: %v, %q", path, err, errs)
		}
		headers, _ := entries(t, whole)
		kept := 0
		for _, h := range headers {
			if strings.HasSuffix(h.Name, "kcore") {
				kept++
			}
		}
		if kept != 1 {
			t.Errorf("%s: %d of the files are in, want that of /data/proc", path, kept)
		}
	}
}
