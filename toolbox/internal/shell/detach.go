// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// detached is the first argument of a shell that runs a command in the background for another one. The others are the
// command's text, for those who look at the processes, the descriptor from which to read what to run, and parameters.
const detached = "&"

// detach starts a process for a command with &: this program anew, with a script that makes it what a fork would have
// been. What it prints is empty unless the shell is to fail.
func (s *session) detach(ctx context.Context, hc interp.HandlerContext, args []string) []string {
	source, options, pipefail, params := args[0], args[1], args[2], args[3:]
	script, err := os.CreateTemp("", "")
	if fd, e := unix.MemfdCreate("script", unix.MFD_CLOEXEC); e == nil {
		if err == nil {
			_ = errors.Join(script.Close(), os.Remove(script.Name()))
		}
		script, err = os.NewFile(uintptr(fd), "script"), nil
	}
	if err != nil {
		fmt.Fprintf(hc.Stderr, "sh: a background command needs a place for its script: %v\n", err)
		return []string{"false"}
	}
	defer script.Close()
	_, err = fmt.Fprintf(script, "%s%s%s\n", options, "\x00", s.preamble(hc)+pipefail+"\x00"+source)
	if err == nil {
		_, err = script.Seek(0, io.SeekStart)
	}
	if err != nil {
		fmt.Fprintf(hc.Stderr, "sh: start in the background: %v\n", err)
		return []string{"false"}
	}
	short := oneLine(source)
	extra := s.files.extra(hc)
	cmd := &exec.Cmd{Path: self, Env: environment(hc.Env), Dir: hc.Dir, Stdin: hc.Stdin, Stdout: output(hc.Stdout),
		Stderr: output(hc.Stderr), ExtraFiles: append(extra, script)}
	cmd.Args = append([]string{"sh", detached, short, strconv.Itoa(3 + len(extra))}, params...)
	if s.jobs.tty == nil {
		cmd.Stdin = nil // a script's input is the script's
	}
	b, p, err := s.jobs.start(ctx, cmd, short)
	if err != nil {
		fmt.Fprintf(hc.Stderr, "sh: start in the background: %v\n", err)
		return []string{"false"}
	}
	if r := s.runnerOf(hc); r != s.runner {
		s.jobs.give(b, r)
	}
	if s.jobs.tty != nil {
		fmt.Fprintf(hc.Stderr, "[%d] %d\n", b.number, p.pid)
	}
	return []string{"eval", lastBackground + "=" + strconv.Itoa(p.pid)}
}

func oneLine(source string) string {
	if file, err := syntax.NewParser().Parse(strings.NewReader(source), ""); err == nil {
		source = text(file, syntax.SingleLine(true))
	}
	source, _, _ = strings.Cut(strings.TrimSpace(source), "\n")
	return source
}

// preamble makes variables and functions that are not in the environment.
func (s *session) preamble(hc interp.HandlerContext) string {
	var b strings.Builder
	for name, v := range hc.Env.Each {
		if v.Exported && v.Kind == expand.String || !v.IsSet() || !syntax.ValidName(name) ||
			slices.Contains([]string{"UID", "EUID", "GID", "PWD", tableName, subshell, tested}, name) {
			continue
		}
		switch v.Kind {
		case expand.String:
			fmt.Fprintf(&b, "%s=%s", name, quote([]string{v.Str}))
		case expand.Indexed:
			fmt.Fprintf(&b, "%s=(%s)", name, quote(v.List))
		case expand.Associative:
			fmt.Fprintf(&b, "declare -A %s=(", name)
			for k, value := range v.Map {
				fmt.Fprintf(&b, "[%s]=%s", strings.TrimSpace(quote([]string{k})), quote([]string{value}))
			}
			b.WriteString(")")
		default:
			continue
		}
		if b.WriteByte('\n'); v.ReadOnly {
			fmt.Fprintf(&b, "readonly %s\n", name)
		}
	}
	for name, body := range s.runnerOf(hc).Funcs {
		fmt.Fprintf(&b, "%s() %s\n", name, text(body))
	}
	return b.String()
}

// detachedShell is the other side: it runs what another shell has put into the background.
func detachedShell(c *applet.Call, known func(string) bool) error {
	fd, err := strconv.Atoi(c.Args[2])
	if err != nil {
		return applet.Usage("%q is not a descriptor", c.Args[2])
	}
	script := os.NewFile(uintptr(fd), "script")
	data, err := io.ReadAll(script)
	script.Close()
	parts := strings.SplitN(string(data), "\x00", 3)
	if err != nil || len(parts) != 3 {
		return applet.Fail(2, "the script of a background command cannot be read: %w", err)
	}
	s, err := newSession(known, "sh", append([]string{"--"}, c.Args[3:]...)...)
	if err != nil {
		return err
	}
	if group, err := unix.Getpgid(os.Getppid()); err == nil && group == unix.Getpgrp() {
		// Ctrl-C is not for what runs beside, and without job control it would get it
		signal.Ignore(unix.SIGINT, unix.SIGQUIT)
	}
	s.stopInOrder()
	s.rewriter.strict = strings.Contains(parts[0], "e")
	if functions, err := syntax.NewParser().Parse(strings.NewReader(parts[1]), "sh"); err == nil {
		s.rewriter.noteLeaving(functions) // which the program calls
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(parts[2]), "sh")
	if err != nil {
		return applet.Fail(2, "%w", err)
	}
	if alone(file) == nil {
		redirectAll(file)
	}
	s.rewriter.rewrite(file, place{})
	if call := alone(file); call != nil {
		call.Args = append([]*syntax.Word{literal(inner + "alone")}, call.Args...)
	}
	before, err := s.rewriter.parse(parts[1], "sh")
	if err != nil {
		return applet.Fail(2, "%w", err)
	}
	if options := strings.Trim(parts[0], "is"); options != "" { // interactive and standard input are not handed on
		set, err := s.rewriter.parse("set -"+options, "sh")
		if err != nil {
			return applet.Fail(2, "%w", err)
		}
		before.Stmts = append(before.Stmts, set.Stmts...)
	}
	file.Stmts = append(before.Stmts, s.withTraps(file.Stmts)...)
	return s.result(s.runner.Run(context.Background(), file))
}

// alone is the one program that a script runs, if this process may become it: nothing in it is still to be written by
// this process, as here documents are.
func alone(file *syntax.File) *syntax.CallExpr {
	if len(file.Stmts) != 1 || file.Stmts[0].Negated {
		return nil
	}
	call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return nil
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ProcSubst:
			call = nil
		case *syntax.Redirect:
			if n.Op == syntax.Hdoc || n.Op == syntax.DashHdoc || n.Op == syntax.WordHdoc {
				call = nil
			}
		}
		return true
	})
	return call
}

// redirectAll makes the redirections of a background command, which is all that this process is for, the process's own:
// whoever waits for the end of what it was started with, as a substitution does, does not wait for this one then.
func redirectAll(file *syntax.File) {
	if len(file.Stmts) != 1 || len(file.Stmts[0].Redirs) == 0 || file.Stmts[0].Cmd == nil {
		return
	}
	st := file.Stmts[0]
	redirect := &syntax.Stmt{Cmd: &syntax.CallExpr{Args: []*syntax.Word{literal("exec")}}, Redirs: st.Redirs}
	st.Redirs = nil
	rest := &syntax.Block{Stmts: []*syntax.Stmt{innerCall("settle"), st}}
	file.Stmts = []*syntax.Stmt{{Cmd: &syntax.BinaryCmd{Op: syntax.AndStmt, X: redirect, Y: &syntax.Stmt{Cmd: rest}}}}
}
