// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sample writes a backup of a store, keys and a volume with all that volumes have.
func sample(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string, mode fs.FileMode) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	write("db", strings.Repeat("objects", 10_000), 0o600)
	write("pki/ca.key", "secret", 0o600)
	write("v/sub/file", "text", 0o640)
	write("v/odd\nname \\", "", 0o444)
	if err := errors.Join(os.Symlink("../../etc/passwd", filepath.Join(dir, "v/link")), os.Chmod(filepath.Join(dir, "v/sub"), 0o511)); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := NewWriter(&out, Header{Node: "n", Revision: 7, Keys: true, Volumes: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Add(StoreName, filepath.Join(dir, "db")), w.AddTree("keys/pki", filepath.Join(dir, "pki")),
		w.AddTree("volumes/uid/v", filepath.Join(dir, "v")), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// RS-14: what was written comes back as it was, with modes, links and odd names.
func TestRoundTrip(t *testing.T) {
	text, into := sample(t), t.TempDir()
	h, err := Unpack(bytes.NewReader(text), into)
	if err != nil {
		t.Fatal(err)
	}
	if h.Format != Format || h.Node != "n" || h.Revision != 7 || !h.Keys || !h.Volumes {
		t.Errorf("header: %+v", h)
	}
	for name, want := range map[string]string{
		"store.db": strings.Repeat("objects", 10_000), "keys/pki/ca.key": "secret", "volumes/uid/v/sub/file": "text", "volumes/uid/v/odd\nname \\": "",
	} {
		if got, err := os.ReadFile(filepath.Join(into, name)); err != nil || string(got) != want {
			t.Errorf("%s: %.20q, %v", name, got, err)
		}
	}
	for name, want := range map[string]fs.FileMode{"store.db": 0o600, "volumes/uid/v/sub/file": 0o640, "volumes/uid/v/sub": 0o511} {
		if info, err := os.Stat(filepath.Join(into, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("mode of %s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
	if to, err := os.Readlink(filepath.Join(into, "volumes/uid/v/link")); err != nil || to != "../../etc/passwd" {
		t.Errorf("link: %q, %v", to, err)
	}
}

// RS-14: a backup that was cut is refused, and said to be what it is; so is one that was changed, but where the change means the same to
// gzip: the zeros that a copy takes from sixteen bytes further on.
func TestDamaged(t *testing.T) {
	whole := sample(t)
	if _, err := Verify(bytes.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	step := max(1, len(whole)/200)
	for n := 0; n < len(whole)-1; n += step {
		if _, err := Verify(bytes.NewReader(whole[:n])); !errors.Is(err, ErrBroken) && !errors.Is(err, ErrNot) {
			t.Fatalf("cut after %d of %d bytes: %v", n, len(whole), err)
		}
		changed := bytes.Clone(whole)
		changed[n] ^= 0x10
		if n < 10 { // of gzip's header nothing but the magic matters: name, time, system
			continue
		}
		if _, err := Verify(bytes.NewReader(changed)); err == nil && !bytes.Equal(unzipped(t, changed), unzipped(t, whole)) {
			t.Fatalf("byte %d of %d changed: not noticed", n, len(whole))
		}
	}
	for name, text := range map[string]string{"empty": "", "text": "no backup", "gzip": "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x01\x00\x00\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00"} {
		if _, err := Verify(strings.NewReader(text)); !errors.Is(err, ErrNot) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func unzipped(t *testing.T, text []byte) []byte {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// FuzzRead: whatever a file holds, reading it ends, and writes nothing outside of its folder.
func FuzzRead(f *testing.F) {
	f.Add([]byte("\x1f\x8b"))
	var out bytes.Buffer
	w, err := NewWriter(&out, Header{})
	if err != nil || w.Close() != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		outer := t.TempDir()
		into := filepath.Join(outer, "a", "b")
		if err := os.MkdirAll(into, 0o700); err != nil {
			t.Fatal(err)
		}
		_, _ = Unpack(bytes.NewReader(text), into)
		if left, err := os.ReadDir(outer); err != nil || len(left) != 1 {
			t.Errorf("outside: %v, %v", left, err)
		}
	})
}

// The newest is found, the surplus is the oldest, other files are nobody's.
func TestKept(t *testing.T) {
	dir, at := t.TempDir(), time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)
	for i := range 5 {
		if err := os.WriteFile(filepath.Join(dir, KeptName(at.Add(time.Duration(i)*time.Hour))), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"store-x.tar.gz", "other", ".store-20261123T060000Z.tar.gz", "store-20261123T060000Z"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := List(dir)
	if len(all) != 5 || !all[0].Created.Equal(at.Add(4*time.Hour)) {
		t.Fatalf("got %v", all)
	}
	if old := Surplus(all, 3); len(old) != 2 || !old[1].Created.Equal(at) {
		t.Errorf("surplus %v", old)
	}
	if old := Surplus(all, 9); len(old) != 0 {
		t.Errorf("surplus of too few: %v", old)
	}
}

func TestDue(t *testing.T) {
	now, day := time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC), 24*time.Hour
	for name, tc := range map[string]struct{ newest, want time.Duration }{
		"an hour ago":   {-time.Hour, 23 * time.Hour},
		"long ago":      {-10 * day, 0},
		"in the future": {time.Hour, 0},
	} {
		if got := Due([]Kept{{Created: now.Add(tc.newest)}}, day, now).Sub(now); got != tc.want {
			t.Errorf("%s: in %v, want %v", name, got, tc.want)
		}
	}
	if got := Due(nil, day, now); !got.Equal(now) {
		t.Errorf("none yet: %v", got)
	}
}

// RS-14: a pod that changes its volume while it is written cannot have what lies outside put into the backup, from where a restore would bring
// it into the volume; nor hold the backup up with a pipe.
func TestChangedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	volume, outside := filepath.Join(dir, "v"), filepath.Join(dir, "outside")
	for _, d := range []string{filepath.Join(volume, "a"), filepath.Join(volume, "b"), outside} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const secret = "what the pod may not read"
	if err := errors.Join(os.WriteFile(filepath.Join(outside, "f"), []byte(secret), 0o600), os.WriteFile(filepath.Join(volume, "a", "f"), nil, 0o600),
		os.WriteFile(filepath.Join(volume, "b", "f"), nil, 0o600), os.Symlink(outside, filepath.Join(volume, "c")),
		os.Symlink(filepath.Join(outside, "f"), filepath.Join(volume, "b", "g")), syscall.Mkfifo(filepath.Join(volume, "b", "h"), 0o600)); err != nil {
		t.Fatal(err)
	}
	exchange := func(one, other string) error {
		return unix.Renameat2(unix.AT_FDCWD, filepath.Join(volume, one), unix.AT_FDCWD, filepath.Join(volume, other), unix.RENAME_EXCHANGE)
	}
	done := make(chan struct{})
	var pod sync.WaitGroup
	for _, pair := range [][2]string{{"a", "c"}, {"b/f", "b/g"}, {"b/f", "b/h"}} {
		pod.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := exchange(pair[0], pair[1]); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 2000 {
		var out bytes.Buffer
		w := &Writer{tar: tar.NewWriter(&out)}
		if err := w.AddTree("v", volume); err != nil {
			t.Error(err)
			break
		}
		if strings.Contains(out.String(), secret) {
			t.Error("the backup has what lies outside of the volume")
			break
		}
	}
	close(done)
	pod.Wait()
}
