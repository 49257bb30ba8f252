// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == ChildWord {
		if err := Child(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// mounted is an empty disk on a folder.
func mounted(t *testing.T) (*Disk, string) {
	t.Helper()
	d, err := Start(t.Output())
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := d.Mount(dir); err != nil {
		t.Fatal(err)
	}
	return d, dir
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func writeFile(t *testing.T, path, text string, sync bool) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	must(t, err)
	_, err = f.WriteString(text)
	must(t, err)
	if sync {
		must(t, f.Sync())
	}
	must(t, f.Close())
}

func content(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "error: " + errors.Unwrap(err).Error()
	}
	return string(data)
}

// What is done to files is seen, and is there after what did it was killed, synced or not (RS-07).
func TestKilledProcessLosesNothing(t *testing.T) {
	d, dir := mounted(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.MkdirAll(at("a/b"), 0o700))
	writeFile(t, at("a/b/f"), "one", false)
	writeFile(t, at("gone"), "x", true)
	must(t, os.Remove(at("gone")), os.Rename(at("a/b/f"), at("a/g")), os.Symlink("g", at("a/l")), os.Link(at("a/g"), at("h")), os.Chmod(at("a/g"), 0o640))
	writeFile(t, at("a/short"), "longer than that", false)
	must(t, os.Truncate(at("a/short"), 6), os.Truncate(at("a/short"), 8))
	look := func(when string) {
		t.Helper()
		got := fmt.Sprint(content(at("a/l")), content(at("h")), content(at("gone")), content(at("a/b/f")))
		if want := "oneone" + "error: no such file or directory" + "error: no such file or directory"; got != want {
			t.Errorf("%s: %s", when, got)
		}
		if got := content(at("a/short")); got != "longer\x00\x00" {
			t.Errorf("%s: %q", when, got)
		}
		info, err := os.Stat(at("h"))
		if err != nil || info.Mode() != 0o640 || info.Sys().(*syscall.Stat_t).Nlink != 2 {
			t.Errorf("%s: %v %v", when, info, err)
		}
		names, _ := filepath.Glob(at("*"))
		if len(names) != 2 {
			t.Errorf("%s: %q", when, names)
		}
	}
	look("at once")
	must(t, d.Kill())
	writeFile(t, at("late"), "a ghost wrote it", true)
	must(t, d.Remount())
	look("after a kill")
	if _, err := os.Stat(at("late")); err == nil {
		t.Error("what was killed went on writing")
	}
}

// A loss of power leaves what was synced, and of the rest no more than the model says (RS-07).
func TestLossOfPower(t *testing.T) {
	d, dir := mounted(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	old, newer := strings.Repeat("o", 3*sectorSize), strings.Repeat("n", 3*sectorSize)
	seen := map[string]bool{}
	for seed := range uint64(60) {
		must(t, d.Mount(dir))
		writeFile(t, at("synced"), old, true)
		writeFile(t, at("over"), old, true)
		f, err := os.OpenFile(at("over"), os.O_WRONLY, 0)
		must(t, err)
		_, err = f.WriteAt([]byte(newer), 0)
		must(t, err, f.Close())
		writeFile(t, at("tmp"), newer, false)
		must(t, os.Rename(at("tmp"), at("renamed")))
		must(t, d.PowerOff(LoseSome, seed), d.Remount())
		if got := content(at("synced")); got != old {
			t.Fatalf("seed %d: what was synced is %q", seed, got)
		}
		over := content(at("over"))
		for s := range 3 {
			sector := over[s*sectorSize : (s+1)*sectorSize]
			if strings.Trim(sector, "o") != "" && strings.Trim(sector, "n") != "" {
				t.Fatalf("seed %d: a torn sector: %q", seed, sector)
			}
		}
		switch {
		case strings.Contains(over, "on"), strings.Contains(over, "no"):
			seen["torn"] = true
		}
		switch got := content(at("renamed")); {
		case strings.HasPrefix(got, "error"):
			seen["not renamed"] = true
			if c := content(at("tmp")); !strings.HasPrefix(c, "error") {
				seen["there under its first name"] = true
			}
		case got == "":
			seen["renamed and empty"] = true
		case strings.Trim(got, "n") != "":
			t.Fatalf("seed %d: a file that only grew holds %q", seed, got)
		case len(got) < len(newer):
			seen["renamed and cut"] = true
		default:
			seen["renamed and whole"] = true
		}
	}
	for _, want := range []string{"torn", "not renamed", "there under its first name", "renamed and empty", "renamed and cut", "renamed and whole"} {
		if !seen[want] {
			t.Errorf("in 60 losses of power none left a file %s", want)
		}
	}
}

// An fsync of a folder commits its names, not what the files hold; and what the kernel has written back is there (RS-07).
func TestNamesAndSettling(t *testing.T) {
	d, dir := mounted(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	writeFile(t, at("f"), "content", false)
	folder, err := os.Open(dir)
	must(t, err, folder.Sync(), folder.Close(), d.PowerOff(LoseAll, 1), d.Remount())
	if got := content(at("f")); got != "" {
		t.Errorf("the folder was synced, and the file holds %q", got)
	}
	writeFile(t, at("g"), "content", false)
	must(t, d.Settle(), d.PowerOff(LoseAll, 1), d.Remount())
	if got := content(at("g")); got != "content" {
		t.Errorf("written back was %q", got)
	}
}

// A full disk takes what has its room already, and nothing else (RS-02).
func TestFullDisk(t *testing.T) {
	d, dir := mounted(t)
	f, err := os.Create(filepath.Join(dir, "f"))
	must(t, err)
	defer f.Close()
	must(t, unix.Fallocate(int(f.Fd()), 0, 0, 8*pageSize), d.Fail(Faults{Full: true}, 1))
	if _, err := f.WriteAt(make([]byte, 8*pageSize), 0); err != nil {
		t.Errorf("into what was allocated: %v", err)
	}
	if _, err := f.WriteAt(make([]byte, 100), 8*pageSize-50); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("beyond it: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "g"), 0o700); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a new folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "h"), []byte("content"), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a new file: %v", err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil || fs.Bavail != 0 {
		t.Errorf("it says that %d pages are free (%v)", fs.Bavail, err)
	}
	must(t, d.Fail(Faults{}, 1))
	if _, err := f.WriteAt(make([]byte, 100), 8*pageSize-50); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// An fsync that fails says so once, and what it did not write is never written, though readers see it (RS-07).
func TestFailingSync(t *testing.T) {
	d, dir := mounted(t)
	path := filepath.Join(dir, "f.wal")
	old, newer := bytes.Repeat([]byte("o"), 64*sectorSize), bytes.Repeat([]byte("n"), 64*sectorSize)
	writeFile(t, path, string(old), true)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	must(t, d.Fail(Faults{SyncFails: ".wal"}, 1))
	_, err = f.WriteAt(newer, 0)
	must(t, err)
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("the first: %v", err)
	}
	if err := f.Sync(); err != nil {
		t.Errorf("the second: %v", err)
	}
	if got := content(path); got != string(newer) {
		t.Errorf("a reader sees %q", got)
	}
	must(t, d.PowerOff(LoseAll, 1), d.Remount())
	if got := content(path); got == string(newer) || len(got) != len(newer) || strings.Trim(got, "on") != "" {
		t.Errorf("on the disk is %q", got)
	}
}

// A file that is mapped shows what is written, and after a loss of power what the disk has (RS-07).
func TestMapped(t *testing.T) {
	d, dir := mounted(t)
	path := filepath.Join(dir, "db")
	writeFile(t, path, strings.Repeat("o", pageSize), true)
	look := func() string {
		f, err := os.Open(path)
		must(t, err)
		defer f.Close()
		m, err := unix.Mmap(int(f.Fd()), 0, pageSize, unix.PROT_READ, unix.MAP_SHARED)
		must(t, err)
		defer func() { must(t, unix.Munmap(m)) }()
		return string(m[:1])
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	m, err := unix.Mmap(int(f.Fd()), 0, pageSize, unix.PROT_READ, unix.MAP_SHARED)
	must(t, err)
	_, err = f.WriteAt([]byte(strings.Repeat("n", pageSize)), 0)
	must(t, err)
	if m[0] != 'n' {
		t.Errorf("the map shows %q after a write", m[0])
	}
	must(t, unix.Munmap(m), f.Close(), d.PowerOff(LoseAll, 1), d.Remount())
	if got := look(); got != "o" {
		t.Errorf("the disk has %q", got)
	}
	must(t, d.Fail(Faults{ReadFails: "db"}, 1), d.Kill(), d.Remount(), d.Fail(Faults{ReadFails: "db"}, 1))
	if got := content(path); got != "error: input/output error" {
		t.Errorf("unreadable, it reads %q", got)
	}
}

// The power can end in the middle of a write: what was synced until then is there, nothing is synced afterwards, and the write itself may be
// torn (RS-07).
func TestPowerEndsInAWrite(t *testing.T) {
	d, dir := mounted(t)
	path := filepath.Join(dir, "f")
	torn := false
	for seed := range uint64(20) {
		must(t, d.Mount(dir))
		writeFile(t, path, strings.Repeat("o", 4*sectorSize), true)
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		must(t, err, d.Fail(Faults{PowerEnds: 9, Loss: LoseSome}, seed))
		_, err = f.WriteAt([]byte(strings.Repeat("1", 2*sectorSize)), 0)
		must(t, err, f.Sync(), d.Fail(Faults{PowerEnds: 1, Loss: LoseSome}, seed))
		_, err = f.WriteAt([]byte(strings.Repeat("2", 2*sectorSize)), 2*sectorSize)
		must(t, err)
		if err := f.Sync(); !errors.Is(err, syscall.EIO) {
			t.Errorf("without power a sync says %v", err)
		}
		must(t, f.Close(), d.Remount())
		got := content(path)
		if !strings.HasPrefix(got, strings.Repeat("1", 2*sectorSize)) {
			t.Fatalf("what was synced before is %q", got)
		}
		torn = torn || strings.Contains(got, "2o") || strings.Contains(got, "o2")
	}
	if !torn {
		t.Error("no write was torn in 20 losses of power")
	}
}
