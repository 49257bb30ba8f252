// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// runner has the commands that run others.
type runner struct{ known func(string) bool }

// find looks for a program; what is nowhere in PATH may be the toolbox's own.
func (r runner) find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	if r.known(name) {
		return "/proc/self/exe", nil
	}
	if errors.Is(err, fs.ErrPermission) {
		return "", applet.Fail(126, "%s: %w", name, fs.ErrPermission)
	}
	return "", applet.Fail(127, "%s: command not found", name)
}

// become replaces this process.
func (r runner) become(c *applet.Call, args []string) error {
	path, err := r.find(args[0])
	if err != nil {
		return err
	}
	if err := c.Out.Flush(); err != nil {
		return err
	}
	return applet.Fail(126, "%s: %w", args[0], syscall.Exec(path, args, os.Environ()))
}

// command prepares a program with this one's streams.
func (r runner) command(args []string) (*exec.Cmd, error) {
	path, err := r.find(args[0])
	return &exec.Cmd{Path: path, Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}, err
}

// ended makes a program's end this command's.
func ended(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return applet.Exit(128 + int(s.Signal()))
	}
	return applet.Exit(exit.ExitCode())
}

func (r runner) env(c *applet.Call) error {
	c.Posix()
	empty := c.Bool("i,ignore-environment", "begin with none")
	unset := c.Strings("u,unset", "NAME", "leave this out")
	zero := c.Bool("0,null", "end each with a zero byte")
	dir := c.String("C,chdir", "FOLDER", "", "go there first")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	if len(c.Args) > 0 && c.Args[0] == "-" {
		*empty, c.Args = true, c.Args[1:]
	}
	if *empty {
		os.Clearenv()
	}
	for _, name := range *unset {
		os.Unsetenv(name)
	}
	for len(c.Args) > 0 && strings.Contains(c.Args[0], "=") {
		name, value, _ := strings.Cut(c.Args[0], "=")
		if err := os.Setenv(name, value); err != nil {
			return err
		}
		c.Args = c.Args[1:]
	}
	if *dir != "" {
		if err := os.Chdir(*dir); err != nil {
			return err
		}
	}
	if len(c.Args) > 0 {
		return r.become(c, c.Args)
	}
	for _, e := range os.Environ() {
		c.Printf("%s%s", e, map[bool]string{false: "\n", true: "\x00"}[*zero])
	}
	return nil
}

func (r runner) chroot(c *applet.Call) error {
	c.Posix()
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	args := c.Args[1:]
	if len(args) == 0 {
		args = []string{"/bin/sh"}
	}
	// The toolbox's own commands work there too, by a file that is open already.
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	if err := unix.Chroot(c.Args[0]); err != nil {
		if errors.Is(err, unix.EPERM) {
			return applet.Fail(125, "the root folder may not be changed (needs CAP_SYS_CHROOT): %w", err)
		}
		return applet.Fail(125, "%s: %w", c.Args[0], err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if _, err := exec.LookPath(args[0]); err == nil {
		return r.become(c, args)
	}
	if base := filepath.Base(args[0]); r.known(base) {
		argv := append([]string{base}, args[1:]...)
		return applet.Fail(126, "%s: %w", base, execFile(self, argv)) // it does not return but with an error
	}
	return applet.Fail(127, "%s: command not found in %s", args[0], c.Args[0])
}

// execFile runs a program by an open file.
func execFile(f *os.File, argv []string) error {
	return fexecve(int(f.Fd()), argv, os.Environ())
}

func (r runner) nohup(c *applet.Call) error {
	c.Posix()
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	signal.Ignore(unix.SIGHUP)
	return r.become(c, c.Args)
}

func (r runner) setsid(c *applet.Call) error {
	c.Posix()
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	cmd, err := r.command(c.Args)
	if err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return ended(cmd.Run())
}

func (r runner) time(c *applet.Call) error {
	c.Posix()
	c.Bool("p,portability", "as POSIX words it (always)")
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	cmd, err := r.command(c.Args)
	if err != nil {
		return err
	}
	signal.Ignore(unix.SIGINT, unix.SIGQUIT)
	start := time.Now()
	err = cmd.Run()
	took := time.Since(start)
	if s := cmd.ProcessState; s != nil {
		fmt.Fprintf(c.Err, "real %.3f\nuser %.3f\nsys %.3f\n", took.Seconds(), s.UserTime().Seconds(),
			s.SystemTime().Seconds())
	}
	return ended(err)
}

func (r runner) timeout(c *applet.Call) error {
	c.Posix()
	name := c.String("s,signal", "SIGNAL", "TERM", "signal to send")
	killAfter := c.String("k,kill-after", "TIME", "", "kill it that long after the signal")
	if err := c.Parse(2, -1); err != nil {
		return err
	}
	limit, err := duration(c.Args[0])
	if err != nil {
		return err
	}
	sig, err := ParseSignal(*name)
	if err != nil {
		return err
	}
	cmd, err := r.command(c.Args[1:])
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	late := false
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	alarm := time.After(limit)
	if limit == 0 {
		alarm = nil
	}
	for {
		select {
		case err := <-done:
			if late && sig != unix.SIGKILL {
				return applet.Exit(124)
			}
			return ended(err)
		case <-alarm:
			_ = cmd.Process.Signal(sig)
			alarm = nil
			if late {
				_ = cmd.Process.Kill()
			} else if *killAfter != "" {
				more, err := duration(*killAfter)
				if err != nil {
					return err
				}
				alarm = time.After(more)
			}
			late = true
		}
	}
}

func (r runner) watch(c *applet.Call) error {
	c.Posix()
	every := c.Float("n,interval", "SECONDS", 2, "time between runs")
	bare := c.Bool("t,no-title", "no title line")
	exact := c.Bool("x,exec", "run the command itself, not by the shell")
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	args := []string{"sh", "-c", strings.Join(c.Args, " ")}
	if *exact {
		args = c.Args
	}
	for {
		cmd, err := r.command(args)
		if err != nil {
			return err
		}
		var out strings.Builder
		cmd.Stdout, cmd.Stderr, cmd.Stdin = &out, &out, nil
		err = cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			return err
		}
		lines := strings.Split(out.String(), "\n")
		if size, err := unix.IoctlGetWinsize(1, unix.TIOCGWINSZ); err == nil {
			lines = lines[:min(len(lines), max(1, int(size.Row)-3))]
		}
		c.Printf("\x1b[H\x1b[J")
		if !*bare {
			c.Printf("Every %.1fs: %s    %s\n\n", *every, strings.Join(c.Args, " "), time.Now().Format(time.TimeOnly))
		}
		c.Printf("%s\n", strings.Join(lines, "\n"))
		if err := c.Out.Flush(); err != nil {
			return err
		}
		time.Sleep(time.Duration(max(*every, 0.1) * float64(time.Second)))
	}
}
