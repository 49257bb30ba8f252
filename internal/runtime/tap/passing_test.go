// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/wherryproject/wherry/internal/leaktest"
)

// passing makes a container's output one that only passes.
func passing(s *Spec) { s.FromNow = true }

// joined is a client of a container whose output only passes.
type joined struct {
	t    *testing.T
	past string // what the log had when it came
	out  *io.PipeReader
	in   *io.PipeWriter
	done chan error
}

func join(t *testing.T, taps *Taps, s *fakeShim) *joined {
	t.Helper()
	out, to := io.Pipe()
	from, in := io.Pipe()
	j := &joined{t: t, out: out, in: in, done: make(chan error, 1)}
	came := make(chan struct{})
	o := Options{Stdin: from, Stdout: to, Stderr: to, Past: func(log io.ReaderAt, size int64) error {
		defer close(came)
		text, err := io.ReadAll(io.NewSectionReader(log, 0, size))
		j.past = printed(string(text))
		return err
	}}
	go func() {
		err := taps.Attach(t.Context(), "c", o, s, nil)
		_ = to.Close()
		j.done <- err
	}()
	<-came
	return j
}

// printed is what a log says that was printed.
func printed(log string) string {
	var b strings.Builder
	for line := range strings.Lines(log) {
		fields := strings.SplitN(line, " ", 4)
		b.WriteString(strings.TrimSuffix(fields[3], "\n"))
		if fields[2] == "F" {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func (j *joined) reads(want string) {
	j.t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(j.out, got); err != nil || string(got) != want {
		j.t.Errorf("a client saw %q (%v), want %q", got, err, want)
	}
}

func (j *joined) ends(want string, as error) {
	j.t.Helper()
	rest, _ := io.ReadAll(j.out)
	if err := <-j.done; !errors.Is(err, as) || string(rest) != want {
		j.t.Errorf("a client ended with %q and %v, want %q and %v", rest, err, want, as)
	}
	_ = j.in.Close()
}

// EC-15, EC-16: of a container whose output only passes clients see the log and what it does not have, such as a
// prompt; one whose input ends leaves, and the container's goes on; the log has all, also what the ring has let go, and
// with another process in between.
func TestPassing(t *testing.T) {
	defer leaktest.None(t)
	dir := t.TempDir()
	taps := testTaps(t, dir)
	s := container(t, taps, dir, false, passing)
	early := strings.Repeat("0123456789abcde\n", 2*passingSize/16)
	_, _ = io.WriteString(s.out, early+"$ ")
	_, _ = io.WriteString(s.err, "whole\npart")
	await(t, taps, len(early+"$ whole\npart"), len(early+"whole\n"))
	first, second := join(t, taps, s), join(t, taps, s)
	for _, c := range []*joined{first, second} {
		if got := strings.Replace(c.past, "whole\n", "", 1); got != early {
			t.Errorf("a client was shown %d bytes of the log, want %d", len(c.past), len(early))
		}
		got := make([]byte, 6)
		if _, err := io.ReadFull(c.out, got); err != nil || string(got) != "$ part" && string(got) != "part$ " {
			t.Errorf("a client saw %q (%v), want the lines that had not ended", got, err)
		}
		go func() { _, _ = io.WriteString(c.in, "in\n") }()
		if _, err := io.ReadFull(s.in, got[:3]); err != nil || string(got[:3]) != "in\n" {
			t.Errorf("the container read %q (%v)", got, err)
		}
	}
	_ = first.in.Close()
	first.ends("", nil)
	_, _ = io.WriteString(s.out, "three\n")
	second.reads("three\n")
	if taps.Kept("c") || !taps.Passes("c") || taps.Passes("other") {
		t.Error("it does not know whose output is kept")
	}
	taps.Stop()
	second.ends("", ErrStopped)

	_, _ = io.WriteString(s.out, "nobody there\n")
	taps = testTaps(t, dir)
	taps.Recover()
	before := early + "$ three\nnobody there\n"
	await(t, taps, len(before+"whole\npart"), len(before+"whole\n"))
	third := join(t, taps, s)
	third.reads("part")
	last, _ := taps.find("c")
	_, _ = io.WriteString(s.out, "last")
	third.reads("last")
	s.end()
	third.ends("", nil)
	last.work.Wait()
	taps.Stop()
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(dir, "c", ringFile), &st); err != nil || st.Size < passingSize ||
		st.Blocks*512 > passingSize/2 {
		t.Errorf("the ring of a container that has ended takes %d bytes of the disk (%v)", st.Blocks*512, err)
	}
	text, err := os.ReadFile(s.spec.Log)
	if err != nil {
		t.Fatal(err)
	}
	log := printed(string(text))
	if got := strings.NewReplacer("whole\n", "", "part", "").Replace(log); got != before+"last" {
		t.Errorf("the log has %d bytes, want %d", len(got), len(before+"last"))
	}
	after := join(t, taps, s)
	if after.ends("", nil); after.past != log || !taps.Passes("c") || taps.Kept("c") {
		t.Errorf("of one that has ended %d bytes are shown, want %d", len(after.past), len(log))
	}
}

// EC-15: the end of a client's input is the container's with stdinOnce; the client stays for the output.
func TestPassingStdinOnce(t *testing.T) {
	defer leaktest.None(t)
	dir := t.TempDir()
	taps := testTaps(t, dir)
	s := container(t, taps, dir, true, passing)
	c := join(t, taps, s)
	_ = c.in.Close()
	<-s.closedStdin
	_, _ = io.WriteString(s.out, "after\n")
	closeAll([]*os.File{s.out, s.keepOut, s.err, s.keepErr})
	c.ends("after\n", nil)
	_ = s.in.Close()
	taps.Stop()
}

// EC-15: the end of the first client's input is the container's also while another one's goes on: that stays for the
// output, and nobody reads what it still says.
func TestPassingStdinOnceOfTwo(t *testing.T) {
	defer leaktest.None(t)
	dir := t.TempDir()
	taps := testTaps(t, dir)
	s := container(t, taps, dir, true, passing)
	first, other := join(t, taps, s), join(t, taps, s)
	_, _ = io.WriteString(other.in, "x") // it has its end of stdin then
	if _, err := s.in.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	_ = first.in.Close()
	<-s.closedStdin
	if err := s.in.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := s.in.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("stdin goes on: %d, %v", n, err)
	}
	_, _ = io.WriteString(other.in, "too late")
	_, _ = io.WriteString(other.in, "and more")
	_, _ = io.WriteString(s.out, "after\n")
	for _, c := range []*joined{first, other} {
		c.reads("after\n")
	}
	closeAll([]*os.File{s.out, s.keepOut, s.err, s.keepErr, s.in})
	for _, c := range []*joined{first, other} {
		c.ends("", nil)
	}
	taps.Stop()
}

// EC-15: a client that goes ends nothing, and one that resizes reaches the container's terminal.
func TestPassingLeaves(t *testing.T) {
	defer leaktest.None(t)
	dir := t.TempDir()
	taps := testTaps(t, dir)
	s := container(t, taps, dir, true, passing, func(s *Spec) { s.TTY = true })
	ctx, cancel := context.WithCancel(t.Context())
	sizes := make(chan remotecommand.TerminalSize, 1)
	done := make(chan error, 1)
	go func() { done <- taps.Attach(ctx, "c", Options{TTY: true, Resize: sizes}, s, nil) }()
	sizes <- remotecommand.TerminalSize{Width: 80, Height: 24}
	if got := <-s.sizes; got.Width != 80 {
		t.Errorf("resized to %v", got)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("a client that went: %v", err)
	}
	_, _ = io.WriteString(s.out, "goes on\n")
	await(t, taps, len("goes on\n"), len("goes on\n"))
	s.end()
	taps.Stop()
}

// EC-16: whoever attaches while the container prints sees every line once, whenever that is.
func TestPassingJoins(t *testing.T) {
	defer leaktest.None(t)
	dir := t.TempDir()
	taps := testTaps(t, dir)
	s := container(t, taps, dir, false, passing)
	want := strings.Repeat("again\n", 100_000) + "end\n"
	go func() {
		_, _ = io.WriteString(s.out, want)
		s.end()
	}()
	for range 10 {
		c := join(t, taps, s)
		rest, err := io.ReadAll(c.out)
		if got := c.past + string(rest); err != nil || got != want {
			t.Errorf("a client saw %d bytes, %d of the log (%v), want %d", len(got), len(c.past), err, len(want))
		}
		c.ends("", nil)
	}
	taps.Stop()
}

// await waits until a container has printed so many bytes, and the log has so many of them.
func await(t *testing.T, taps *Taps, n, logged int) {
	t.Helper()
	p, _ := taps.find("c")
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		text, err := os.ReadFile(p.spec.Log)
		if err != nil {
			t.Fatal(err)
		}
		if int(p.ring.from(p.ring.h.head.Load()).past) >= n && len(printed(string(text))) >= logged {
			return
		}
		p.changed.Wait()
	}
}
