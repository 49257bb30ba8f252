// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/leaktest"
)

// foreign is a container of a runtime that hands its shim the fifos' own names.
type foreign struct {
	t     *testing.T
	dir   string
	spec  Spec
	inode uint64 // of the runtime's stdout
	shim  []*os.File
}

func newForeign(t *testing.T) *foreign {
	t.Helper()
	dir := t.TempDir()
	at := filepath.Join(dir, "c", "io")
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	f := &foreign{t: t, dir: dir, spec: Spec{Stdout: filepath.Join(at, "stdout"), Stderr: filepath.Join(at, "stderr"),
		Log: filepath.Join(dir, "log")}}
	for _, path := range f.spec.paths() {
		if err := unix.Mkfifo(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	f.inode = f.now()
	return f
}

// now is the inode of what has the name of the runtime's stdout.
func (f *foreign) now() uint64 {
	f.t.Helper()
	n, err := inode(f.spec.Stdout)
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

// opens is what a shim does at a start: it opens what it was told.
func (f *foreign) opens() error {
	for _, path := range f.spec.paths() {
		f.shim = append(f.shim, open(f.t, path, os.O_WRONLY), open(f.t, path, os.O_RDONLY))
	}
	return nil
}

func (f *foreign) says(text string) {
	f.t.Helper()
	if _, err := io.WriteString(f.shim[0], text); err != nil {
		f.t.Fatal(err)
	}
}

func (f *foreign) ends() { closeAll(f.shim) }

// nothing checks that no exchange is noted any more.
func (f *foreign) nothing() {
	f.t.Helper()
	if _, err := os.Stat(filepath.Join(f.dir, "c", exchangeFile)); !errors.Is(err, os.ErrNotExist) {
		f.t.Errorf("an exchange is noted still (%v)", err)
	}
}

// EC-16 on a runtime that cannot be told of a tap: its shim gets the tap's fifos under the runtime's names, which are
// the runtime's again when it has opened them, also for the next process.
func TestStartExchanged(t *testing.T) {
	defer leaktest.None(t)
	f := newForeign(t)
	taps := testTaps(t, f.dir)
	if err := taps.StartExchanged("c", f.spec, f.opens); err != nil {
		t.Fatal(err)
	}
	if f.now() != f.inode {
		t.Error("the runtime's fifo has lost its name")
	}
	f.nothing()
	f.says("one\n")
	taps.Stop()
	f.says("two\n")
	taps = testTaps(t, f.dir)
	taps.RecoverExchanged(func(string) bool { return true })
	if live := taps.Live(); len(live) != 1 || live[0] != "c" {
		t.Errorf("live: %q", live)
	}
	text := seen(t, taps, &fakeShim{})
	f.says("three\n")
	f.ends()
	if got := text(); got != "one\ntwo\nthree\n|" {
		t.Errorf("a client saw %q", got)
	}
}

// A process that ends at once, whose fifos the runtime has removed before its start returns, as containerd 1.6 does.
func TestStartExchangedEndsAtOnce(t *testing.T) {
	defer leaktest.None(t)
	f := newForeign(t)
	taps := testTaps(t, f.dir)
	err := taps.StartExchanged("c", f.spec, func() error {
		_ = f.opens()
		f.says("short\n")
		f.ends()
		return os.RemoveAll(filepath.Dir(f.spec.Stdout))
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := seen(t, taps, &fakeShim{})(); got != "short\n|" {
		t.Errorf("a client saw %q", got)
	}
	f.nothing()
}

// A start that fails leaves all as it was.
func TestStartExchangedFails(t *testing.T) {
	defer leaktest.None(t)
	f := newForeign(t)
	taps := testTaps(t, f.dir)
	sorry := errors.New("sorry")
	if err := taps.StartExchanged("c", f.spec, func() error { return sorry }); !errors.Is(err, sorry) {
		t.Errorf("the error is %v", err)
	}
	if f.now() != f.inode || taps.Kept("c") {
		t.Errorf("the runtime's name is its own: %v; kept: %v", f.now() == f.inode, taps.Kept("c"))
	}
	f.nothing()
}

// A process that is killed in the middle of a start: the next one gives the names back, and goes on if the container
// was started.
func TestRecoverExchanged(t *testing.T) {
	for name, started := range map[string]bool{"started": true, "not started": false} {
		t.Run(name, func(t *testing.T) {
			defer leaktest.None(t)
			f := newForeign(t)
			killed := testTaps(t, f.dir)
			r, err := killed.prepare("c", f.spec)
			if err != nil {
				t.Fatal(err)
			}
			r.close()
			release, err := f.spec.hold()
			if err != nil {
				t.Fatal(err)
			}
			if err := killed.noteExchange("c", f.spec); err != nil {
				t.Fatal(err)
			}
			if err := exchange(f.spec.paths()[:1]); err != nil { // it did not get further
				t.Fatal(err)
			}
			if started {
				f.shim = []*os.File{open(t, f.spec.Stdout, os.O_WRONLY), open(t, f.spec.Stderr+Suffix, os.O_WRONLY)}
				f.says("late\n")
			}
			taps := testTaps(t, f.dir)
			taps.RecoverExchanged(func(string) bool { return started })
			release()
			if f.now() != f.inode {
				t.Error("the runtime's fifo has lost its name")
			}
			f.nothing()
			if taps.Kept("c") != started {
				t.Errorf("kept: %v", taps.Kept("c"))
			}
			if !started {
				if err := taps.StartExchanged("c", f.spec, f.opens); err != nil { // somebody tries again
					t.Fatal(err)
				}
				f.says("late\n")
			}
			f.ends()
			if got := seen(t, taps, &fakeShim{})(); got != "late\n|" {
				t.Errorf("a client saw %q", got)
			}
		})
	}
}

// A container that ended while no server ran, whose fifos the runtime has removed: what was kept is shown, and that
// there may be more.
func TestRecoverExchangedEndedAlone(t *testing.T) {
	defer leaktest.None(t)
	f := newForeign(t)
	taps := testTaps(t, f.dir)
	if err := taps.StartExchanged("c", f.spec, f.opens); err != nil {
		t.Fatal(err)
	}
	stuck, end := io.Pipe()
	go func() { _ = taps.Attach(t.Context(), "c", Options{Stdout: end}, &fakeShim{}, nil); _ = end.Close() }()
	f.says("kept\n")
	if _, err := io.ReadFull(stuck, make([]byte, len("kept\n"))); err != nil {
		t.Fatal(err)
	}
	taps.Stop()
	_, _ = io.ReadAll(stuck)
	f.says("lost\n")
	f.ends()
	if err := os.RemoveAll(filepath.Dir(f.spec.Stdout)); err != nil {
		t.Fatal(err)
	}
	taps = testTaps(t, f.dir)
	taps.RecoverExchanged(func(string) bool { return false })
	want := "kept\n|[wherry: the container exited while the server was not running: its last output may be missing]\n"
	for range 2 {
		if got := seen(t, taps, &fakeShim{})(); got != want {
			t.Errorf("a client saw %q", got)
		}
	}
	for end := time.Now().Add(20 * time.Second); len(taps.Live()) > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // only the runtime is told that the log is whole, and its fifos are gone
	}
	if text, err := os.ReadFile(f.spec.Log); err != nil || !bytes.Contains(text, []byte("stdout F kept\n")) {
		t.Errorf("log %q, %v", text, err)
	}
}
