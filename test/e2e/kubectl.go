// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Result is what a finished command printed and how it ended.
type Result struct {
	T    testing.TB
	Line string // the command
	Out  string
	Err  string
	Code int
}

// Has checks that the standard output contains all texts.
func (r Result) Has(texts ...string) Result {
	r.T.Helper()
	for _, text := range texts {
		if !strings.Contains(r.Out, text) {
			r.T.Errorf("%s: its output lacks %q:\n%s%s", r.Line, text, r.Out, r.Err)
		}
	}
	return r
}

// HasNot checks that the standard output contains none of the texts.
func (r Result) HasNot(texts ...string) Result {
	r.T.Helper()
	for _, text := range texts {
		if strings.Contains(r.Out, text) {
			r.T.Errorf("%s: its output must not have %q:\n%s", r.Line, text, r.Out)
		}
	}
	return r
}

// Says checks that the error output contains all texts.
func (r Result) Says(texts ...string) Result {
	r.T.Helper()
	for _, text := range texts {
		if !strings.Contains(r.Err, text) {
			r.T.Errorf("%s: its error output lacks %q:\n%s%s", r.Line, text, r.Err, r.Out)
		}
	}
	return r
}

// Is checks the standard output, without surrounding white space.
func (r Result) Is(text string) Result {
	r.T.Helper()
	if got := strings.TrimSpace(r.Out); got != text {
		r.T.Errorf("%s: printed\n%s\nwant\n%s\n%s", r.Line, got, text, r.Err)
	}
	return r
}

// Lines are the lines of the standard output.
func (r Result) Lines() []string {
	return slices.Collect(strings.SplitSeq(strings.TrimRight(r.Out, "\n"), "\n"))
}

// Cmd is a kubectl command to be run. Its fields may be set before Run or Start.
type Cmd struct {
	*exec.Cmd
	t      testing.TB
	line   string
	cancel context.CancelFunc
}

// Kubectl runs kubectl in the space's namespace and fails the test if it fails.
func (s *Space) Kubectl(args ...string) Result {
	s.T.Helper()
	r := s.kubectlCommand(args...).run()
	if r.Code != 0 {
		s.T.Fatalf("%s: exit code %d\n%s%s", r.Line, r.Code, r.Out, r.Err)
	}
	return r
}

// KubectlFails runs kubectl and fails the test unless it fails.
func (s *Space) KubectlFails(args ...string) Result {
	s.T.Helper()
	r := s.kubectlCommand(args...).run()
	if r.Code == 0 {
		s.T.Fatalf("%s: must fail; it printed\n%s%s", r.Line, r.Out, r.Err)
	}
	return r
}

// KubectlIn runs kubectl with standard input, whatever its exit code.
func (s *Space) KubectlIn(stdin string, args ...string) Result {
	s.T.Helper()
	c := s.kubectlCommand(args...)
	c.Stdin = strings.NewReader(stdin)
	return c.run()
}

// KubectlEnv runs kubectl with further environment, whatever its exit code.
func (s *Space) KubectlEnv(env []string, args ...string) Result {
	s.T.Helper()
	c := s.kubectlCommand(args...)
	c.Env = append(c.Env, env...)
	return c.run()
}

// Apply applies a manifest.
func (s *Space) Apply(manifest string, args ...string) Result {
	s.T.Helper()
	r := s.KubectlIn(manifest, append([]string{"apply", "-f", "-"}, args...)...)
	if r.Code != 0 {
		s.T.Fatalf("%s: exit code %d\n%s%s", r.Line, r.Code, r.Out, r.Err)
	}
	return r
}

// KubectlCommand is a kubectl command that the test runs itself, say on a terminal.
func (s *Space) KubectlCommand(args ...string) *Cmd { return s.kubectlCommand(args...) }

func (s *Space) kubectlCommand(args ...string) *Cmd {
	ctx, cancel := context.WithTimeout(s.ctx, Timeout)
	all := append([]string{"--kubeconfig", s.Kubeconfig, "-n", s.Namespace}, args...)
	cmd := exec.CommandContext(ctx, s.kubectl.Path, all...)
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "KUBE") }),
		"HOME="+s.home)
	return &Cmd{Cmd: cmd, t: s.T, line: s.kubectl.Name + " " + strings.Join(args, " "), cancel: cancel}
}

// command is `wherry ARGS` as its user runs it, in the space's namespace.
func (s *Space) command(args ...string) *Cmd {
	s.T.Helper()
	return s.commandFor(Timeout, args...)
}

// commandFor is command for one that may take so long.
func (s *Space) commandFor(most time.Duration, args ...string) *Cmd {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), most)
	all := append(args[:1:1], append([]string{"-n", s.Namespace}, args[1:]...)...)
	cmd := exec.CommandContext(ctx, s.World.Wherry, all...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig, "HOME="+s.home)
	return &Cmd{Cmd: cmd, t: s.T, line: "wherry " + strings.Join(args, " "), cancel: cancel}
}

func (c *Cmd) run() Result {
	defer c.cancel()
	var out, errOut bytes.Buffer
	c.Stdout, c.Stderr = &out, &errOut
	code, err := exitCode(c.Cmd.Run())
	if err != nil {
		errOut.WriteString(err.Error())
	}
	return Result{T: c.t, Line: c.line, Out: out.String(), Err: errOut.String(), Code: code}
}

// exitCode splits a command's end: its code, or why there is none (-1).
func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode(), nil
	default:
		return -1, err
	}
}

// Process is a kubectl that runs beside the test: logs -f, get -w, port-forward.
type Process struct {
	cmd  *Cmd
	In   io.WriteCloser
	Out  *Stream
	Err  *Stream
	done chan struct{}
	code int
}

// Start starts kubectl beside the test. It is killed at the test's end if it still runs.
func (s *Space) Start(args ...string) *Process {
	s.T.Helper()
	return s.kubectlCommand(args...).StartProcess()
}

// StartProcess starts the command beside the test.
func (c *Cmd) StartProcess() *Process {
	c.t.Helper()
	p := &Process{cmd: c, Out: newStream(c.t, c.line), Err: newStream(c.t, c.line+" (stderr)"),
		done: make(chan struct{})}
	var err error
	if p.In, err = c.StdinPipe(); err != nil {
		c.t.Fatal(err)
	}
	c.Stdout, c.Stderr = p.Out, p.Err
	if err := c.Cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		p.code, _ = exitCode(c.Cmd.Wait()) // killed: -1
		p.Out.close()
		p.Err.close()
		close(p.done)
	}()
	c.t.Cleanup(func() { c.cancel(); <-p.done })
	return p
}

// Wait waits for the command's end and gives its exit code; -1: it was killed.
func (p *Process) Wait() int {
	p.cmd.t.Helper()
	select {
	case <-p.done:
	case <-time.After(Timeout):
		p.cmd.t.Fatalf("%s: does not end; it printed\n%s%s", p.cmd.line, p.Out.Text(), p.Err.Text())
	}
	return p.code
}

// Signal sends a signal to the command.
func (p *Process) Signal(sig os.Signal) {
	p.cmd.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.cmd.t.Fatalf("%s: %v", p.cmd.line, err)
	}
}

// Stream collects what a command prints and can wait for a text in it.
type Stream struct {
	t      testing.TB
	name   string
	mu     sync.Mutex
	text   []byte
	closed bool
	change chan struct{} // closed and replaced at every change
}

func newStream(t testing.TB, name string) *Stream {
	return &Stream{t: t, name: name, change: make(chan struct{})}
}

// Write implements io.Writer.
func (s *Stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, p...)
	close(s.change)
	s.change = make(chan struct{})
	return len(p), nil
}

func (s *Stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	close(s.change)
	s.change = make(chan struct{})
}

// Text is all there was so far.
func (s *Stream) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.text)
}

// Await waits until text has been printed, and gives all so far.
func (s *Stream) Await(text string) string {
	s.t.Helper()
	looked := 0 // how much was looked through: a log may be long
	return s.await(text, func(all []byte) bool {
		from := max(0, looked-len(text)+1)
		looked = len(all)
		return bytes.Contains(all[from:], []byte(text))
	})
}

// AwaitFunc waits until the output is as until says; what says it in words.
func (s *Stream) AwaitFunc(what string, until func(string) bool) string {
	s.t.Helper()
	return s.await(what, func(all []byte) bool { return until(string(all)) })
}

// await calls until with what there is, which it must not keep.
func (s *Stream) await(what string, until func([]byte) bool) string {
	s.t.Helper()
	timeout := time.After(Timeout)
	for {
		s.mu.Lock()
		// what is written later is behind it, or elsewhere
		all, change, closed := s.text[:len(s.text):len(s.text)], s.change, s.closed
		s.mu.Unlock()
		if until(all) {
			return string(all)
		}
		if closed {
			s.t.Fatalf("%s: ended without %q; it printed\n%s", s.name, what, all)
		}
		select {
		case <-change:
		case <-timeout:
			s.t.Fatalf("%s: no %q in what it printed:\n%s", s.name, what, all)
		}
	}
}
