// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sys/unix"
)

// scripted is a layer that a text describes, an entry a line: its type, its name, and what it links to or holds. So the
// fuzzer changes names, and not bytes of which a sum is checked.
func scripted(script string) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for line := range strings.Lines(script) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "|", 3)
		if len(f) < 3 || len(f[0]) == 0 {
			continue
		}
		h := &tar.Header{Typeflag: f[0][0], Name: f[1], Mode: 0o4755, Uid: os.Getuid(), Gid: os.Getgid()}
		switch h.Typeflag {
		case tar.TypeReg:
			h.Size = int64(len(f[2]))
		case tar.TypeChar, tar.TypeBlock:
			h.Devmajor, h.Devminor = 1, 5
		case 'x': // a file with metadata
			key, value, _ := strings.Cut(f[2], "=")
			h.Typeflag, h.PAXRecords = tar.TypeReg, map[string]string{"SCHILY.xattr." + key: value}
		case 'h': // a file with zeros that are not in the layer
			h.Typeflag, h.PAXRecords = tar.TypeReg, map[string]string{"GNU.sparse.major": f[2]}
		default:
			h.Linkname = f[2]
		}
		if w.WriteHeader(h) == nil && h.Size > 0 {
			_, _ = w.Write([]byte(f[2]))
		}
	}
	_ = w.Close()
	return out.Bytes()
}

// hostile are layers that lead out, or replace one kind of file by another.
func hostile() [][2]string {
	return [][2]string{
		{"5|etc|\n0|etc/passwd|app:x:7:8::/:/bin/sh\n0|etc/group|app:x:9:\n", "0|.wh.etc|\n"},
		{"0|../outside/secret|x\n0|/../outside/new|x\n5|..|\n5|/|\n0|.|x\n0||x\n", "0|a/../../outside/secret|x\n"},
		{"2|l|../outside\n2|m|/../outside/secret\n", "0|l/secret|x\n0|m|x\n5|l|\n1|l/h|m\n"},
		{"1|h|../outside/secret\n", "1|h|/etc/passwd\n2|h|../outside/secret\n1|g|h\n0|g|x\n5|h|\n"},
		{"2|l|../outside\n5|l/x|\n0|.wh.l|\n", "0|l/.wh.secret|\n0|l/.wh..wh..opq|\n0|.wh..wh..opq|\n"},
		{"0|.wh.|\n", "0|a/.wh..|\n0|.wh...|\n0|.wh.../x|\n0|.wh..wh.aufs|\n0|d/.wh..wh..opq/x|\n"},
		{"3|etc/passwd|\n", "6|etc/passwd|\n4|etc/group|\n"}, {"2|etc|../outside\n", "0|etc/passwd|x\n"},
		{"2|a|b\n2|b|a\n0|a/x|x\n", "2|etc|.\n2|passwd|passwd\n"},
		{"0|f|x\n0|f/x|x\n", "5|f|\n0|f/y|y\n0|f|z\n0|f|w\n"}, {"2|s|t\n1|t|s\n5|t|\n", "1|s|s\n1|.|s\n"},
		{"0|" + strings.Repeat("n", 300) + "|x\n", "0|" + strings.Repeat("d/", 300) + "f|x\n"},
		{"x|f|security.capability=x\nx|g|user.a=b\nx|h|trusted.overlay.opaque=y\n", "h|holes|1\nS|old|x\ng|global|x\n"},
		{"0|etc/passwd|" + strings.Repeat(":", 100) + "\n", "7|c|x\nK|long|x\n"},
	}
}

// stranger is a number that only a list outside has.
const stranger = "1870042191"

// FuzzUnpackLayer: whatever two layers of an image have in them, outside of the folder nothing changes, no more is
// written than may be, and who its user is is found or refused (RS-07, DA-07).
func FuzzUnpackLayer(f *testing.F) {
	for _, pair := range hostile() {
		f.Add(pair[0], scripted(pair[1]), "app:app")
		f.Add(pair[1], scripted(pair[0]), "7:app")
	}
	f.Fuzz(func(t *testing.T, script string, raw []byte, user string) {
		dir := t.TempDir()
		root, outside := filepath.Join(dir, "root"), filepath.Join(dir, "outside")
		for _, folder := range []string{root, outside} {
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(outside, "secret"), []byte(strings.ReplaceAll("root:x:N:N::/:\napp:x:N:N::/:\n", "N", stranger)), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { removable(root) })
		before := picture(t, dir, outside)
		const most = 1 << 20
		bounds := &bounded{dir: root, most: most}
		for _, text := range [][]byte{scripted(script), raw} {
			if unpackLayer(t.Context(), static.NewLayer(text, types.DockerUncompressedLayer), root, bounds) != nil {
				break
			}
		}
		if after := picture(t, dir, outside); after != before {
			t.Errorf("outside was\n%s\nand is\n%s", before, after)
		}
		if n := taken(root); n > most {
			t.Errorf("%d bytes are taken", n)
		}
		img, err := configOf(&v1.Config{User: user}, func(file string) ([]byte, error) { return listOf(root, file) })
		if err == nil && (img.UID >= 1<<31 || img.GID >= 1<<31) {
			t.Errorf("%q is %d:%d", user, img.UID, img.GID)
		}
		if err == nil && (fmt.Sprint(img.UID) == stranger || fmt.Sprint(img.GID) == stranger) &&
			!strings.Contains(user+script+string(raw), stranger) {
			t.Errorf("%q is %d:%d, which is said outside", user, img.UID, img.GID)
		}
	})
}

// removable makes folders so that they can be removed.
func removable(root string) {
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil
	})
}

// picture is what is in a folder, and all of one below it: names, kinds, owners, links, times and bytes.
func picture(t *testing.T, dir, below string) string {
	t.Helper()
	var b strings.Builder
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(&b, entries)
	err = filepath.WalkDir(below, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var s unix.Stat_t
		if err := unix.Lstat(path, &s); err != nil {
			return err
		}
		names := make([]byte, 1000)
		n, err := unix.Llistxattr(path, names)
		if err != nil {
			n = 0 // there are file systems without
		}
		fmt.Fprintln(&b, path, s.Mode, s.Uid, s.Gid, s.Nlink, s.Size, s.Mtim, string(names[:n]))
		if s.Mode&unix.S_IFMT == unix.S_IFREG {
			text, err := os.ReadFile(path)
			fmt.Fprintf(&b, "%q %v\n", text, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// taken is what is written below a folder, as bounds count it: a file with more names than one once.
func taken(root string) (n int64) {
	seen := map[uint64]bool{}
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == root {
			return nil
		}
		n += perFile
		info, err := e.Info()
		if err != nil {
			return nil
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() && !seen[s.Ino] {
			seen[s.Ino] = true
			n += info.Size()
		}
		return nil
	})
	return n
}

// RS-07: an image's lists of users and groups are read if they are files of a size that such lists have: a fifo would
// be waited for, and a device may have no end.
func TestListsThatAreNone(t *testing.T) {
	for name, c := range map[string]struct {
		layer, want string
	}{
		"a file":                {"0|etc/passwd|app:x:7:8::/:", ""},
		"a link to one":         {"0|users|app:x:7:8::/:\n2|etc/passwd|../users", ""},
		"none":                  {"5|etc|", "no such file"},
		"a fifo":                {"6|etc/passwd|", "is not a regular file"},
		"a link to a fifo":      {"6|p|\n2|etc/passwd|../p", "is not a regular file"},
		"a folder":              {"5|etc/passwd|", "is not a regular file"},
		"a link that leads out": {"2|etc/passwd|../../outside", "escapes"},
		"too large":             {"0|etc/passwd|app:x:7:8::" + strings.Repeat("x", mostList), "more than 4 MiB"},
		"nothing but colons":    {"0|etc/passwd|" + strings.Repeat(":", 1<<20), "no such user"},
	} {
		dir := t.TempDir()
		if err := unpackLayer(t.Context(), static.NewLayer(scripted(c.layer), types.DockerUncompressedLayer), dir, &bounded{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		img, err := configOf(&v1.Config{User: "app"}, func(file string) ([]byte, error) { return listOf(dir, file) })
		if c.want == "" && (err != nil || img.UID != 7 || img.GID != 8) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %d:%d, %v; want %q", name, img.UID, img.GID, err, c.want)
		}
	}
}
