// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"

	"github.com/wherryproject/wherry/toolbox/internal/procs"
)

// inner before a name means a command of the shell's own, for which the interpreter has no code.
const inner = "shell:"

// inner runs a command of the shell's own.
func (s *session) inner(ctx context.Context, hc interp.HandlerContext, name string, args []string) error {
	code, err := 0, error(nil)
	switch name {
	case "jobs":
		code, err = s.unlocked(hc, args, s.showJobs)
	case "fg":
		code = s.foreground(hc, args)
	case "bg":
		code, err = s.unlocked(hc, args, s.background)
	case "wait":
		wait := func(hc interp.HandlerContext, args []string) int { return s.wait(ctx, hc, args) }
		code, err = s.unlocked(hc, args, wait)
		s.traps.settle()
	case "disown":
		code, err = s.unlocked(hc, args, s.disown)
	case "kill":
		code, err = s.unlocked(hc, args, s.kill)
	case "history":
		code, err = s.unlocked(hc, args, s.showHistory)
	case "descriptor":
		code = s.files.set(ctx, args)
	case "status": // one given, or that of the command before it
		if code = hc.LastExitStatus; len(args) > 0 {
			code, _ = strconv.Atoi(args[0]) // written by the shell itself
		}
	case "echo", "printf":
		code, err = s.print(hc, name, args)
	case "test", "[":
		code = s.test(hc, name, args)
	case "piped":
		s.traps.pipeOver()
		code = hc.LastExitStatus
	case "broken": // what it stands for would have written there
		return s.brokenPipe(ctx, hc, args[0])
	case "settle":
		_ = settle(hc) // whoever waits for what this process was started with waits longer, otherwise
	case "become":
		return s.become(ctx, hc, args)
	case "replace":
		return s.replace(ctx, hc, args)
	}
	if errors.Is(err, unix.EPIPE) {
		return s.brokenPipe(ctx, hc, name)
	}
	if code == 0 {
		return nil
	}
	return interp.ExitStatus(uint8(code))
}

// unlocked runs a command that has the lock while it runs, and prints what it has to say when it has given it back: who
// reads that, as another part of the pipeline, may have to start a program first.
func (s *session) unlocked(hc interp.HandlerContext, args []string,
	run func(interp.HandlerContext, []string) int) (int, error) {
	var out, errs bytes.Buffer
	to, errsTo := hc.Stdout, hc.Stderr
	hc.Stdout, hc.Stderr = &out, &errs
	code := run(hc, args)
	return code, errors.Join(s.put(errsTo, errs.Bytes()), s.put(to, out.Bytes()))
}

// line describes a job as jobs does. The lock is held.
func (j *jobs) line(b *job, ids bool) string {
	sign := " "
	if n := len(j.list); n > 0 && j.list[n-1] == b {
		sign = "+"
	} else if n > 1 && j.list[n-2] == b {
		sign = "-"
	}
	word, text := "Running", b.text
	switch b.state() {
	case running:
		if b.background {
			text += " &"
		}
	case stopped:
		word = "Stopped"
	case ended:
		switch status := b.last().status; {
		case status.Signaled():
			word = strings.ToUpper(describe(status)[:1]) + describe(status)[1:]
		case status.ExitStatus() != 0:
			word = "Exit " + strconv.Itoa(status.ExitStatus())
		default:
			word = "Done"
		}
	}
	id := ""
	if ids {
		id = fmt.Sprintf("%d ", b.last().pid)
	}
	return fmt.Sprintf("[%d]%s  %s%-24s%s", b.number, sign, id, word, text)
}

// tell says which jobs have changed since it was last said, and forgets those that have ended.
func (j *jobs) tell() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, b := range slices.Clone(j.list) {
		now := b.state()
		if now == b.told || now == running {
			b.told = now
			continue
		}
		fmt.Fprintln(os.Stderr, j.line(b, false))
		if b.told = now; now == ended {
			j.forget(b)
		}
	}
}

// suspended tells whether the line that was run last has been stopped by Ctrl-Z.
func (j *jobs) suspended() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	was := j.stopping
	j.stopping = false
	return was
}

// stopped tells whether there are stopped jobs.
func (j *jobs) stopped() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.list, func(b *job) bool { return b.stands() })
}

// find reads %1, %+, %-, %name and %?text. The lock is held.
func (j *jobs) find(spec string) (*job, error) {
	what, n := strings.TrimPrefix(spec, "%"), len(j.list)
	switch what {
	case "", "%", "+", "-":
		at := n - 1
		if what == "-" {
			at = max(n-2, 0)
		}
		if n == 0 {
			return nil, errors.New("there is no job")
		}
		return j.list[at], nil
	}
	number, err := strconv.Atoi(what)
	for _, b := range slices.Backward(j.list) {
		inside, anywhere := strings.CutPrefix(what, "?")
		if err == nil && b.number == number || err != nil && !anywhere && strings.HasPrefix(b.text, what) ||
			anywhere && strings.Contains(b.text, inside) {
			return b, nil
		}
	}
	return nil, errors.New("there is no such job (see: jobs)")
}

func (s *session) showJobs(hc interp.HandlerContext, args []string) int {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	ids, only := false, -1
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		for _, letter := range args[0][1:] {
			switch letter {
			case 'l':
				ids = true
			case 'p':
				only = int(ended) + 1
			case 'r':
				only = int(running)
			case 's':
				only = int(stopped)
			default:
				fmt.Fprintf(hc.Stderr,
					"jobs: unknown flag -%c: -l with ids, -p ids only, -r that run, -s that are stopped\n", letter)
				return 2
			}
		}
		args = args[1:]
	}
	list := slices.Clone(s.jobs.list)
	slices.SortFunc(list, func(a, b *job) int { return a.number - b.number })
	for _, b := range list {
		switch now := b.state(); {
		case only > int(ended):
			fmt.Fprintln(hc.Stdout, b.last().pid)
		case only < 0 || only == int(now):
			fmt.Fprintln(hc.Stdout, s.jobs.line(b, ids))
			if b.told = now; now == ended {
				defer s.jobs.forget(b)
			}
		}
	}
	return 0
}

// pick finds the job that fg or bg is about. The lock is held.
func (s *session) pick(hc interp.HandlerContext, name string, args []string) *job {
	if s.jobs.tty == nil {
		fmt.Fprintf(hc.Stderr, "%s: there is job control only in a shell on a terminal\n", name)
		return nil
	}
	spec := "%+"
	if len(args) > 0 {
		spec = args[0]
	}
	b, err := s.jobs.find(spec)
	if err == nil && b.state() == ended {
		err = errors.New("it has ended")
	}
	if err != nil {
		fmt.Fprintf(hc.Stderr, "%s: %s: %v\n", name, spec, err)
		return nil
	}
	return b
}

// resume makes a stopped job run. The lock is held.
func (j *jobs) resume(b *job) {
	for _, p := range b.procs {
		if p.state == stopped {
			p.state = running
		}
	}
	b.told = running
	_ = unix.Kill(-b.group, unix.SIGCONT)
}

// foreground is fg: it gives a job the terminal and waits for it.
func (s *session) foreground(hc interp.HandlerContext, args []string) int {
	j := s.jobs
	var b *job
	_, _ = s.unlocked(hc, args, func(hc interp.HandlerContext, args []string) int {
		j.mu.Lock()
		defer j.mu.Unlock()
		if b = s.pick(hc, "fg", args); b != nil {
			fmt.Fprintln(hc.Stdout, b.text)
		}
		return 0
	})
	if b == nil {
		return 1
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if b.state() == ended { // meanwhile
		j.forget(b)
		return codeOf(b.last().status)
	}
	b.background, j.front = false, b
	j.terminal(b.group)
	if b.modes != nil && b.state() == stopped {
		_ = unix.IoctlSetTermios(int(j.tty.Fd()), unix.TCSETSW, b.modes)
	}
	j.resume(b)
	for j.front == b {
		j.changed.Wait()
	}
	status := b.last().status
	if b.state() == stopped {
		return 128 + int(status.StopSignal())
	}
	if status.Signaled() && status.Signal() == unix.SIGINT && j.cancel != nil {
		j.cancel()
	}
	return codeOf(status)
}

func codeOf(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// background is bg.
func (s *session) background(hc interp.HandlerContext, args []string) int {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	b := s.pick(hc, "bg", args)
	if b == nil {
		return 1
	}
	b.background = true
	s.jobs.resume(b)
	fmt.Fprintf(hc.Stdout, "[%d]+ %s &\n", b.number, b.text)
	return 0
}

func (s *session) disown(hc interp.HandlerContext, args []string) int {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	if len(args) == 0 {
		args = []string{"%+"}
	}
	for _, a := range args {
		b, err := s.jobs.find(a)
		if err != nil {
			fmt.Fprintf(hc.Stderr, "disown: %s: %v\n", a, err)
			return 1
		}
		s.jobs.forget(b)
	}
	return 0
}

// kill is that of jobs, and of this shell; of anything else the toolbox's command takes care.
func (s *session) kill(hc interp.HandlerContext, args []string) int {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	sig := syscall.SIGTERM
	if name, ok := strings.CutPrefix(args[0], "-"); ok && args[0] != "--" {
		if args = args[1:]; name == "s" && len(args) > 0 {
			name, args = args[0], args[1:]
		}
		var err error
		if sig, err = procs.ParseSignal(name); err != nil {
			fmt.Fprintf(hc.Stderr, "kill: %v\n", err)
			return 2
		}
	}
	code := 0
	for _, a := range args {
		pid, err := strconv.Atoi(a)
		if strings.HasPrefix(a, "%") {
			var b *job
			if b, err = s.jobs.find(a); err == nil {
				if pid = -b.group; b.group == 0 {
					pid = b.last().pid
				}
				if b.state() == stopped && (sig == unix.SIGTERM || sig == unix.SIGHUP || sig == unix.SIGINT) {
					defer func() { _ = unix.Kill(-b.group, unix.SIGCONT) }() // so that it sees the signal
				}
			}
		}
		if a != "--" && err == nil {
			err = send(pid, sig)
		}
		if err == nil && pid == os.Getpid() && s.leavesBy(sig) {
			s.jobs.mu.Unlock()
			select {} // until guard has ended this process
		}
		if err != nil && a != "--" {
			fmt.Fprintf(hc.Stderr, "kill: %s: %v\n", a, err)
			code = 1
		}
	}
	return code
}

// showHistory prints what was typed: all, or the last lines.
func (s *session) showHistory(hc interp.HandlerContext, args []string) int {
	if s.past == nil {
		return 0 // a script has none
	}
	if len(args) > 0 && args[0] == "-c" {
		*s.past = nil
		return 0
	}
	list, from := *s.past, 0
	if len(args) > 0 {
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 0 {
			fmt.Fprintf(hc.Stderr, "history: %s: expected a number of lines, or -c to forget all\n", args[0])
			return 2
		}
		from = max(0, len(list)-n)
	}
	for i, l := range list[from:] {
		fmt.Fprintf(hc.Stdout, "%5d  %s\n", from+i+1, l)
	}
	return 0
}
