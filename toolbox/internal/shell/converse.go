// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// converse asks for commands until the end of input or exit.
func (s *session) converse() error {
	// Caught and not ignored: programs would inherit that, and Ctrl-Z would do nothing to them.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, shellSignals()...)
	s.interactive = signals
	go func() {
		for got := range signals {
			switch got {
			case unix.SIGINT:
				s.jobs.interrupt()
			case unix.SIGTSTP:
				s.jobs.suspend()
			}
		}
	}()
	ed := newEditor(os.Stdin, os.Stdout, s.complete)
	s.past = &ed.history
	if ed.tty {
		s.jobs.control(os.Stdin)
	}
	defer s.jobs.hangUp()
	var last error
	for {
		s.jobs.tell()
		text, err := s.ask(ed)
		switch {
		case errors.Is(err, errInterrupted):
			last = interp.ExitStatus(130)
			s.setStatus(130)
			continue
		case errors.Is(err, io.EOF) && !s.mayLeave():
			continue
		case errors.Is(err, io.EOF):
			if ed.tty {
				fmt.Fprintln(os.Stderr, "exit")
			}
			s.leave()
			return s.result(last)
		case err != nil:
			return err
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		var ended bool
		if last, ended = s.line(text, ed); ended {
			return s.result(last)
		}
	}
}

// ask reads lines until they make whole commands.
func (s *session) ask(ed *editor) (string, error) {
	text := ""
	for prompt := s.prompt(); ; prompt = "> " {
		line, err := ed.read(prompt)
		if err == io.EOF && text != "" {
			return text, nil
		}
		if err != nil {
			return "", err
		}
		text += line + "\n"
		if _, err := syntax.NewParser().Parse(strings.NewReader(text), ""); !syntax.IsIncomplete(err) {
			ed.remember(strings.TrimRight(text, "\n"))
			return text, nil
		}
	}
}

// line runs what was typed; ended says that the shell is to end.
func (s *session) line(text string, ed *editor) (last error, ended bool) {
	file, err := s.rewriter.parse(text, "sh")
	if err != nil {
		fmt.Fprintln(s.err, err)
		s.setStatus(2)
		return interp.ExitStatus(2), false
	}
	s.catchUp()
	code := strings.TrimSpace(text)
	ctx, cancel := s.jobs.begin()
	defer cancel()
	for _, stmt := range s.withTraps(file.Stmts) {
		s.jobs.mu.Lock()
		s.jobs.text = oneLine(code)
		s.jobs.mu.Unlock()
		last = s.runner.Run(ctx, stmt)
		if ctx.Err() != nil {
			return s.cut(), false
		}
		if s.runner.Exited() {
			return last, true
		}
		if _, ok := interp.IsExitStatus(last); last != nil && !ok {
			fmt.Fprintln(s.err, "sh:", last)
			return interp.ExitStatus(1), false
		}
	}
	return last, false
}

// cut is the status of a line that Ctrl-C or Ctrl-Z ended.
func (s *session) cut() error {
	status := uint8(130)
	if s.jobs.suspended() {
		status = 128 + uint8(unix.SIGTSTP)
	} else {
		fmt.Fprintln(s.err)
	}
	s.setStatus(int(status))
	return interp.ExitStatus(status)
}

// mayLeave warns of stopped jobs, once.
func (s *session) mayLeave() bool {
	if s.warned || s.interactive == nil || !s.jobs.stopped() {
		return true
	}
	s.warned = true
	fmt.Fprintln(s.err, "There are stopped jobs (see: jobs, fg, kill %1). Leaving once more ends them.")
	return false
}

// setStatus makes $? what it is to be.
func (s *session) setStatus(code int) {
	call := &syntax.CallExpr{Args: []*syntax.Word{literal(inner + "status"), literal(strconv.Itoa(code))}}
	_ = s.runner.Run(context.Background(), &syntax.Stmt{Cmd: call})
}

// prompt is $PS1 or, without one, the machine's name and the folder.
func (s *session) prompt() string {
	ps1 := os.Getenv("PS1")
	if v, ok := s.runner.Vars["PS1"]; ok {
		ps1 = v.String()
	}
	if ps1 == "" {
		ps1 = `\h:\w\$ `
	}
	host, _ := os.Hostname()
	short, _, _ := strings.Cut(host, ".")
	sign := "$"
	if os.Geteuid() == 0 {
		sign = "#"
	}
	dir := s.runner.Dir
	if home := os.Getenv("HOME"); len(home) > 1 && (dir == home || strings.HasPrefix(dir, home+"/")) {
		dir = "~" + strings.TrimPrefix(dir, home)
	}
	base := dir[strings.LastIndexByte(dir, '/')+1:]
	if base == "" {
		base = "/"
	}
	user := os.Getenv("USER")
	if user == "" {
		user = fmt.Sprint(os.Geteuid())
	}
	// The names are not ours: a folder may be called what a terminal would obey.
	plain := func(name string) string { return strings.ReplaceAll(applet.Plain(name), "\n", "?") }
	short, host, dir, base = plain(short), plain(host), plain(dir), plain(base)
	return strings.NewReplacer(`\h`, short, `\H`, host, `\w`, dir, `\W`, base, `\$`, sign, `\u`, user, `\n`, "\n", `\[`,
		"", `\]`, "", `\e`, "\x1b", `\033`, "\x1b", `\\`, `\`).Replace(ps1)
}
