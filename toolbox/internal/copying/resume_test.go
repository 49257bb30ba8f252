// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// entries reads an archive.
func entries(t *testing.T, archive []byte) (headers []*tar.Header, contents [][]byte) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return headers, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		headers, contents = append(headers, h), append(contents, text)
	}
}

// tree makes files whose order in an archive is not that of their names as texts, with links of both kinds and holes.
func tree(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, size := range map[string]int{"t/a/x": 3000, "t/a/y": 0, "t/a.b": 700, "t/a0": 1, "t/z": 5000} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), bytes.Repeat([]byte(name), size)[:size], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a0", filepath.Join(root, "t/link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(root, "t/a/x"), filepath.Join(root, "t/same")); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(root, "t/holes"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, at := range []int64{100 << 10, 300 << 10} {
		if _, err := f.WriteAt(bytes.Repeat([]byte("data"), 2<<10), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(1 << 20); err != nil {
		t.Fatal(err)
	}
	return root
}

func reached(h *tar.Header, offset int64) string {
	return fmt.Sprintf("%d:%d:%d:%s", offset, h.Size, h.ModTime.UnixNano(), h.Name)
}

// DA-09: what comes after a cut and what came before it are the whole archive, wherever it was cut.
func TestPackAfter(t *testing.T) {
	root := tree(t)
	whole, _, err := call(t, "cp-pack", nil, "--root", root, "/t")
	if err != nil {
		t.Fatal(err)
	}
	headers, contents := entries(t, whole)
	if len(headers) != 10 {
		t.Fatalf("%d entries", len(headers))
	}
	for i, h := range headers {
		size := int64(len(contents[i]))
		h.Size = size // the tar reader has that of a file with holes
		for _, offset := range slices.Compact([]int64{0, size / 3, size / 2, max(size-1, 0), size}) {
			rest, errs, err := call(t, "cp-pack", nil, "--root", root, "--after", reached(h, offset), "/t")
			if err != nil || errs != "" {
				t.Fatalf("%s at %d: %v, %s", h.Name, offset, err, errs)
			}
			if err := continues(headers, contents, i, offset, rest, t); err != nil {
				t.Errorf("%s at %d: %v", h.Name, offset, err)
			}
		}
	}
}

// continues tells whether an archive is the rest of one from an entry and an offset on.
func continues(headers []*tar.Header, contents [][]byte, i int, offset int64, rest []byte, t *testing.T) error {
	more, texts := entries(t, rest)
	if size := int64(len(contents[i])); headers[i].Typeflag != tar.TypeReg || offset == size && size > 0 {
		i++
	} else if offset > 0 {
		if got := more[0].PAXRecords[OffsetRecord]; got != strconv.FormatInt(offset, 10) {
			return fmt.Errorf("its entry says that it begins at %q", got)
		}
		if len(bytes.Trim(texts[0][:offset], "\x00")) > 0 {
			return fmt.Errorf("what has come comes again")
		}
		copy(texts[0], contents[i][:offset])
	}
	for j := range max(len(more), len(headers)-i) {
		if j >= len(more) || i+j >= len(headers) {
			return fmt.Errorf("it has %d entries, want %d", len(more), len(headers)-i)
		}
		if a, b := more[j], headers[i+j]; a.Name != b.Name || a.Linkname != b.Linkname || a.Typeflag != b.Typeflag ||
			!bytes.Equal(texts[j], contents[i+j]) {
			return fmt.Errorf("entry %d is %s (%q, %c), want %s (%q, %c), or its content is another", j, a.Name, a.Linkname,
				a.Typeflag, b.Name, b.Linkname, b.Typeflag)
		}
	}
	return nil
}

// DA-09: a file that is not the one of which the first part came, comes whole; one that is gone does not come.
func TestPackAfterAChange(t *testing.T) {
	root := tree(t)
	whole, _, err := call(t, "cp-pack", nil, "--root", root, "/t")
	if err != nil {
		t.Fatal(err)
	}
	headers, _ := entries(t, whole)
	i := slices.IndexFunc(headers, func(h *tar.Header) bool { return h.Name == "t/a.b" })
	mark := reached(headers[i], 10)
	file := filepath.Join(root, "t/a.b")
	for _, c := range []struct {
		what   string
		change func() error
		next   string
	}{
		{"another time", func() error { return os.Chtimes(file, time.Time{}, time.Now().Add(time.Second)) }, "t/a.b"},
		{"longer", func() error { return os.WriteFile(file, make([]byte, 900), 0o600) }, "t/a.b"},
		{"gone", func() error { return os.Remove(file) }, "t/a0"},
	} {
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		rest, _, err := call(t, "cp-pack", nil, "--root", root, "--after", mark, "/t")
		if err != nil {
			t.Fatal(err)
		}
		if more, _ := entries(t, rest); more[0].Name != c.next || more[0].PAXRecords[OffsetRecord] != "" {
			t.Errorf("%s: it goes on with %s (%v)", c.what, more[0].Name, more[0].PAXRecords)
		}
	}
}

// What is not a place in an archive is refused, and says what one is.
func TestNoPlaceInAnArchive(t *testing.T) {
	for _, text := range []string{"x", "1:2:3:", "1:2:3", "2:1:3:a", "-1:2:3:a", "1:x:3:a", "1:99999999999999999999:3:a", "0:0:0:/"} {
		if r, err := ParseReached(text); err == nil || !strings.Contains(err.Error(), "want ") {
			t.Errorf("%q is %+v, %v", text, r, err)
		}
	}
	r, err := ParseReached("5:9:7:a:b/c/")
	if err != nil || r.Name != "a:b/c" || r.Offset != 5 || r.Size != 9 || !r.ModTime.Equal(time.Unix(0, 7)) {
		t.Errorf("%+v, %v", r, err)
	}
}
