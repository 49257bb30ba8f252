// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

const token = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// keeper is a cp-unpack --keep that runs.
type keeper struct {
	t     *testing.T
	in    *os.File
	lines chan string // that it says
	errs  bytes.Buffer
	ended chan error
}

// keep starts one.
func keep(t *testing.T, root, path string) *keeper {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{t: t, in: w, lines: make(chan string, 1000), ended: make(chan error, 1)}
	list := Applets()
	i := slices.IndexFunc(list, func(a applet.Applet) bool { return a.Name == "cp-unpack" })
	said, saying := io.Pipe()
	c := &applet.Call{Applet: list[i], Args: []string{"--root", root, "--keep", token, path}, In: r,
		Out: bufio.NewWriter(saying), Err: &k.errs}
	go func() {
		err := list[i].Run(c)
		r.Close()
		saying.Close()
		k.ended <- err
	}()
	go func() {
		defer close(k.lines)
		for s := bufio.NewScanner(said); s.Scan(); {
			k.lines <- s.Text()
		}
	}()
	t.Cleanup(func() { w.Close() })
	return k
}

// says is the next line that is no report of how far it is.
func (k *keeper) says() string {
	k.t.Helper()
	for line := range k.lines {
		if !strings.HasPrefix(line, "at ") {
			return line
		}
	}
	return ""
}

// send writes; one that has ended does not hear it.
func (k *keeper) send(p []byte) { _, _ = k.in.Write(p) }

// end closes its input and waits.
func (k *keeper) end() error {
	k.in.Close()
	return <-k.ended
}

// framed is a piece of an archive in frames.
func framed(p []byte) (out []byte) {
	for part := range slices.Chunk(p, 60_000) {
		out = append(out, frameData, byte(len(part)>>16), byte(len(part)>>8), byte(len(part)))
		out = append(out, part...)
	}
	return out
}

var (
	theEnd    = []byte{frameEnd, 0, 0, 0}
	calledOff = []byte{frameCalled, 0, 0, 0}
)

// keptEntry is one entry of an archive, without the archive's end.
func keptEntry(t *testing.T, h tar.Header, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	h.Size, h.Mode, h.ModTime = int64(len(content)), 0o640, time.Unix(1700000000, 0)
	h.Uid, h.Gid = os.Getuid(), os.Getgid()
	if err := w.WriteHeader(&h); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func askFor(t *testing.T, name string, size int) []byte {
	return keptEntry(t, tar.Header{Name: name, PAXRecords: map[string]string{AskRecord: strconv.Itoa(size)}}, nil)
}

// goOn asks, and sends what is missing, as a sender does.
func goOn(t *testing.T, dir, name string, content []byte) (has int64) {
	t.Helper()
	k := keep(t, dir, "/")
	if got := k.says(); got != greeting+intoFolder {
		t.Fatalf("greeting %q", got)
	}
	k.send(framed(askFor(t, name, len(content))))
	words := strings.Fields(k.says())
	if len(words) != 3 {
		t.Fatalf("answer %q", words)
	}
	has, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil || has > int64(len(content)) {
		t.Fatalf("answer %q", words)
	}
	same := words[2] == fmt.Sprintf("%x", sha256.Sum256(content[:has]))
	switch {
	case same && words[0] == "whole":
	case same && has > 0:
		k.send(framed(keptEntry(t, tar.Header{Name: name,
			PAXRecords: map[string]string{OffsetRecord: words[1]}}, content[has:])))
	default:
		has = 0
		k.send(framed(keptEntry(t, tar.Header{Name: name}, content)))
	}
	k.send(theEnd)
	if err := k.end(); err != nil || k.errs.Len() > 0 {
		t.Fatalf("%v: %s", err, &k.errs)
	}
	return has
}

func random(size int) []byte {
	b := make([]byte, size)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return b
}

// only checks that a folder has one file, and what is in it.
func only(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("there are %v, %v", entries, err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%s has %d bytes of %d, or others: %v", name, len(got), len(content), err)
	}
}

// DA-09, IX-04: wherever an archive is cut off, what there is of its file is kept under another name, and the file is
// whole when the rest has come.
func TestKeepGoesOn(t *testing.T) {
	content := random(300_001)
	archive := append(framed(keptEntry(t, tar.Header{Name: "f"}, content)), theEnd...)
	for _, cut := range []int{0, 1, 4, 300, 515, 516, 517, 60_000, 60_004, 60_006, 200_000, 300_500, 300_540,
		len(archive) - 4, len(archive) - 1} {
		t.Run(strconv.Itoa(cut), func(t *testing.T) {
			dir := t.TempDir()
			k := keep(t, dir, "/")
			k.send(archive[:cut])
			if err := k.end(); err == nil {
				t.Error("an archive that was cut off is well")
			}
			there, err := os.ReadFile(filepath.Join(dir, "f"))
			if err == nil && !bytes.Equal(there, content) {
				t.Errorf("%d bytes of %d have the name", len(there), len(content))
			}
			if has := goOn(t, dir, "f", content); cut > 60_010 && has < int64(cut-60_004-1024) {
				t.Errorf("of %d bytes it had %d", cut, has)
			}
			only(t, dir, "f", content)
		})
	}
}

// IX-04: a copy that is called off leaves what was there, and nothing else.
func TestKeepCalledOff(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := keep(t, dir, "/")
	k.send(framed(keptEntry(t, tar.Header{Name: "f"}, random(200_000))[:100_000]))
	k.send(calledOff)
	if err := k.end(); err == nil || k.errs.Len() > 0 {
		t.Errorf("%v: %s", err, &k.errs)
	}
	only(t, dir, "f", []byte("old"))
}

// DA-09: a part that is not what was sent, or a rest of which there is no beginning, does not become a file.
func TestKeepOtherContent(t *testing.T) {
	dir, content := t.TempDir(), random(200_000)
	k := keep(t, dir, "/")
	k.send(framed(keptEntry(t, tar.Header{Name: "f"}, content)[:100_000]))
	if err := k.end(); err == nil {
		t.Error("cut off, and well")
	}
	part := filepath.Join(dir, (&kept{token: token}).partName("f"))
	f, err := os.OpenFile(part, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("damage"), 5000); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if has := goOn(t, dir, "f", content); has != 0 {
		t.Errorf("%d damaged bytes were taken for right", has)
	}
	only(t, dir, "f", content)

	k = keep(t, dir, "/")
	k.send(framed(keptEntry(t, tar.Header{Name: "g", PAXRecords: map[string]string{OffsetRecord: "10"}}, content)))
	k.send(theEnd)
	if _ = k.end(); !strings.Contains(k.errs.String(), "of which the beginning is not here") {
		t.Errorf("a rest alone: %s", &k.errs)
	}
	only(t, dir, "f", content)
}

// DA-09: what a path is that a copy goes to is found out in the same session.
func TestKeepInto(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/": intoFolder, "/file": intoName, "/new": intoName, "new": intoName,
		"/new/": "", "/no/new": "", "/file/": ""} {
		k := keep(t, dir, path)
		k.send(theEnd)
		got, err := strings.TrimPrefix(k.says(), greeting), k.end()
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q, want %q; %v", path, got, want, err)
		}
	}
}

// DA-09: a process that still writes to a part, for it has not heard of the cut, never writes to what another goes on
// with.
func TestKeepHeld(t *testing.T) {
	root := t.TempDir()
	u, err := NewUnpacker(root, "/")
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	u.kept = &kept{token: token, say: func(string) {}}
	first, err := u.openPart(u.parentFD, "f", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.file.WriteString("what has come"); err != nil {
		t.Fatal(err)
	}
	other, err := u.openPart(u.parentFD, "f", true)
	if err != nil || other.name == first.name {
		t.Fatalf("one part for two: %+v, %v", other, err)
	}
	if text, err := os.ReadFile(filepath.Join(root, other.name)); err != nil || string(text) != "what has come" {
		t.Errorf("it does not go on from %q, %v", text, err)
	}
	other.drop(u.parentFD)
	// at once: nothing is asked for
	if other, err = u.openPart(u.parentFD, "f", false); err != nil || other.name == first.name {
		t.Fatalf("one part for two: %+v, %v", other, err)
	}
	other.drop(u.parentFD)
	began := time.Now()
	go func() { // it ends in the meantime
		time.Sleep(3 * lockPause)
		first.file.Close()
	}()
	second, err := u.openPart(u.parentFD, "f", true)
	if err != nil || second.name != first.name || time.Since(began) < 2*lockPause {
		t.Errorf("%+v, %v after %s", second, err, time.Since(began))
	}
	for what, make := range map[string]func(name string) error{
		"a link":      func(name string) error { return os.Symlink("/etc/passwd", name) },
		"a hard link": func(name string) error { return os.Link(filepath.Join(root, "other"), name) },
		"a folder":    func(name string) error { return os.Mkdir(name, 0o700) },
	} {
		name := filepath.Join(root, first.name)
		if err := os.WriteFile(filepath.Join(root, "other"), []byte("other"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if err := make(name); err != nil {
			t.Fatal(err)
		}
		p, err := u.openPart(u.parentFD, "f", true)
		if err != nil || p.name == first.name {
			t.Errorf("%s is taken for a part: %+v, %v", what, p, err)
			continue
		}
		p.drop(u.parentFD)
	}
	second.file.Close()
}

// IX-04: what a copy has left that nobody came back for is taken away by the next one; what is young, held, or no part,
// is not.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-2 * staleAge)
	names := map[string]bool{strings.Repeat("A", 26): false, strings.Repeat("B", 26): true,
		strings.Repeat("C", 26): true, "mine": true}
	for token := range names {
		name := filepath.Join(dir, partPrefix+token)
		if err := os.WriteFile(name, []byte("part"), 0o600); err != nil {
			t.Fatal(err)
		}
		if token[0] == 'B' {
			continue
		}
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
		if token[0] == 'C' {
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, errs, err := call(t, "cp-unpack", archive(t, "f", []byte("new")), "--root", dir, "/"); err != nil ||
		errs != "" {
		t.Fatalf("%v, %s", err, errs)
	}
	for token, stays := range names {
		if _, err := os.Stat(filepath.Join(dir, partPrefix+token)); (err == nil) != stays {
			t.Errorf("%s: %v, stays: %t", token, err, stays)
		}
	}
}

// IX-04: a disk without room for a file ends its copy at once, with the reason, and what has come of it gives its room
// back.
func TestKeepNoSpace(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	k := keep(t, dir, "/")
	go k.send(framed(keptEntry(t, tar.Header{Name: "f"}, random(2_000_000))))
	if err := <-k.ended; err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("%v: %s", err, &k.errs)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("it left %v, %v", entries, err)
	}
}

// FuzzFrames: whatever comes in the place of frames, no more is read than came, and its end in the middle is no end.
func FuzzFrames(f *testing.F) {
	f.Add(append(framed([]byte("text")), theEnd...))
	f.Add(append(framed(nil), calledOff...))
	f.Add([]byte("d\x00\x00\x05abc"))
	f.Add([]byte("e\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := io.ReadAll(&frames{from: bytes.NewReader(data)})
		if len(got) > len(data) {
			t.Errorf("%d bytes of %d", len(got), len(data))
		}
		if err == nil && !bytes.Contains(data, theEnd) {
			t.Error("there is an end that nobody sent")
		}
	})
}
