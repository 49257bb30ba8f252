// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/wherryproject/wherry/internal/exitcode"
	"github.com/wherryproject/wherry/internal/hostdebug/box"
	"github.com/wherryproject/wherry/internal/hostdebug/guard"
	"github.com/wherryproject/wherry/internal/mountfd"
)

// killed is the exit code of a command that was killed.
const killed = 128 + int(syscall.SIGKILL)

// exec runs the debugger by runc and waits for it.
func (s *one) exec(ctx context.Context, runc, root, files string, img box.Image, streams Streams) (int, error) {
	place := box.Place{Root: root, Files: files, Cgroup: guard.Cgroup(s.id), Hostname: s.req.Target.FolderName(),
		OwnNetwork: true}
	if s.held != nil {
		place.Namespaces, place.OwnNetwork = s.held.paths(), s.held.ownsNetwork()
	}
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return 0, err
	}
	place.Bounding = bounding(string(status))
	spec, err := box.Spec(s.req.Wish, img, place)
	if err != nil {
		return 0, err
	}
	if code, err := runnable(ctx, root, spec.Process.Args, spec.Process.Env); err != nil {
		return code, err
	}
	if box.Filtered(s.req.Wish) {
		spec.Linux.Seccomp = seccomp.DefaultProfile(spec)
	}
	dir := filepath.Join(s.machine.Dir(s.id), "bundle")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return 0, err
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600); err != nil {
		return 0, err
	}
	return s.wait(ctx, runc, dir, streams)
}

// wait starts runc and waits for the command's end.
func (s *one) wait(ctx context.Context, runc, dir string, streams Streams) (int, error) {
	log := filepath.Join(dir, "log.json")
	cmd := exec.Command(runc, "--root", filepath.Join(dir, "state"), "--log", log, "--log-format", "json", "run",
		"--no-new-keyring", "--bundle", dir, "wherry-debug-"+s.id)
	cmd.Dir = "/"
	// Should this process be killed, the guard ends the rest.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stdout, cmd.Stderr = streams.Out, streams.Err
	var feeding io.Closer
	if in, ok := streams.In.(*os.File); ok || streams.In == nil {
		if ok {
			cmd.Stdin = in
		}
	} else { // not by cmd, which would wait for the end of what nobody reads any more
		pipe, err := cmd.StdinPipe()
		if err != nil {
			return 0, err
		}
		feeding = pipe
	}
	restore := keepTerminal(streams.In)
	defer restore()
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("runc: %w", err)
	}
	if feeding != nil {
		go func() {
			_, _ = io.Copy(feeding.(io.Writer), streams.In) // its end is the command's business
			_ = feeding.Close()
		}()
	}
	why := s.endEarly(ctx)
	err := cmd.Wait()
	restore()
	if text := why(); text != "" {
		return killed, &Ended{text}
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	if trouble := runcTrouble(log); trouble != "" {
		return 0, fmt.Errorf("the debugger could not be started: %s", trouble)
	}
	code := exitOf(exit)
	if code == killed && s.gone() {
		return code, &Ended{fmt.Sprintf("%s has ended", s.req.Target.Target)}
	}
	return code, nil
}

// gone tells whether the target's process has ended, which ends a debugger in its PID namespace too.
func (s *one) gone() bool {
	if s.held == nil {
		return false
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(s.held.pidfd), Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}

// exitOf is the exit code that a shell would give.
func exitOf(e *exec.ExitError) int {
	if e == nil {
		return 0
	}
	if st, ok := e.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return 128 + int(st.Signal())
	}
	return e.ExitCode()
}

// endEarly ends the session at its time limit, or when this process is told to end. What it returns stops that, and
// says why the session has ended, if it was so.
func (s *one) endEarly(ctx context.Context) (why func() string) {
	signals := make(chan os.Signal, 4)
	// A terminal sends its signals to the command too, which decides what they mean to it.
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
	var limit <-chan time.Time
	if s.req.TTL > 0 {
		limit = time.After(s.req.TTL)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	text := ""
	go func() {
		defer close(stopped)
		for {
			select {
			case sig := <-signals:
				if sig == syscall.SIGINT || sig == syscall.SIGQUIT {
					continue
				}
				text = fmt.Sprintf("wherry was told to end (%s)", sig)
			case <-limit:
				text = fmt.Sprintf("its time limit of %s is over", s.req.TTL)
			case <-ctx.Done():
				text = "it was called off"
			case <-stop:
				return
			}
			_ = s.hangUp() // the guard kills what is there
			return
		}
	}()
	return sync.OnceValue(func() string {
		close(stop)
		<-stopped
		signal.Stop(signals)
		return text
	})
}

// keepTerminal remembers how a terminal is set, and sets it so again: runc may be killed before it does.
func keepTerminal(in io.Reader) (restore func()) {
	f, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	was, err := term.GetState(int(f.Fd()))
	if err != nil {
		return func() {}
	}
	return func() { _ = term.Restore(int(f.Fd()), was) }
}

// maxRuncLog bounds what is read of runc's log.
const maxRuncLog = 1 << 20

// runcTrouble is what runc says of why it could not start the command; nothing if it could.
func runcTrouble(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return lastError(text[:min(len(text), maxRuncLog)])
}

// lastError is the last error in runc's log, without the steps that lead to it.
func lastError(log []byte) string {
	last := ""
	for line := range bytes.Lines(log) {
		var entry struct{ Level, Msg string }
		if json.Unmarshal(line, &entry) == nil && (entry.Level == "error" || entry.Level == "fatal") {
			last = entry.Msg
		}
	}
	for _, prefix := range []string{"runc run failed: ", "unable to start container process: ",
		"error during container init: "} {
		last = strings.TrimPrefix(last, prefix)
	}
	return last
}

// runnable tells in a shell's words, and with its codes, that a command cannot be run from a root filesystem.
func runnable(ctx context.Context, root string, args, env []string) (code int, err error) {
	if len(args) == 0 {
		return exitcode.CannotRun, errors.New("no command: the image has none of its own, so give one after --")
	}
	dirs := []string{""}
	if !strings.Contains(args[0], "/") {
		dirs = strings.Split(pathOf(env), ":")
	}
	at, err := os.OpenFile(root, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return 0, err
	}
	defer at.Close()
	tries := mountfd.MostTries
	found := false
	for _, dir := range dirs {
		f, err := mountfd.Within(ctx, at, filepath.Join("/", dir, args[0]), &tries)
		if err != nil {
			continue
		}
		info, err := f.Stat()
		f.Close()
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return 0, nil
		}
		found = true
	}
	if found {
		return exitcode.CannotRun, fmt.Errorf("%s: it is not a program", args[0])
	}
	return exitcode.NotFound, fmt.Errorf("%s: there is no such command in the debugger's image", args[0])
}

func pathOf(env []string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], "PATH="); ok {
			return value
		}
	}
	return ""
}
