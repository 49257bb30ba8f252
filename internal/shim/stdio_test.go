// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

func pipes(t *testing.T, names ...string) (paths []string) {
	t.Helper()
	return pipesIn(t, t.TempDir(), names...)
}

func pipesIn(t *testing.T, dir string, names ...string) (paths []string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// EC-16: a process gets the pipes themselves. Who reads sees all that was written, also by one that has ended before
// the reader came, and the end when the last process has closed its own; a process is not killed while nobody reads.
func TestStdio(t *testing.T) {
	p := pipes(t, "in", "out", "err")
	read := make(chan string, 2)
	for _, path := range p[1:] {
		go func() {
			f, err := os.Open(path) // as containerd's, which waits for a writer
			if err != nil {
				t.Error(err)
			}
			text, _ := io.ReadAll(f)
			f.Close()
			read <- string(text)
		}()
	}
	o, err := openStdio(t.Context(), streams{stdin: p[0], stdout: p[1], stderr: p[2]})
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	for i, f := range o.give {
		flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
		if err != nil || flags&unix.O_NONBLOCK != 0 {
			t.Errorf("stream %d is not blocking: %#x, %v", i, flags, err)
		}
	}
	if _, err := o.give[1].WriteString("out"); err != nil {
		t.Fatal(err)
	}
	process := o.give[0]
	input := make(chan string, 1)
	fd, err := unix.Dup(int(process.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		text, _ := io.ReadAll(os.NewFile(uintptr(fd), "stdin"))
		input <- string(text)
	}()
	o.given()
	if a, b := within(t, "the end of the outputs", read), within(t, "the end of both", read); a+b != "out" {
		t.Errorf("read %q and %q", a, b)
	}
	if _, err := o.stdin.WriteString("in"); err != nil { // as an attached client's
		t.Fatal(err)
	}
	if err := o.closeStdin(); err != nil {
		t.Fatal(err)
	}
	if text := within(t, "the end of the input", input); text != "in" {
		t.Errorf("the process read %q", text)
	}
	if err := o.closeStdin(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

// EC-16: streams that are not pipes are refused before anything is made.
func TestStreamsRefused(t *testing.T) {
	if err := (streams{stdin: "/a", stdout: "fifo:///b"}).check(); err != nil {
		t.Errorf("pipes: %v", err)
	}
	if err := (streams{stdout: "binary:///bin/logger"}).check(); !errors.Is(err, errdefs.ErrNotImplemented) {
		t.Errorf("a program: %v", err)
	}
}

// RS-05: an output that nobody reads is waited for as long as its call is, and no longer: a server that was killed in
// the middle of a start comes back at once.
func TestNobodyReads(t *testing.T) {
	p := pipes(t, "out")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := openStdio(ctx, streams{stdout: p[0]}); err == nil {
		t.Error("an output that nobody reads was opened")
	}
}
