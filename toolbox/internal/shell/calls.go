// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

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
	if strings.HasPrefix(args[0], inner) {
		return s.ourCall(ctx, hc, args)
	}
	return s.replacement(ctx, hc, args)
}

// ourCall is what the calls become that were put into the program.
func (s *session) ourCall(ctx context.Context, hc interp.HandlerContext, args []string) ([]string, error) {
	switch strings.TrimPrefix(args[0], inner) {
	case "detach":
		return s.detach(ctx, hc, args[1:]), nil
	case "return":
		return exitSubshell(hc, args), nil
	case "leave":
		return leaveSubshell(hc), nil
	case "enter":
		return []string{"eval", enter(hc)}, nil
	case "trap":
		return append([]string{"trap"}, args[1:]...), nil
	case "err":
		return s.errCall(hc, args), nil
	case "list":
		return s.list(hc, args[1]), nil
	case "alone":
		if len(args) == 1 { // what it was to run is nothing
			return []string{inner + "status", "0"}, nil
		}
		if _, ok := s.runnerOf(hc).Funcs[args[1]]; ok || interp.IsBuiltin(args[1]) {
			return s.call(ctx, args[1:])
		}
		return append([]string{inner + "become"}, args[1:]...), nil
	}
	return args, nil
}

// replacement is what runs in the place of one of the interpreter's builtins.
func (s *session) replacement(ctx context.Context, hc interp.HandlerContext, args []string) ([]string, error) {
	switch args[0] {
	case "help":
		return append([]string{own + args[0]}, args[1:]...), nil
	case "test", "[":
		if !asksOption(args[1:]) {
			return append([]string{inner + args[0]}, args[1:]...), nil
		}
	case "return":
		if len(args) == 1 { // the interpreter's is 0 then
			return []string{args[0], strconv.Itoa(hc.LastExitStatus)}, nil
		}
	case "kill":
		if slices.ContainsFunc(args,
			func(a string) bool { return strings.HasPrefix(a, "%") || a == strconv.Itoa(os.Getpid()) }) {
			return append([]string{inner + "kill"}, args[1:]...), nil
		}
		return append([]string{own + "kill"}, args[1:]...), nil
	case "jobs", "fg", "bg", "wait", "disown", "history":
		return append([]string{inner + args[0]}, args[1:]...), nil
	case "cd":
		return changeDir(hc, args[1:])
	case "trap":
		return s.trap(hc, args[1:]), nil
	case "read":
		return s.read(ctx, hc, args[1:]), nil
	case "eval":
		if source, err := s.rewriter.rewritten(strings.Join(args[1:], " "),
			place{asked: s.asks(hc), function: true}); err == nil {
			return []string{"eval", source}, nil
		}
	case "source", ".":
		s.sourcing.Store(len(args) > 1)
	case "exec":
		if len(args) > 1 && s.isShell(hc) {
			return append([]string{inner + "replace"}, args[1:]...), nil
		}
	case "exit":
		return s.exitCall(hc, args), nil
	}
	return s.stated(hc, args), nil
}

// stated is what runs in the place of those builtins that only show or set something.
func (s *session) stated(hc interp.HandlerContext, args []string) []string {
	switch {
	case args[0] == "umask":
		return s.mask(hc, args)
	case args[0] == "ulimit":
		return []string{inner + "status", strconv.Itoa(s.limits(hc, args[1:]))}
	case args[0] == "getopts":
		return s.getopts(hc, args[1:])
	case args[0] == "shift":
		return s.shift(hc, args)
	case args[0] == "printf" && len(args) > 3 && args[1] == "-v" && syntax.ValidName(args[2]):
		text, code := printed(hc.Stderr, args[0], args[3:])
		return []string{"eval", fmt.Sprintf("%s=%s; "+inner+"status %d", args[2], quote([]string{string(text)}), code)}
	case args[0] == "set" && len(args) == 1:
		return s.list(hc, "")
	case args[0] == "type" && len(args) == 2, args[0] == "command" && len(args) > 2 &&
		(args[1] == "-v" || args[1] == "-V"):
		return s.find(hc, args)
	}
	return args
}

// exitCall is exit, which may be in a trap or in a subshell with one of its own.
func (s *session) exitCall(hc interp.HandlerContext, args []string) []string {
	switch {
	case !s.mayLeave():
		return []string{"false"}
	case s.isShell(hc) && s.inTrap():
		return s.leaveTrap(hc, args)
	case s.isShell(hc) && s.left.onErr && len(args) == 1:
		return s.exit(hc.LastExitStatus)
	case s.isShell(hc) && s.left.onErr && len(args) == 2:
		if n, err := strconv.Atoi(args[1]); err == nil {
			return s.exit(n & 0xff)
		}
	}
	return exitSubshell(hc, args)
}

// between is what a command becomes that runs traps, if it is one: a command of a gap, or any at all if one is due.
func (s *session) between(hc interp.HandlerContext, args []string) []string {
	switch args[0] {
	case inner + "below", inner + "pending", inner + "act", inner + "after":
		return s.gapCall(hc, args[0])
	case inner + "going", inner + "note", inner + "back":
		return s.noteCall(hc, args[0])
	case inner + "calm", inner + "follow", inner + "asked":
		return s.heedCall(hc, args[0])
	case inner + "enter":
		return nil
	}
	_, _ = s.take(hc) // a note is gone with the next command
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
