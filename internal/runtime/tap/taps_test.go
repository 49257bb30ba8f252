// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/wherryproject/wherry/internal/leaktest"
)

// fakeShim opens a container's fifos as containerd's shim does: outputs for both ways, stdin likewise.
type fakeShim struct {
	t           *testing.T
	spec        Spec
	out, err    *os.File
	keepOut     *os.File
	keepErr     *os.File
	in          *os.File
	keepIn      *os.File
	closedStdin chan struct{}
	sizes       chan remotecommand.TerminalSize
}

func open(t *testing.T, path string, flag int) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (s *fakeShim) create() error {
	s.out, s.keepOut = open(s.t, s.spec.Stdout+Suffix, os.O_WRONLY), open(s.t, s.spec.Stdout+Suffix, os.O_RDONLY)
	if !s.spec.TTY {
		s.err, s.keepErr = open(s.t, s.spec.Stderr+Suffix, os.O_WRONLY), open(s.t, s.spec.Stderr+Suffix, os.O_RDONLY)
	}
	s.in, s.keepIn = open(s.t, s.spec.Stdin+Suffix, os.O_RDONLY|syscall.O_NONBLOCK),
		open(s.t, s.spec.Stdin+Suffix, os.O_WRONLY)
	return nil
}

// end is the process's end: all is closed.
func (s *fakeShim) end() { closeAll([]*os.File{s.out, s.keepOut, s.err, s.keepErr, s.in, s.keepIn}) }

// CloseStdin implements Shim.
func (s *fakeShim) CloseStdin() error {
	close(s.closedStdin)
	return s.keepIn.Close()
}

// Resize implements Shim.
func (s *fakeShim) Resize(size remotecommand.TerminalSize) error {
	s.sizes <- size
	return nil
}

// container is one with a tap on it.
func container(t *testing.T, taps *Taps, dir string, once bool, change ...func(*Spec)) *fakeShim {
	t.Helper()
	io := filepath.Join(dir, "c", "io")
	if err := os.MkdirAll(io, 0o700); err != nil {
		t.Fatal(err)
	}
	s := &fakeShim{t: t, closedStdin: make(chan struct{}), sizes: make(chan remotecommand.TerminalSize), spec: Spec{
		Stdin: filepath.Join(io, "stdin"), Stdout: filepath.Join(io, "stdout"), Stderr: filepath.Join(io, "stderr"),
		Log: filepath.Join(dir, "log"), StdinOnce: once,
	}}
	for _, f := range change {
		f(&s.spec)
	}
	for _, path := range s.spec.paths() { // the runtime makes its own
		if err := unix.Mkfifo(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := taps.Start("c", s.spec, s.create); err != nil {
		t.Fatal(err)
	}
	return s
}

func testTaps(t *testing.T, dir string) *Taps {
	return New(dir, slog.New(slog.NewTextHandler(t.Output(), nil)))
}

// seen is what a client sees until the end of all.
func seen(t *testing.T, taps *Taps, s *fakeShim) func() string {
	t.Helper()
	var out, errOut bytes.Buffer
	done := make(chan error, 1)
	go func() { done <- taps.Attach(t.Context(), "c", Options{Stdout: &out, Stderr: &errOut}, s, nil) }()
	return func() string {
		if err := <-done; err != nil {
			return err.Error()
		}
		return out.String() + "|" + errOut.String()
	}
}

// EC-15, EC-16: every client sees all from the first byte, before, during and after; a process that lets go and the
// next one that takes up change nothing, nor for the log, which is renamed meanwhile.
func TestTaps(t *testing.T) {
	defer leaktest.None(t)
	dir := t.TempDir()
	taps := testTaps(t, dir)
	early := seen(t, taps, &fakeShim{}) // before there is a container
	s := container(t, taps, dir, false)
	_, _ = io.WriteString(s.out, "one\ntwo")
	second := seen(t, taps, s)
	if !taps.Kept("c") || taps.Kept("other") {
		t.Error("it does not know whose output is kept")
	}
	if err := os.Rename(s.spec.Log, s.spec.Log+".1"); err != nil {
		t.Fatal(err)
	}
	if err := taps.ReopenLog("c", func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	taps.Stop()
	for _, got := range []string{early(), second()} {
		if got != ErrStopped.Error() {
			t.Errorf("clients of a runtime that stops get %q", got)
		}
	}

	_, _ = io.WriteString(s.out, " and more\n") // while nobody is there
	_, _ = io.WriteString(s.err, "an error")
	taps = testTaps(t, dir)
	taps.Recover()
	theirs := open(t, s.spec.Stdout, os.O_RDONLY)
	defer theirs.Close()
	third := seen(t, taps, s)
	_, _ = io.WriteString(s.out, "three\n")
	s.end()
	for i, got := range []string{third(), seen(t, taps, s)()} {
		if got != "one\ntwo and more\nthree\n|an error" {
			t.Errorf("client %d sees %q", i, got)
		}
	}
	if text, err := io.ReadAll(theirs); err != nil || len(text) > 0 { // its end is that of the log, too
		t.Errorf("the runtime gets %q, %v", text, err)
	}
	taps.Stop()
	var log string
	for _, name := range []string{s.spec.Log + ".1", s.spec.Log} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			log += strings.Join(strings.SplitN(line, " ", 4)[1:], " ")
		}
	}
	if strings.Count(log, "stdout F ") != 3 || !strings.Contains(log, "stdout F two and more\n") ||
		!strings.Contains(log, "stderr P an error\n") {
		t.Errorf("log %q", log)
	}
}

// EC-16: what a container prints while no server runs is lost if it also ends then; whoever attaches is told. One that
// goes on and has nothing to say is none of these.
func TestTapOfContainerThatEndedAlone(t *testing.T) {
	defer leaktest.None(t)
	for alone, want := range map[bool]string{
		true:  "said before|[wherry: the container exited while the server was not running: its last output may be missing]\n",
		false: "said before|",
	} {
		dir := t.TempDir()
		taps := testTaps(t, dir)
		s := container(t, taps, dir, false)
		_, _ = io.WriteString(s.out, "said before")
		stuck, end := io.Pipe()
		go func() { _ = taps.Attach(t.Context(), "c", Options{Stdout: end}, s, nil); _ = end.Close() }()
		if _, err := io.ReadFull(stuck, make([]byte, len("said before"))); err != nil {
			t.Fatal(err)
		}
		taps.Stop()
		_, _ = io.ReadAll(stuck)
		if alone {
			_, _ = io.WriteString(s.out, " and after")
			s.end()
		}
		taps = testTaps(t, dir)
		taps.Recover()
		got := seen(t, taps, s)
		if !alone {
			s.end()
		}
		if got := got(); got != want {
			t.Errorf("ended alone %v: %q", alone, got)
		}
		taps.Stop()
	}
}

// A ring that cannot be read costs what is in it, and neither the container nor its output from then on.
func TestTapOfDamagedRing(t *testing.T) {
	defer leaktest.None(t)
	dir := t.TempDir()
	taps := testTaps(t, dir)
	s := container(t, taps, dir, false)
	taps.Stop()
	if err := os.Truncate(filepath.Join(dir, "c", ringFile), 5); err != nil {
		t.Fatal(err)
	}
	taps = testTaps(t, dir)
	taps.Recover()
	got := seen(t, taps, s)
	_, _ = io.WriteString(s.out, "from now on")
	s.end()
	if got := got(); got != "from now on|" {
		t.Errorf("%q", got)
	}
	taps.Stop()
}

// EC-15: with stdinOnce the end of the first client's input ends the container's, for good; without, no client's does.
func TestTapStdin(t *testing.T) {
	defer leaktest.None(t)
	for _, once := range []bool{false, true} {
		dir := t.TempDir()
		taps := testTaps(t, dir)
		s := container(t, taps, dir, once)
		var clients sync.WaitGroup
		for i := range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			in, w := io.Pipe()
			clients.Go(func() {
				_ = taps.Attach(ctx, "c", Options{Stdin: in}, s, nil)
				_ = in.Close()
			})
			if i == 0 || !once {
				_, _ = fmt.Fprintf(w, "input %d", i)
				buf := make([]byte, 100)
				if n, err := s.in.Read(buf); err != nil || string(buf[:n]) != fmt.Sprintf("input %d", i) {
					t.Errorf("once %v: %q, %v", once, buf[:n], err)
				}
			}
			_ = w.Close()
			if once && i == 0 {
				<-s.closedStdin
				if n, err := s.in.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
					t.Errorf("stdin goes on: %d, %v", n, err)
				}
			}
			cancel()
			clients.Wait()
		}
		select {
		case <-s.closedStdin:
			if !once {
				t.Error("a client without stdinOnce ended stdin")
			}
		default:
		}
		s.end()
		taps.Stop()
	}
}

// A client that takes nothing holds the container up once the ring is full, until it goes away; another goes on getting
// all.
func TestTapSlowClient(t *testing.T) {
	defer leaktest.None(t)
	dir := t.TempDir()
	taps := testTaps(t, dir)
	s := container(t, taps, dir, false)
	ctx, cancel := context.WithCancel(t.Context())
	stuck, stuckEnd := io.Pipe()
	slow := make(chan error, 1)
	go func() { slow <- taps.Attach(ctx, "c", Options{Stdout: stuckEnd}, s, nil) }()
	_, _ = io.WriteString(s.out, "x")
	if _, err := stuck.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	other := seen(t, taps, s)
	const most = 3 * ringSize
	written := make(chan int, most/chunk+1)
	go func() {
		defer close(written)
		block := bytes.Repeat([]byte("0123456789abcde\n"), chunk/16)
		for n := 0; n < most; n += len(block) {
			_, _ = s.out.Write(block)
			written <- n + len(block)
		}
	}()
	// It comes as far as the ring and the pipes are long, and no further.
	last := 0
	for idle := false; !idle; {
		select {
		case last = <-written:
		case <-time.After(300 * time.Millisecond):
			idle = last > ringSize/2
		}
	}
	if last > ringSize+outSize+4*chunk {
		t.Errorf("%d bytes were taken from the container", last)
	}
	cancel()
	_ = stuck.Close()
	if err := <-slow; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for last = range written {
	}
	s.end()
	if got := other(); len(got) != most+2 || last != most {
		t.Errorf("the other client got %d bytes of %d", len(got)-1, most+1)
	}
	taps.Stop()
}

// EC-16, IX-05: where one client is on the way, nothing is let go before it is there: it gets all of an output that is
// longer than the ring, though the container was faster.
func TestTapAwaited(t *testing.T) {
	defer leaktest.None(t)
	dir := t.TempDir()
	taps := testTaps(t, dir)
	s := container(t, taps, dir, false, func(s *Spec) { s.Awaited = true })
	const most = 3 * ringSize
	full, written := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(written)
		block := bytes.Repeat([]byte("0123456789abcde\n"), chunk/16)
		for n := 0; n < most; n += len(block) {
			if n == ringSize/2 {
				close(full)
			}
			_, _ = s.out.Write(block)
		}
	}()
	<-full
	select {
	case <-written:
		t.Error("the container was not held up")
	case <-time.After(200 * time.Millisecond): // by then it would be through
	}
	got := seen(t, taps, s)
	<-written
	s.end()
	if text := got(); len(text) != most+1 {
		t.Errorf("the client got %d bytes of %d", len(text)-1, most)
	}
	taps.Stop()
}
