// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
)

// jobs knows the processes the shell waits for, and what Ctrl-C means at the moment.
type jobs struct {
	mu      sync.Mutex
	running map[int]time.Time  // and since when
	cancel  context.CancelFunc // of the line that is run
}

// begin returns the context of a line.
func (j *jobs) begin() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	j.mu.Lock()
	j.cancel = cancel
	j.mu.Unlock()
	return ctx, cancel
}

// interrupt is Ctrl-C: running programs got it as well and decide for themselves; what the shell does itself ends.
func (j *jobs) interrupt() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.running) == 0 && j.cancel != nil {
		j.cancel()
	}
	for pid, since := range j.running { // one that was not there yet when the terminal sent it
		if time.Since(since) < 100*time.Millisecond {
			_ = unix.Kill(pid, unix.SIGINT)
		}
	}
}

// stop ends the line that is run: a program of it died of Ctrl-C.
func (j *jobs) stop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.cancel != nil {
		j.cancel()
	}
}

// start starts a program, unless Ctrl-C came before. Its id is known before the reaper may see its end.
func (j *jobs) start(ctx context.Context, cmd *exec.Cmd) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if j.running == nil {
		j.running = map[int]time.Time{}
	}
	j.running[cmd.Process.Pid] = time.Now()
	return nil
}

func (j *jobs) ended(pid int) {
	j.mu.Lock()
	delete(j.running, pid)
	j.mu.Unlock()
}

// adopt reaps the orphans that come to the first process of a container.
func (j *jobs) adopt() {
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	go func() {
		for range died {
			j.reap()
		}
	}()
}

func (j *jobs) reap() {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return
	}
	for _, d := range dirs {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(d), "%d", &pid); err != nil || pid == 1 {
			continue
		}
		j.mu.Lock()
		if _, ours := j.running[pid]; !ours {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // fails for all that are not dead children
		}
		j.mu.Unlock()
	}
}

// self is this program, also where its own file system is out of reach.
const self = "/proc/self/exe"

// exec runs a program, or a command of the toolbox that is nowhere in PATH.
func (s *session) exec(ctx context.Context, args []string) error {
	hc := interp.HandlerCtx(ctx)
	path, err := interp.LookPathDir(hc.Dir, hc.Env, args[0])
	if err != nil {
		name := strings.TrimPrefix(args[0], own)
		if base := filepath.Base(name); !s.known(base) || base != name && filepath.Dir(name) != "/bin" {
			return s.missing(hc, args[0])
		}
		path = self
		args = append([]string{filepath.Base(name)}, args[1:]...)
	}
	cmd := &exec.Cmd{Path: path, Args: args, Env: environment(hc.Env), Dir: hc.Dir, Stdin: hc.Stdin, Stdout: hc.Stdout, Stderr: hc.Stderr}
	if err := s.jobs.start(ctx, cmd); ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	} else if err != nil {
		return s.unstartable(ctx, hc, path, args, err)
	}
	err = cmd.Wait()
	s.jobs.ended(cmd.Process.Pid)
	if cmd.ProcessState == nil {
		return err
	}
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case status.Signaled():
		if status.Signal() == unix.SIGINT {
			s.jobs.stop()
		} else if status.Signal() != unix.SIGPIPE {
			fmt.Fprintln(hc.Stderr, describe(status))
		}
		return interp.ExitStatus(128 + uint8(status.Signal()))
	case status.ExitStatus() != 0:
		return interp.ExitStatus(uint8(status.ExitStatus()))
	}
	return nil
}

func describe(s syscall.WaitStatus) string {
	text := s.Signal().String()
	if s.CoreDump() {
		text += " (core dumped)"
	}
	return text
}

func (s *session) missing(hc interp.HandlerContext, name string) error {
	if filepath.Base(name) != name {
		full := name
		if !filepath.IsAbs(full) {
			full = filepath.Join(hc.Dir, name)
		}
		if info, err := os.Stat(full); err == nil {
			why := "permission denied"
			if info.IsDir() {
				why = "is a folder"
			}
			fmt.Fprintf(hc.Stderr, "sh: %s: %s\n", name, why)
			return interp.ExitStatus(126)
		}
		fmt.Fprintf(hc.Stderr, "sh: %s: no such file or directory\n", name)
		return interp.ExitStatus(127)
	}
	fmt.Fprintf(hc.Stderr, "sh: %s: command not found\n", name)
	return interp.ExitStatus(127)
}

// unstartable says why a program that is there does not start.
func (s *session) unstartable(ctx context.Context, hc interp.HandlerContext, path string, args []string, err error) error {
	switch {
	case errors.Is(err, unix.ENOEXEC):
		// A script without a first line that names its shell.
		return s.exec(ctx, append([]string{"sh", path}, args[1:]...))
	case errors.Is(err, fs.ErrNotExist) && path == self:
		fmt.Fprintf(hc.Stderr, "sh: %s: it is a command of the toolbox, which cannot be started here: /proc is not mounted\n", args[0])
		return interp.ExitStatus(127)
	case errors.Is(err, fs.ErrNotExist):
		if _, e := os.Stat(path); e == nil {
			fmt.Fprintf(hc.Stderr, "sh: %s: the program is there, its interpreter or dynamic linker is not (see: file %s)\n", args[0], path)
			return interp.ExitStatus(127)
		}
	}
	fmt.Fprintf(hc.Stderr, "sh: %s: %v\n", args[0], err)
	return interp.ExitStatus(126)
}

// environment lists the exported variables.
func environment(env expand.Environ) []string {
	var out []string
	for name, v := range env.Each {
		if v.Exported && v.Kind == expand.String {
			out = append(out, name+"="+v.String())
		}
	}
	return out
}
