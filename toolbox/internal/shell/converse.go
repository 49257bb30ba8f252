// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// converse asks for commands until the end of input or exit.
func (s *session) converse() error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGINT, unix.SIGQUIT)
	signal.Ignore(unix.SIGTSTP, unix.SIGTTOU, unix.SIGTTIN)
	go func() {
		for got := range signals {
			if got == unix.SIGINT {
				s.jobs.interrupt()
			}
		}
	}()
	ed := newEditor(os.Stdin, os.Stdout, s.complete)
	var last error
	for {
		text, err := s.ask(ed)
		switch {
		case errors.Is(err, errInterrupted):
			last = interp.ExitStatus(130)
			s.setStatus(130)
			continue
		case errors.Is(err, io.EOF):
			if ed.tty {
				fmt.Fprintln(os.Stderr, "exit")
			}
			s.leave()
			return exit(last)
		case err != nil:
			return err
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		var ended bool
		if last, ended = s.line(text, ed); ended {
			return exit(last)
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
	if fields := strings.Fields(text); len(fields) == 1 && fields[0] == "history" {
		for i, l := range ed.history {
			fmt.Printf("%5d  %s\n", i+1, l)
		}
		return nil, false
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "sh")
	if err != nil {
		fmt.Fprintln(s.err, err)
		s.setStatus(2)
		return interp.ExitStatus(2), false
	}
	ctx, cancel := s.jobs.begin()
	defer cancel()
	for _, stmt := range file.Stmts {
		last = s.runner.Run(ctx, stmt)
		if ctx.Err() != nil {
			fmt.Fprintln(s.err)
			s.setStatus(130)
			return interp.ExitStatus(130), false
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

// setStatus makes $? what it is to be.
func (s *session) setStatus(code int) {
	file, err := syntax.NewParser().Parse(strings.NewReader(fmt.Sprintf("(exit %d)", code)), "")
	if err == nil {
		_ = s.runner.Run(context.Background(), file.Stmts[0])
	}
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
	return strings.NewReplacer(`\h`, short, `\H`, host, `\w`, dir, `\W`, base, `\$`, sign, `\u`, user, `\n`, "\n", `\[`, "", `\]`, "",
		`\e`, "\x1b", `\033`, "\x1b", `\\`, `\`).Replace(ps1)
}
