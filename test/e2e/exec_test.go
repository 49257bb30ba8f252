// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
)

// transports are the two protocols of exec, attach and port-forward, as kubectl is told to use them.
func transports(t *testing.T, s *Space, test func(t *testing.T, s *Space, env []string)) {
	for name, env := range map[string][]string{
		"WebSocket": nil,
		"SPDY":      {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false", "KUBECTL_PORT_FORWARD_WEBSOCKETS=false"},
	} {
		t.Run(name, func(t *testing.T) { test(t, s.With(t), env) })
	}
}

// TestExec: kubectl exec hands on output, errors, exit code and input, with every kubectl and protocol.
func TestExec(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	s.Create(NewPod("box", Sh(Idle), Tool("sleep")))
	s.WaitReady("box")
	eachKubectl(t, s, func(t *testing.T, s *Space) {
		transports(t, s, func(t *testing.T, s *Space, env []string) {
			run := func(args ...string) Result {
				t.Helper()
				return s.KubectlEnv(env, append([]string{"exec"}, args...)...)
			}
			if r := run("box", "-c", "main", "--", "true"); r.Code != 0 {
				t.Errorf("true: %+v", r)
			}
			r := run("box", "-c", "main", "--", "sh", "-c", "echo out; echo err >&2; exit 42")
			r.Is("out")
			r.Says("err\n", "command terminated with exit code 42")
			if r.Code != 42 {
				t.Errorf("exit code %d", r.Code)
			}
			run("box", "-c", "second", "--", "/tool", "env", "IMAGE_SAYS").Is("IMAGE_SAYS=hello")
			r = run("box", "--", "nosuchprogram")
			if r.Code == 0 {
				t.Error("a program that is not there")
			}
			r.Says("nosuchprogram")
			run("box", "-c", "nosuch", "--", "true").Says("nosuch")

			c := s.KubectlCommand("exec", "-i", "box", "-c", "main", "--", "sh", "-c", "wc -c; echo end")
			c.Env = append(c.Env, env...)
			c.Stdin = bytes.NewReader(make([]byte, 300_000))
			c.run().Is("300000\nend")
		})
	})
}

// TestExecLibrary: client-go's executors, as other programs use them, over both protocols: large data both ways at once comes
// through unharmed, and the exit code too.
func TestExecLibrary(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	s.Create(NewPod("box", Sh(Idle)))
	s.WaitReady("box")
	data := make([]byte, 3<<20)
	rand.Read(data)
	url := s.Client.CoreV1().RESTClient().Post().Resource("pods").Namespace(s.Namespace).Name("box").SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: []string{"sh", "-c", "cat; exit 9"}, Stdin: true, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	for name, newExecutor := range map[string]func() (remotecommand.Executor, error){
		"WebSocket": func() (remotecommand.Executor, error) {
			return remotecommand.NewWebSocketExecutor(s.Config, http.MethodGet, url.String())
		},
		"SPDY": func() (remotecommand.Executor, error) {
			return remotecommand.NewSPDYExecutor(s.Config, http.MethodPost, url)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := newExecutor()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(s.Context(), Timeout)
			defer cancel()
			var out, errOut bytes.Buffer
			err = e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: bytes.NewReader(data), Stdout: &out, Stderr: &errOut})
			var exit utilexec.CodeExitError
			if !errors.As(err, &exit) || exit.Code != 9 {
				t.Errorf("it ended with %v, want exit code 9", err)
			}
			if !bytes.Equal(out.Bytes(), data) {
				t.Errorf("%d of %d bytes came back, or others; stderr %q", out.Len(), len(data), errOut.String())
			}
		})
	}
}

// Console is a kubectl on a terminal.
type Console struct {
	*Stream
	tty  *os.File
	cmd  *Cmd
	read <-chan struct{} // closed when all output is in the stream
}

// console runs kubectl on a terminal of the given size.
func (s *Space) console(env []string, size pty.Winsize, args ...string) *Console {
	s.T.Helper()
	cmd := s.KubectlCommand(args...)
	cmd.Env = append(cmd.Env, env...)
	return s.onTerminal(cmd, size)
}

// onTerminal runs a command on a terminal of the given size.
func (s *Space) onTerminal(cmd *Cmd, size pty.Winsize) *Console {
	s.T.Helper()
	return onTerminal(s.T, cmd, size)
}

func onTerminal(t testing.TB, cmd *Cmd, size pty.Winsize) *Console {
	t.Helper()
	cmd.Env = append(cmd.Env, "TERM=xterm")
	tty, err := pty.StartWithSize(cmd.Cmd, &size)
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	c := &Console{newStream(t, cmd.line), tty, cmd, read}
	go func() {
		defer close(read)
		defer c.close()
		_, _ = io.Copy(c.Stream, tty) // ends with EIO when the other side is closed
	}()
	t.Cleanup(func() { cmd.cancel(); tty.Close(); <-read })
	return c
}

// typed sends keys.
func (c *Console) typed(keys string) {
	c.t.Helper()
	if _, err := io.WriteString(c.tty, keys); err != nil {
		c.t.Fatal(err)
	}
}

// code waits for kubectl's end.
func (c *Console) code() int {
	c.t.Helper()
	// The command has a timeout of its own, which kills it; what it printed before its end may still be in the terminal.
	code, err := exitCode(c.cmd.Wait())
	if err != nil {
		c.t.Fatalf("%s: %v; it showed\n%s", c.cmd.line, err, c.Text())
	}
	select {
	case <-c.read:
	case <-time.After(Timeout):
		c.t.Fatalf("%s has ended, but something holds its terminal; it showed\n%s", c.cmd.line, c.Text())
	}
	return code
}

// TestExecTerminal: kubectl exec -it is a terminal: it has the client's size and follows it, Ctrl-C interrupts the command and
// not kubectl, and the exit code comes through.
func TestExecTerminal(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	s.Create(NewPod("box", Sh(Idle)))
	s.WaitReady("box")
	eachKubectl(t, s, func(t *testing.T, s *Space) {
		transports(t, s, func(t *testing.T, s *Space, env []string) {
			c := s.console(env, pty.Winsize{Rows: 33, Cols: 101}, "exec", "-it", "box", "--", "sh")
			c.Await("# ")
			c.typed("tty -s && echo is-a-$((1+1))-tty; echo $((40+2))\r")
			c.Await("is-a-2-tty")
			// The size comes by a message of its own and may be there after the prompt is: ask until it is right.
			c.typed("until stty size | grep '33 101'; do usleep 50000; done; echo size-$((1+1))\r")
			c.Await("size-2")
			if err := pty.Setsize(c.tty, &pty.Winsize{Rows: 44, Cols: 77}); err != nil {
				t.Fatal(err)
			}
			c.typed("until stty size | grep '44 77'; do usleep 50000; done; echo size-$((1+2))\r")
			c.Await("size-3")
			// The command itself says that it runs: a Ctrl-C between the shell's fork and its exec is the shell's.
			c.typed("sh -c 'echo read$((1))y; exec sleep 1000'\r")
			c.Await("read1y")
			c.typed("\x03")
			c.typed("echo code-$?\r")
			c.Await("code-130")
			c.typed("exit 7\r")
			if code := c.code(); code != 7 {
				t.Errorf("exit code %d, want 7; it showed\n%s", code, c.Text())
			}
		})
	})
}

// TestAttach: kubectl attach shows what a container prints from now on and sends input to it; leaving does not end it.
func TestAttach(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	// Output before an attachment is not shown again; the ticks tell a client that it is attached.
	echo := Sh("echo ready; (while usleep 200000; do echo tick; done) & while read line; do echo got $line; echo err $line >&2; done; echo input ended; " + Idle)
	echo.Stdin = true
	terminal := Sh("exec sh -i")
	terminal.Stdin, terminal.TTY = true, true
	s.Create(NewPod("echo", echo))
	s.Create(NewPod("term", terminal))
	s.WaitReady("echo")
	s.WaitReady("term")
	transports(t, s, func(t *testing.T, s *Space, env []string) {
		start := func(args ...string) *Process {
			c := s.KubectlCommand(args...)
			c.Env = append(c.Env, env...)
			return c.StartProcess()
		}
		both := start("attach", "-i", "echo")
		io.WriteString(both.In, "one\n")
		both.Out.Await("got one")
		both.Err.Await("err one")
		watcher := start("attach", "echo")
		watcher.Out.Await("tick")
		both.Signal(syscall.SIGINT)
		both.Wait()
		again := start("attach", "-i", "echo")
		io.WriteString(again.In, "two\n")
		again.Out.Await("got two")
		watcher.Out.Await("got two")
		if c := Status(s.Get("echo"), "main"); c.State.Running == nil || c.RestartCount != 0 {
			t.Errorf("the container is %+v", c.State)
		}
		for _, p := range []*Process{watcher, again} {
			p.Signal(syscall.SIGINT)
			p.Wait()
		}

		c := s.console(env, pty.Winsize{Rows: 40, Cols: 99}, "attach", "-it", "term")
		c.typed("\recho terminal-$((1+1))\r")
		c.Await("terminal-2")
		c.typed("until stty size | grep '40 99'; do usleep 50000; done; echo size-$((1+1))\r")
		c.Await("size-2")
	})
	s.KubectlFails("attach", "echo", "-c", "nosuch").Says("nosuch")
}
