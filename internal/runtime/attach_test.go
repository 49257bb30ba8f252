// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/podspec"
)

// create makes a container, ephemeral unless changed, without starting it.
func (p *pod) create(name string, args []string, change ...func(*criapi.ContainerConfig)) string {
	p.t.Helper()
	c := &criapi.ContainerConfig{
		Metadata: &criapi.ContainerMetadata{Name: name}, Image: &criapi.ImageSpec{Image: boxImage}, Args: args, LogPath: name + ".log",
		Labels: map[string]string{cri.LabelContainerType: podspec.Ephemeral.Label()},
		Linux: &criapi.LinuxContainerConfig{SecurityContext: &criapi.LinuxContainerSecurityContext{
			NamespaceOptions: &criapi.NamespaceOption{Network: criapi.NamespaceMode_NODE, Pid: criapi.NamespaceMode_CONTAINER},
		}},
	}
	for _, f := range change {
		f(c)
	}
	res, err := p.cri.CreateContainer(p.t.Context(), &criapi.CreateContainerRequest{PodSandboxId: p.id, Config: c, SandboxConfig: p.sandbox})
	if err != nil {
		p.t.Fatalf("CreateContainer: %v", err)
	}
	return res.ContainerId
}

func (p *pod) start(id string) {
	p.t.Helper()
	if _, err := p.cri.StartContainer(p.t.Context(), &criapi.StartContainerRequest{ContainerId: id}); err != nil {
		p.t.Errorf("StartContainer: %v", err)
	}
}

// session is a client that is attached.
type session struct {
	t        *testing.T
	out, err *watchedBuffer
	in       *io.PipeWriter
	resize   chan remotecommand.TerminalSize
	cancel   context.CancelFunc
	done     chan error
}

// watchedBuffer can be waited for.
type watchedBuffer struct {
	mu      sync.Mutex
	changed *sync.Cond
	bytes.Buffer
}

func newWatchedBuffer() *watchedBuffer {
	b := &watchedBuffer{}
	b.changed = sync.NewCond(&b.mu)
	return b
}

func (b *watchedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.changed.Broadcast()
	return b.Buffer.Write(p)
}

func (b *watchedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

func (b *watchedBuffer) await(t *testing.T, text string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	late := time.Now().Add(30 * time.Second)
	wake := time.AfterFunc(30*time.Second, b.changed.Broadcast)
	defer wake.Stop()
	for !strings.Contains(b.Buffer.String(), text) {
		if time.Now().After(late) {
			t.Fatalf("%q never came; what came: %q", text, b.Buffer.String())
		}
		b.changed.Wait()
	}
}

func attach(t *testing.T, r *Runtime, id string, tty, stdin bool) *session {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &session{t: t, out: newWatchedBuffer(), err: newWatchedBuffer(), resize: make(chan remotecommand.TerminalSize), cancel: cancel, done: make(chan error, 1)}
	o := AttachOptions{TTY: tty, Stdout: s.out, Stderr: s.err, Resize: s.resize}
	in, w := io.Pipe()
	if s.in = w; stdin {
		o.Stdin = in
	}
	go func() {
		err := r.Attach(ctx, id, o)
		_ = in.Close()
		s.done <- err
	}()
	t.Cleanup(func() { cancel(); _ = w.Close() })
	return s
}

// end waits until Attach returns.
func (s *session) end() error {
	s.t.Helper()
	select {
	case err := <-s.done:
		return err
	case <-time.After(60 * time.Second):
		s.t.Fatalf("Attach does not return; out %q", s.out.String())
		return nil
	}
}

// ended is end without an error.
func (s *session) ended() {
	s.t.Helper()
	if err := s.end(); err != nil {
		s.t.Errorf("Attach: %v", err)
	}
}

func logOf(t *testing.T, p *pod, name string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(p.sandbox.LogDirectory, name+".log*"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no log of %s: %v", name, err)
	}
	var text strings.Builder
	for _, path := range append(found[1:], found[0]) { // the rotated ones first
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			f := strings.SplitN(line, " ", 4)
			if len(f) != 4 || f[1] != "stdout" && f[1] != "stderr" || f[2] != "F" && f[2] != "P" {
				t.Fatalf("a line of the log is %q", line)
			}
			if _, err := time.Parse(time.RFC3339Nano, f[0]); err != nil {
				t.Error(err)
			}
			if f[2] == "P" {
				f[3] = strings.TrimSuffix(f[3], "\n")
			}
			text.WriteString(f[3])
		}
	}
	return text.String()
}

// EC-16: a program that prints and ends at once is seen whole, by those who attach before its start, with it and after its end.
func TestAttachSeesEverything(t *testing.T) {
	r := start(t, dataFolder(t))
	importBox(t, r)
	p := runPod(t, r)
	defer p.stop()
	const out, errOut = "one\ntwo\nthree", "first\nlast"
	for i := range 30 {
		name := fmt.Sprintf("box-%d", i)
		tty := i%3 == 2
		id := p.create(name, []string{"say", out, errOut}, func(c *criapi.ContainerConfig) { c.Tty, c.Stdin = tty, i%2 == 0 })
		var early []*session
		if i%2 == 0 {
			early = append(early, attach(t, r, id, tty, false))
		}
		started := make(chan struct{})
		go func() { defer close(started); p.start(id) }()
		early = append(early, attach(t, r, id, tty, false))
		<-started
		early = append(early, attach(t, r, id, tty, false))
		eventually(t, "the container ends", func() bool { return p.status(id).State == criapi.ContainerState_CONTAINER_EXITED })
		for n, s := range append(early, attach(t, r, id, tty, false), attach(t, r, id, tty, false)) {
			s.ended()
			want, wantErr := out, errOut
			if tty {
				want, wantErr = strings.ReplaceAll(out+errOut, "\n", "\r\n"), ""
			}
			if s.out.String() != want || s.err.String() != wantErr {
				t.Errorf("round %d, client %d: %q and %q", i, n, s.out.String(), s.err.String())
			}
		}
		if log := logOf(t, p, name); !tty && log != out+errOut && log != errOut+out && len(log) != len(out+errOut) {
			t.Errorf("round %d: log %q", i, log)
		}
		if _, err := p.cri.RemoveContainer(t.Context(), &criapi.RemoveContainerRequest{ContainerId: id}); err != nil {
			t.Error(err)
		}
		if err := attach(t, r, id, tty, false).end(); err == nil {
			t.Error("a container that was removed can be attached to")
		}
	}
	left, err := filepath.Glob(filepath.Join(r.dirs.run, criPlugin, "containers", "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// EC-15: clients share a terminal, one that goes away ends nothing, and the window's size is the terminal's.
func TestAttachTerminal(t *testing.T) {
	r := start(t, dataFolder(t))
	importBox(t, r)
	p := runPod(t, r)
	defer p.stop()
	id := p.create("term", []string{"cat"}, func(c *criapi.ContainerConfig) { c.Tty, c.Stdin = true, true })
	waiting := attach(t, r, id, true, true)
	p.start(id)
	first, second := waiting, attach(t, r, id, true, true)
	_, _ = io.WriteString(first.in, "from the first\r")
	second.out.await(t, "from the first")
	_, _ = io.WriteString(second.in, "from the second\r")
	first.out.await(t, "from the second\r\n")
	first.cancel()
	if err := first.end(); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that went away: %v", err)
	}
	_ = first.in.Close()
	third := attach(t, r, id, true, true)
	third.out.await(t, "from the second")
	_, _ = io.WriteString(third.in, "from the third\r")
	second.out.await(t, "from the third")
	if got := third.out.String(); !strings.HasPrefix(got, "from the first\r\n") {
		t.Errorf("the third client sees %q", got)
	}
	if p.status(id).State != criapi.ContainerState_CONTAINER_RUNNING {
		t.Error("the container ended with a client")
	}

	sized := p.create("size", []string{"size"}, func(c *criapi.ContainerConfig) { c.Tty, c.Stdin = true, true })
	window := attach(t, r, sized, true, true)
	go func() { window.resize <- remotecommand.TerminalSize{Width: 121, Height: 41} }() // before the start: not lost
	p.start(sized)
	window.out.await(t, "121x41\r\n")
	window.resize <- remotecommand.TerminalSize{Width: 77, Height: 33}
	window.out.await(t, "77x33\r\n")
}

// EC-15: the end of a client's input is the container's with stdinOnce only; then for good, and once.
func TestAttachStdinOnce(t *testing.T) {
	r := start(t, dataFolder(t))
	importBox(t, r)
	p := runPod(t, r)
	defer p.stop()
	id := p.create("once", []string{"cat"}, func(c *criapi.ContainerConfig) { c.Stdin, c.StdinOnce = true, true })
	p.start(id)
	s := attach(t, r, id, false, true)
	big := strings.Repeat("0123456789abcde\n", 20000)
	_, _ = io.WriteString(s.in, big)
	_ = s.in.Close()
	s.ended()
	if s.out.String() != big || s.err.String() != "end of input\n" {
		t.Errorf("%d bytes came back of %d, and %q", len(s.out.String()), len(big), s.err.String())
	}

	id = p.create("always", []string{"cat"}, func(c *criapi.ContainerConfig) { c.Stdin = true })
	p.start(id)
	for i := range 2 {
		s := attach(t, r, id, false, true)
		_, _ = fmt.Fprintf(s.in, "client %d\n", i)
		s.out.await(t, fmt.Sprintf("client %d\n", i))
		_ = s.in.Close()
		if i == 0 {
			s.cancel()
			_ = s.end()
		}
	}
	if p.status(id).State != criapi.ContainerState_CONTAINER_RUNNING {
		t.Error("without stdinOnce, a client ended the input")
	}
}

// A client that takes nothing holds up the container once the ring is full, and nobody else is harmed when it has gone: the log
// and other clients have every line once, a client that comes later is told what it misses.
// ATTACK B6.
func TestAttachSlowClient(t *testing.T) {
	r := start(t, dataFolder(t))
	importBox(t, r)
	p := runPod(t, r)
	defer p.stop()
	const lines = 60000 // three megabytes
	id := p.create("many", []string{"count", strconv.Itoa(lines), "0"})
	slow, slowEnd := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Attach(ctx, id, AttachOptions{Stdout: slowEnd}) }()
	other := attach(t, r, id, false, false)
	p.start(id)
	text := bufio.NewReader(slow)
	if line, err := text.ReadString('\n'); err != nil || !strings.HasPrefix(line, "line 1 ") {
		t.Errorf("%q %v", line, err)
	}
	other.out.await(t, "line 15000 ") // the ring's size further on, it waits
	if p.status(id).State != criapi.ContainerState_CONTAINER_RUNNING {
		t.Error("a client that takes nothing does not hold up the container")
	}
	cancel()
	_ = slow.Close()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	other.ended()
	counted(t, "the client", other.out.String(), 1, lines)
	counted(t, "the log", logOf(t, p, "many"), 1, lines)
	eventually(t, "the container ends", func() bool { return p.status(id).State == criapi.ContainerState_CONTAINER_EXITED })
	late := attach(t, r, id, false, false)
	late.ended()
	if !regexp.MustCompile(`^\[wherry: [12]\.\d MiB of earlier output not shown\]\n$`).MatchString(late.err.String()) {
		t.Errorf("a late client is told %q", late.err.String())
	}
	_, whole, _ := strings.Cut(late.out.String(), "\n")
	counted(t, "a late client", whole, 0, lines)
}

// counted checks that numbered lines are there once and in order, from the first (0: whichever) to the last.
func counted(t *testing.T, who, text string, first, last int) {
	t.Helper()
	next := first
	for line := range strings.Lines(text) {
		var n int
		if _, err := fmt.Sscanf(line, "line %d of many, with something to make it longer\n", &n); err != nil {
			t.Errorf("%s: after %d: %q", who, next-1, line)
			return
		}
		if next == 0 {
			next = n
		}
		if n != next {
			t.Errorf("%s: after %d comes %d", who, next-1, n)
			return
		}
		next++
	}
	if next != last+1 {
		t.Errorf("%s: the last line is %d, want %d", who, next-1, last)
	}
}
