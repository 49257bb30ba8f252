// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"
)

func sample(runc string) Files {
	return Files{fstest.MapFS{
		Runc:  {Data: []byte(runc)},
		Shim:  {Data: bytes.Repeat([]byte("shim"), 100_000)},
		CNI:   {Data: []byte("cni")},
		Pause: {Data: []byte("pause")},
	}}
}

func TestUnpackLeavesRightFilesAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bin")
	if err := sample("one").Unpack(dir); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour).Truncate(time.Second)
	for _, name := range []string{Runc, Shim, CNI} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode() != 0o755 {
			t.Fatalf("%s: %v, mode %v, want 0755", name, err, info.Mode())
		}
		if err := os.Chtimes(filepath.Join(dir, name), long, long); err != nil {
			t.Fatal(err)
		}
	}
	if err := sample("two").Unpack(dir); err != nil { // same length, other content
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, Runc)); string(got) != "two" {
		t.Errorf("runc holds %q, want the new content", got)
	}
	for _, name := range []string{Shim, CNI} {
		if info, _ := os.Stat(filepath.Join(dir, name)); !info.ModTime().Equal(long) {
			t.Errorf("%s was written again although its content was right", name)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 3 {
		t.Errorf("folder has %d entries (%v), want just the 3 programs", len(left), err)
	}
}

// A program that runs cannot be written to (ETXTBSY): it must be replaced by rename.
func TestUnpackRepairsMode(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, Runc), []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sample("one").Unpack(dir); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(filepath.Join(dir, Runc)); info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, want 0755", info.Mode())
	}
}

func TestMissingHelpers(t *testing.T) {
	empty := Files{fstest.MapFS{".gitkeep": {}}}
	if err := empty.Unpack(t.TempDir()); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("Unpack: %v, want ErrNotBuilt", err)
	}
	if _, _, err := empty.PauseImage(); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("PauseImage: %v, want ErrNotBuilt", err)
	}
}

func TestPauseHashFollowsContent(t *testing.T) {
	_, a, err := sample("x").PauseImage()
	if err != nil {
		t.Fatal(err)
	}
	_, b, _ := Files{fstest.MapFS{Pause: {Data: []byte("other")}}}.PauseImage()
	if a == b || len(a) != 12 {
		t.Errorf("hashes %q and %q, want two different ones of 12 digits", a, b)
	}
}
