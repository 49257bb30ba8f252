// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/klauspost/compress/zstd"
)

func sample(runc string) Files {
	m := fstest.MapFS{Pause: {Data: []byte("pause " + runc)}, Toolbox: {Data: []byte("toolbox " + runc)}}
	var sums bytes.Buffer
	for name, f := range m {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(f.Data), name)
	}
	for name, data := range map[string][]byte{Runc: []byte(runc), Shim: bytes.Repeat([]byte("shim"), 100_000),
		Serve: []byte("serve"), Stock: []byte("stock"), CNI: []byte("cni"), Session: []byte("session")} {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), name)
		w, err := zstd.NewWriter(nil)
		if err != nil {
			panic(err)
		}
		m[name+packed] = &fstest.MapFile{Data: w.EncodeAll(data, nil)}
	}
	m[sumsFile] = &fstest.MapFile{Data: sums.Bytes()}
	return Files{m}
}

func TestUnpackLeavesRightFilesAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bin")
	if err := sample("one").Unpack(dir); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour).Truncate(time.Second)
	for _, name := range []string{Runc, Shim, Serve, Stock, CNI} {
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
	for _, name := range []string{Shim, Serve, Stock, CNI} {
		if info, _ := os.Stat(filepath.Join(dir, name)); !info.ModTime().Equal(long) {
			t.Errorf("%s was written again although its content was right", name)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 6 {
		t.Errorf("folder has %d entries (%v), want the 5 programs and the stamp", len(left), err)
	}
}

// Whatever was done to an unpacked program, the next start sets it right.
func TestUnpackRepairs(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"mode":    func(path string) error { return os.Chmod(path, 0o600) },
		"content": func(path string) error { return os.WriteFile(path, []byte("eno"), 0o755) },
		"removed": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := sample("one").Unpack(dir); err != nil {
				t.Fatal(err)
			}
			if err := harm(filepath.Join(dir, Runc)); err != nil {
				t.Fatal(err)
			}
			if err := sample("one").Unpack(dir); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(filepath.Join(dir, Runc))
			info, _ := os.Stat(filepath.Join(dir, Runc))
			if err != nil || string(data) != "one" || info.Mode().Perm() != 0o755 {
				t.Errorf("%q, mode %v (%v), want it as it was", data, info.Mode(), err)
			}
		})
	}
}

// A program that runs cannot be written to (ETXTBSY): it is replaced by rename.
func TestUnpackWhileRunning(t *testing.T) {
	sleep, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Skip("no /bin/sleep to copy")
	}
	dir := t.TempDir()
	if err := sample(string(sleep)).Unpack(dir); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, Runc), "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if err := sample("new").Unpack(dir); err != nil {
		t.Fatal(err)
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

// A program that carries some of them gives those, and says what it does without.
func TestPart(t *testing.T) {
	m := fstest.MapFS{}
	for name, f := range sample("one").fsys.(fstest.MapFS) {
		if name != Shim+packed {
			m[name] = f
		}
	}
	m[sumsFile] = &fstest.MapFile{Data: bytes.ReplaceAll(m[sumsFile].Data, []byte(Shim), []byte("other"))}
	var got bytes.Buffer
	if err := (Files{m}).WriteProgram(Session, &got); err != nil || got.String() != "session" {
		t.Errorf("%q, %v", got.String(), err)
	}
	if err := (Files{m}).Unpack(t.TempDir()); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("Unpack: %v, want ErrNotBuilt", err)
	}
}

func TestImageHashesFollowContent(t *testing.T) {
	for name, of := range map[string]func(Files) (func() (fs.File, error), string, error){"pause": Files.PauseImage, "toolbox": Files.ToolboxImage} {
		_, a, err := of(sample("x"))
		if err != nil {
			t.Fatal(err)
		}
		_, b, _ := of(sample("y"))
		if a == b || len(a) != 12 {
			t.Errorf("%s: hashes %q and %q, want two different ones of 12 digits", name, a, b)
		}
	}
}
