// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
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
	rewriter rewriter
	caughtUp bool        // functions are prepared for traps (catchUp)
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
		interp.StdIO(os.Stdin, os.Stdout, traceless{os.Stderr}),
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
	return append(list, &syntax.Stmt{Cmd: &syntax.CallExpr{Args: []*syntax.Word{literal(inner + "status")}}})
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
			s.rewriter.rewrite(stmt)
			s.catchUp()
			for _, st := range s.rewriter.spaced(stmt) {
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

// leave runs the EXIT trap.
func (s *session) leave() { _ = s.runner.Run(context.Background(), &syntax.File{}) }

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

// own before a name means the toolbox's command, whatever PATH has.
const own = "toolbox:"

// call takes care of what the interpreter has a name for but no code, and runs the traps of signals that came.
func (s *session) call(ctx context.Context, args []string) ([]string, error) {
	hc := interp.HandlerCtx(ctx)
	if first := s.between(hc, args); first != nil {
		return first, nil
	}
	if _, ok := s.runnerOf(hc).Funcs[args[0]]; ok {
		return args, nil
	}
	if args[0] == "command" && len(args) > 1 && (printing(args[1:]) || replaced(args[1])) {
		args = args[1:]
	}
	if printing(args) {
		return append([]string{inner + args[0]}, args[1:]...), nil
	}
	if prints(args) && unread(hc.Stdout) {
		return []string{inner + "broken", args[0]}, nil
	}
	switch args[0] {
	case "help":
		return append([]string{own + args[0]}, args[1:]...), nil
	case "kill":
		if slices.ContainsFunc(args,
			func(a string) bool { return strings.HasPrefix(a, "%") || a == strconv.Itoa(os.Getpid()) }) {
			return append([]string{inner + "kill"}, args[1:]...), nil
		}
		return append([]string{own + "kill"}, args[1:]...), nil
	case "jobs", "fg", "bg", "wait", "disown", "history":
		return append([]string{inner + args[0]}, args[1:]...), nil
	case inner + "detach":
		return s.detach(ctx, hc, args[1:]), nil
	case inner + "return":
		return exitSubshell(hc, args), nil
	case inner + "leave":
		return leaveSubshell(hc), nil
	case inner + "enter":
		return []string{"eval", enter(hc)}, nil
	case "cd":
		return changeDir(hc, args[1:])
	case inner + "alone":
		if len(args) == 1 { // what it was to run is nothing
			return []string{"true"}, nil
		}
		if _, ok := s.runnerOf(hc).Funcs[args[1]]; ok || interp.IsBuiltin(args[1]) {
			return s.call(ctx, args[1:])
		}
		return append([]string{inner + "become"}, args[1:]...), nil
	case "trap":
		return s.trap(hc, args[1:]), nil
	case "read":
		return s.read(ctx, hc, args[1:]), nil
	case "eval":
		if source, err := s.rewriter.rewritten(strings.Join(args[1:], " ")); err == nil {
			return []string{"eval", source}, nil
		}
	case "source", ".":
		s.sourcing.Store(len(args) > 1)
	case "exit":
		if !s.mayLeave() {
			return []string{"false"}, nil
		}
		switch {
		case s.isShell(hc) && s.inTrap():
			return s.leaveTrap(hc, args), nil
		case s.isShell(hc) && s.left.onErr && len(args) == 1:
			return s.exit(int(hc.LastExitStatus)), nil
		case s.isShell(hc) && s.left.onErr && len(args) == 2:
			if n, err := strconv.Atoi(args[1]); err == nil {
				return s.exit(n & 0xff), nil
			}
		}
		return exitSubshell(hc, args), nil
	case "umask":
		return mask(hc, args), nil
	case "ulimit":
		return limits(hc, args[1:]), nil
	}
	return args, nil
}

// between is what a command becomes that runs traps, if it is one: a command of a gap, or any at all if one is due.
func (s *session) between(hc interp.HandlerContext, args []string) []string {
	switch args[0] {
	case inner + "below", inner + "pending", inner + "act", inner + "after":
		return s.gapCall(hc, args[0])
	case inner + "enter":
		return nil
	}
	if s.isShell(hc) && s.left.is {
		return s.leftOut(hc)
	}
	if below(hc) {
		if sig := s.traps.ends(); sig != 0 {
			return exitSubshell(hc, []string{"exit", strconv.Itoa(128 + int(sig))})
		}
	}
	if callsLast(hc) || len(args) == 1 && args[0] == "exec" { // what that redirects stays so if it is called itself
		return nil
	}
	code := s.traps.take(below(hc))
	if code == "" {
		return nil
	}
	// The trap is run in the shell itself, and then the command that was next, which finds $? as it was.
	// Behind &&, the status that is given back ends no script that has set -e.
	set := fmt.Sprintf(inner+"status %d && "+inner+"status; ", hc.LastExitStatus)
	return []string{"eval", code + "\n" + set + quote(args)}
}

// limits shows a limit of the processes.
func limits(hc interp.HandlerContext, args []string) []string {
	which := map[string]int{"-n": unix.RLIMIT_NOFILE, "-c": unix.RLIMIT_CORE, "-u": unix.RLIMIT_NPROC,
		"-v": unix.RLIMIT_AS, "-s": unix.RLIMIT_STACK, "-l": unix.RLIMIT_MEMLOCK, "-f": unix.RLIMIT_FSIZE}
	flag := "-f"
	if len(args) > 0 {
		flag = args[0]
	}
	limit, ok := which[flag]
	var r unix.Rlimit
	if !ok || len(args) > 1 {
		fmt.Fprintln(hc.Stderr,
			"ulimit: only showing a limit is known: -n files, -u processes, -c core, -s stack, -l locked, -v memory, -f file size")
		return []string{"false"}
	}
	if err := unix.Getrlimit(limit, &r); err != nil {
		fmt.Fprintln(hc.Stderr, "ulimit:", err)
		return []string{"false"}
	}
	if r.Cur == unix.RLIM_INFINITY {
		fmt.Fprintln(hc.Stdout, "unlimited")
	} else {
		fmt.Fprintln(hc.Stdout, r.Cur)
	}
	return []string{"true"}
}
