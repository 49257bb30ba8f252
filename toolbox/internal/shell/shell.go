// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
	"github.com/wherryproject/wherry/toolbox/internal/terminal"
)

// Applets returns the shell, and its built-in commands as programs. known tells whether the toolbox has a command.
func Applets(known func(name string) bool) []applet.Applet {
	run := func(c *applet.Call) error { return sh(c, known) }
	out := []applet.Applet{
		{Name: "sh", Usage: "[FILE [ARG]... | -c COMMAND [NAME [ARG]...]]", Short: "The shell", Run: run},
		{Name: "ash", Usage: "[FILE [ARG]... | -c COMMAND [NAME [ARG]...]]", Short: "The shell", Run: run},
		{Name: "bash", Usage: "[FILE [ARG]... | -c COMMAND [NAME [ARG]...]]",
			Short: "The shell, which knows bash's syntax", Run: run},
	}
	for name, short := range map[string]string{"echo": "Print the arguments", "printf": "Print arguments by a format"} {
		out = append(out, applet.Applet{Name: name, Usage: "[ARG]...", Short: short, Run: printApplet})
	}
	for name, short := range map[string]string{
		"test": "Check files, texts and numbers; exit code 0 is yes",
		"[":    "As test, with a ] at the end",
	} {
		out = append(out, applet.Applet{Name: name, Usage: "[ARG]...", Short: short,
			Run: func(c *applet.Call) error { return builtin(c, known) }})
	}
	return out
}

// session is one run of the shell.
type session struct {
	runner   *interp.Runner
	jobs     *jobs
	traps    *traps
	files    *descriptors
	notes    notes
	rewriter rewriter
	caughtUp bool        // functions are prepared for traps (catchUp)
	heedful  bool        // and so that it is known which failures count
	sourcing atomic.Bool // the next file that is opened is a script for source
	known    func(string) bool
	err      io.Writer

	interactive chan os.Signal // the signals of a shell on a terminal; nil otherwise
	asked       chan os.Signal // SIGTSTP of a shell without job control (stopInOrder); nil otherwise
	ending      chan os.Signal // SIGTERM and SIGHUP, where the shell takes what it leaves with it
	left        left           // the shell's exit in a trap
	parting     func()         // takes that with it; nil where there is none to take
	past        *[]string      // what was typed
	warned      bool           // of stopped jobs
}

func newSession(known func(string) bool, name string, params ...string) (*session, error) {
	s := &session{jobs: newJobs(), files: inherited(), known: known, err: os.Stderr}
	s.traps = newTraps(func() {
		s.jobs.mu.Lock()
		defer s.jobs.mu.Unlock()
		s.jobs.changed.Broadcast()
	})
	var err error
	s.runner, err = interp.New(
		interp.StdIO(os.Stdin, traceless{os.Stdout}, traceless{os.Stderr}),
		interp.Interactive(true), // which means aliases
		interp.CallHandler(s.call),
		interp.OpenHandler(s.opener),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return s.exec }),
		interp.Params(params...),
	)
	if err != nil {
		return nil, err
	}
	call := &syntax.CallExpr{}
	for name, value := range map[string]string{shellID: strconv.Itoa(os.Getpid()), shellName: name} {
		call.Assigns = append(call.Assigns, &syntax.Assign{Name: &syntax.Lit{Value: name}, Value: quoted(value)})
	}
	return s, s.runner.Run(context.Background(), call)
}

func sh(c *applet.Call, known func(string) bool) error {
	if len(c.Args) > 2 && c.Args[0] == detached {
		return detachedShell(c, known)
	}
	c.Posix()
	command := c.Bool("c", "run the first argument")
	interactive := c.Bool("i", "ask for commands although standard input is not a terminal")
	stdin := c.Bool("s", "read commands from standard input (the default); the arguments are its parameters")
	c.Bool("l,login", "does nothing")
	params := []string{}
	for _, o := range []struct{ flag, help string }{{"e", "end at the first failure"},
		{"u", "unset variables are failures"},
		{"x", "show commands as they are run"}, {"f", "no file name patterns"}, {"n", "only check the syntax"}} {
		c.Do(o.flag, o.help, func() { params = append(params, "-"+o.flag) })
	}
	option := c.Strings("o", "NAME", "set an option, for example pipefail")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	for _, o := range *option {
		params = append(params, "-o", o)
	}
	source, name, args := "", "sh", c.Args
	switch {
	case *command:
		if len(args) == 0 {
			return applet.Usage("-c needs a command")
		}
		source, args = args[0], args[1:]
		if len(args) > 0 {
			name, args = args[0], args[1:]
		}
	case len(args) > 0 && !*stdin:
		name, args = args[0], args[1:]
		text, err := os.ReadFile(name)
		if err != nil {
			return applet.Fail(127, "%w", err)
		}
		source = string(text)
	}
	s, err := newSession(known, name, append(append(params, "--"), args...)...)
	if err != nil {
		return applet.Usage("%v", err)
	}
	s.rewriter.strict = slices.Contains(params, "-e") || slices.Contains(params, "errexit")
	s.parting = s.guard()
	defer s.parting()
	switch {
	case *command || len(c.Args) > 0 && !*stdin:
		s.stopInOrder()
		return s.script(source, name)
	case *interactive || terminal.Is(os.Stdin) && terminal.Is(os.Stderr):
		return s.converse()
	}
	s.stopInOrder()
	return s.stream()
}

// builtin runs a built-in command of the shell as a program.
func builtin(c *applet.Call, known func(string) bool) error {
	if len(c.Args) == 1 && c.Args[0] == "--help" {
		return c.Parse(0, 0)
	}
	if c.Name == "test" && len(c.Args) == 0 {
		return applet.Exit(1)
	}
	s, err := newSession(known, c.Name)
	if err != nil {
		return err
	}
	return s.script(quote(append([]string{c.Name}, c.Args...)), c.Name)
}

func quote(args []string) string {
	var b strings.Builder
	for _, a := range args {
		b.WriteString("'" + strings.ReplaceAll(a, "'", `'\''`) + "' ")
	}
	return b.String()
}

// script runs a whole program.
func (s *session) script(source, name string) error {
	file, err := s.rewriter.parse(source, name)
	if err != nil {
		return applet.Fail(2, "%w", err)
	}
	if mayTrap(source) {
		file.Stmts = s.withTraps(file.Stmts)
	}
	return s.result(s.runner.Run(context.Background(), file))
}

// mayTrap tells whether a program sets traps, or reads another one that may.
func mayTrap(source string) bool {
	for _, word := range []string{"trap", ". ", "source ", "eval "} {
		if strings.Contains(source, word) {
			return true
		}
	}
	return false
}

// withTraps adds a command that does nothing, before which the traps are run of signals that came during the last one.
func (s *session) withTraps(list []*syntax.Stmt) []*syntax.Stmt {
	return append(list, both("status", "status")) // which fails without that being another failure
}

// exit makes of the interpreter's result the shell's.
func exit(err error) error {
	if status, ok := interp.IsExitStatus(err); ok {
		return applet.Exit(int(status))
	}
	return err
}

// stream runs commands from standard input as they come, and reads no more of it than they need.
func (s *session) stream() error {
	var last error
	parser := syntax.NewParser()
	for stmts, err := range parser.InteractiveSeq(&bytewise{r: os.Stdin}) {
		if err != nil {
			return applet.Fail(2, "%w", err)
		}
		if parser.Incomplete() { // these come again, with the lines that are theirs
			continue
		}
		for _, stmt := range stmts {
			file := &syntax.File{Stmts: []*syntax.Stmt{stmt}}
			s.rewriter.rewrite(file, place{})
			s.catchUp()
			for _, st := range file.Stmts {
				last = s.runner.Run(context.Background(), st)
				if s.runner.Exited() {
					return s.result(last)
				}
				if _, ok := interp.IsExitStatus(last); last != nil && !ok {
					return last
				}
			}
		}
	}
	s.leave()
	return s.result(last)
}

// leave runs the EXIT trap, which finds $? as it is.
func (s *session) leave() {
	_ = s.runner.Run(context.Background(), &syntax.File{Stmts: s.withTraps(nil)})
}

// bytewise reads one byte at a time: the rest of the input may be a command's. What does not end with the end of a line
// is given one, as the parser tells by it that a command is whole.
type bytewise struct {
	r    io.Reader
	last byte
}

func (b *bytewise) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := b.r.Read(p[:1])
	if n == 0 && err == io.EOF && b.last != '\n' && b.last != 0 {
		p[0], n, err = '\n', 1, nil
	}
	if n > 0 {
		b.last = p[0]
	}
	return n, err
}
