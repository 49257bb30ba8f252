// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// exitTrap is the variable that has the trap on EXIT of a subshell: the interpreter runs only the shell's own. It is
// set, if only to nothing, in every subshell of a program in which one sets such a trap.
const exitTrap = "_exit_trap"

// changesBelow tells whether a subshell of a program, or a function, which it may call, has a command that changes what
// is a subshell's own.
func changesBelow(n syntax.Node, changes func(*syntax.CallExpr) bool) (found bool) {
	in := func(list ...*syntax.Stmt) { found = found || runs(list, changes) }
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Subshell:
			in(n.Stmts...)
		case *syntax.CmdSubst:
			in(n.Stmts...)
		case *syntax.ProcSubst:
			in(n.Stmts...)
		case *syntax.FuncDecl:
			in(n.Body)
		case *syntax.BinaryCmd:
			if !joins(n) {
				in(n.X, n.Y)
			}
		}
		return !found
	})
	return found
}

// runs tells whether such a command is in a list.
func runs(list []*syntax.Stmt, such func(*syntax.CallExpr) bool) (found bool) {
	for _, st := range list {
		syntax.Walk(st, func(n syntax.Node) bool {
			call, ok := n.(*syntax.CallExpr)
			found = found || ok && len(call.Args) > 0 && such(call)
			return !found
		})
	}
	return found
}

// changesProcess tells whether a command changes what subshells share with the shell, as they are one process.
func changesProcess(call *syntax.CallExpr) bool {
	return slices.Contains([]string{"trap", "umask", "ulimit"}, call.Args[0].Lit())
}

// setsExit tells whether a command may set the trap on EXIT.
func setsExit(call *syntax.CallExpr) bool {
	return call.Args[0].Lit() == "trap" && len(call.Args) > 2 &&
		slices.ContainsFunc(call.Args[2:], func(a *syntax.Word) bool {
			name := a.Lit() // empty: what it becomes is not known
			return name == "" || name == "0" || strings.EqualFold(name, "EXIT")
		})
}

// trapped gives a subshell's commands a trap on EXIT of their own: first none, and at the end what it is then.
func (w *rewriter) trapped(list []*syntax.Stmt) []*syntax.Stmt {
	if !w.traps || len(list) == 0 || len(list) == 1 && list[0].Cmd == nil || hasTrapped(list) {
		return list // $(<FILE), which the interpreter reads itself, or rewritten before
	}
	begin := &syntax.CallExpr{Assigns: []*syntax.Assign{{Name: &syntax.Lit{Value: exitTrap}}}}
	end := &syntax.CallExpr{Args: []*syntax.Word{literal(inner + "leave")}}
	return append(append([]*syntax.Stmt{{Cmd: begin}}, list...), &syntax.Stmt{Cmd: end})
}

// hasTrapped tells whether commands were rewritten before, as functions are that go along into the background.
func hasTrapped(list []*syntax.Stmt) bool {
	call, ok := list[len(list)-1].Cmd.(*syntax.CallExpr)
	return ok && len(call.Args) == 1 && call.Args[0].Lit() == inner+"leave"
}

// inSubshell tells whether a trap on EXIT is kept in the variable.
func inSubshell(hc interp.HandlerContext) bool { return hc.Env.Get(exitTrap).IsSet() }

// keepTrap is the code that sets a subshell's trap on EXIT. What set -e ends runs it by the trap on ERR.
func keepTrap(action string) string {
	if action == "-" {
		action = ""
	}
	failed := "case $- in *e*) eval \"$" + exitTrap + "\"; " + exitTrap + "= ;; esac"
	return exitTrap + "=" + quote([]string{action}) + "; " + inner + "trap " + quote([]string{failed}) + "ERR"
}

// leaving is the code that ends a subshell: its trap on EXIT, which finds and leaves $? as it is, and then what
// follows.
func leaving(hc interp.HandlerContext, status int, follows string) []string {
	trap := hc.Env.Get(exitTrap).String()
	if trap == "" {
		return nil
	}
	set := fmt.Sprintf(inner+"status %d && :", status)
	return []string{"eval", strings.Join([]string{exitTrap + "=", set, trap, follows}, "\n")}
}

// exitSubshell is exit and return in a subshell that may have a trap on EXIT.
func exitSubshell(hc interp.HandlerContext, args []string) []string {
	status := int(hc.LastExitStatus)
	if len(args) > 1 {
		if n, err := strconv.Atoi(args[1]); err == nil {
			status = n & 0xff
		}
	}
	if inSubshell(hc) {
		if code := leaving(hc, status, fmt.Sprintf("exit %d", status)); code != nil {
			return code
		}
	}
	return append([]string{"exit"}, args[1:]...)
}

// leaveSubshell is the end of a subshell's commands.
func leaveSubshell(hc interp.HandlerContext) []string {
	status := int(hc.LastExitStatus)
	if code := leaving(hc, status, fmt.Sprintf(inner+"status %d", status)); code != nil {
		return code
	}
	return []string{inner + "status"}
}
