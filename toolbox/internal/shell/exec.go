// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
)

// self is this program, also where its own file system is out of reach.
const self = "/proc/self/exe"

// exec runs a program, or a command of the toolbox that is nowhere in PATH.
func (s *session) exec(ctx context.Context, args []string) error {
	hc := interp.HandlerCtx(ctx)
	if name, ok := strings.CutPrefix(args[0], inner); ok {
		return s.inner(ctx, hc, name, args[1:])
	}
	path, args, ok := s.locate(hc, args)
	if !ok {
		return s.missing(hc, args[0])
	}
	cmd := &exec.Cmd{Path: path, Args: args, Env: environment(hc.Env), Dir: hc.Dir, Stdin: hc.Stdin}
	cmd.Stdout, cmd.Stderr = output(hc.Stdout), output(hc.Stderr)
	cmd.ExtraFiles = s.files.extra(hc)
	_, p, err := s.jobs.start(ctx, cmd, "")
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	} else if err != nil {
		return s.unstartable(ctx, hc, path, args, err)
	}
	now, status := s.jobs.await(p)
	s.traps.settle()
	if now == stopped {
		return interp.ExitStatus(128 + uint8(status.StopSignal()))
	}
	_ = cmd.Wait() // the process is reaped already; its output may still be on the way
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

// locate finds a program, or a command of the toolbox that is nowhere in PATH.
func (s *session) locate(hc interp.HandlerContext, args []string) (string, []string, bool) {
	path, err := interp.LookPathDir(hc.Dir, hc.Env, args[0])
	if err == nil {
		return path, args, true
	}
	name := strings.TrimPrefix(args[0], own)
	if base := filepath.Base(name); !s.known(base) || base != name && filepath.Dir(name) != "/bin" {
		return "", args, false
	}
	return self, append([]string{filepath.Base(name)}, args[1:]...), true
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

// scriptOf is the call of the shell for a script, by the name by which that was called, if it says where the script is.
func scriptOf(path string, args []string) []string {
	if strings.Contains(args[0], "/") {
		path = args[0]
	}
	return append([]string{"sh", path}, args[1:]...)
}

// unstartable says why a program that is there does not start.
func (s *session) unstartable(ctx context.Context, hc interp.HandlerContext, path string, args []string,
	err error) error {
	switch {
	case errors.Is(err, unix.ENOEXEC):
		// A script without a first line that names its shell.
		return s.exec(ctx, scriptOf(path, args))
	case errors.Is(err, fs.ErrNotExist) && path == self:
		fmt.Fprintf(hc.Stderr,
			"sh: %s: it is a command of the toolbox, which cannot be started here: /proc is not mounted\n", args[0])
		return interp.ExitStatus(127)
	case errors.Is(err, fs.ErrNotExist):
		if _, e := os.Stat(path); e == nil {
			fmt.Fprintf(hc.Stderr,
				"sh: %s: the program is there, its interpreter or dynamic linker is not (see: file %s)\n", args[0],
				path)
			return interp.ExitStatus(127)
		}
	}
	fmt.Fprintf(hc.Stderr, "sh: %s: %v\n", args[0], err)
	return interp.ExitStatus(126)
}

// environment lists the exported variables.
func environment(env expand.Environ) []string {
	last := map[string]string{} // a variable comes once for each shell and subshell that has set it, or unset it
	for name, v := range env.Each {
		if v.IsSet() && v.Kind == expand.String && (v.Exported || name == "PWD") {
			last[name] = name + "=" + v.String()
		} else {
			delete(last, name)
		}
	}
	return slices.Sorted(maps.Values(last))
}
