// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// RS-14, ATTACK B19: a file of terabytes that are not there holds up no backup, and comes back as it was, holes and all. Any pod can make one.
func TestHoles(t *testing.T) {
	dir, into := t.TempDir(), t.TempDir()
	const size = 4 << 40
	for name, parts := range map[string]map[int64]string{
		"huge": {0: "begin", 3 << 40: "middle", size - 3: "end"}, "nothing": {}, "tail": {1 << 20: "x"},
	} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for at, text := range parts {
			if _, err := f.WriteAt([]byte(text), at); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
			t.Skipf("no files of this size here: %v", err)
		}
	}
	var out bytes.Buffer
	w, err := NewWriter(&out, Header{Volumes: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.AddTree("volumes/uid/v", dir), w.Close()); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 1<<20 {
		t.Errorf("the backup has %d bytes", out.Len())
	}
	if _, err := Verify(bytes.NewReader(out.Bytes())); err != nil {
		t.Error(err)
	}
	if _, err := Unpack(&out, into); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"huge", "nothing", "tail"} {
		info, err := os.Stat(filepath.Join(into, "volumes/uid/v", name))
		if err != nil || info.Size() != size || info.Sys().(*syscall.Stat_t).Blocks > 1<<10 {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
	}
	f, err := os.Open(filepath.Join(into, "volumes/uid/v/huge"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for at, want := range map[int64]string{0: "begin\x00", 3<<40 - 1: "\x00middle\x00", size - 4: "\x00end"} {
		got := make([]byte, len(want))
		if _, err := f.ReadAt(got, at); err != nil || string(got) != want {
			t.Errorf("at %d: %q, %v, want %q", at, got, err, want)
		}
	}
}

// RS-14: a list of parts that cannot be is refused.
func TestHolesDamaged(t *testing.T) {
	for text, fine := range map[string]bool{
		"\n": true, "0 2\n\nab": true, "0 2\n8 2\n\nabcd": true,
		"": false, "0 2\n": false, "0 2\n\na": false, "0 2\n\nabc": false, "-1 2\n\nab": false, "9 2\n\nab": false, "4 2\n2 2\n\nabcd": false,
		"0 0\n\n": false, "x\n\n": false, "0 9223372036854775807\n\n": false, strings.Repeat("1", 1<<20): false,
	} {
		h := &tar.Header{PAXRecords: map[string]string{sparseSize: "10"}}
		if err := spread(h, strings.NewReader(text), nil); (err == nil) != fine {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}
