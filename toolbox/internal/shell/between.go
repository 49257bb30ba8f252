// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// The interpreter calls [session.call] when a command's redirections are in place and its words are made. What a trap
// prints there would go where the command's output goes, and an exit within a substitution would end no more than that.
// So, in programs that know of traps, a command of ours that does nothing stands before every such statement: the
// traps are run by it.

// mentionsTraps tells whether a program sets traps, or may run another one that does.
func mentionsTraps(n syntax.Node) (found bool) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			name := call.Args[0].Lit()
			found = found || name == "trap" ||
				len(call.Args) > 1 && slices.Contains([]string{"eval", "source", "."}, name)
		}
		return !found
	})
	return found
}

// giveWay puts the command that does nothing into all lists of statements, and between those that && and || join.
func giveWay(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.File:
			n.Stmts = spaced(n.Stmts, true)
		case *syntax.Block:
			n.Stmts = spaced(n.Stmts, true)
		case *syntax.Subshell:
			n.Stmts = belowShell(spaced(n.Stmts, false))
		case *syntax.CmdSubst:
			n.Stmts = belowShell(spaced(n.Stmts, false))
		case *syntax.ProcSubst:
			n.Stmts = belowShell(spaced(n.Stmts, false))
		case *syntax.IfClause:
			n.Cond, n.Then = spaced(n.Cond, true), spaced(n.Then, true)
		case *syntax.WhileClause:
			n.Cond, n.Do = spaced(n.Cond, true), spaced(n.Do, true)
		case *syntax.ForClause:
			n.Do = spaced(n.Do, true)
		case *syntax.CaseItem:
			n.Stmts = spaced(n.Stmts, true)
		case *syntax.Stmt:
			later(n)
		case *syntax.BinaryCmd:
			if !joins(n) {
				n.X = firstPart(n.X)
				lastPart(n.Y)
			} else if !isGap(n.Y) && needsGap(n.Y) && !endsInGap(n) {
				n.X = &syntax.Stmt{Cmd: &syntax.BinaryCmd{Op: n.Op, X: n.X, Y: innerCall("status")}}
			}
		}
		return true
	})
}

// subshell is the variable that is set in subshells, substitutions and the parts of a pipeline but the last one: the
// traps of the shell itself are not theirs.
const subshell = "_subshell"

func below(hc interp.HandlerContext) bool { return hc.Env.Get(subshell).IsSet() }

// belowShell is a subshell's list in which the variable is set: behind the call by which it learns of its descriptors.
func belowShell(list []*syntax.Stmt) []*syntax.Stmt {
	if len(list) > 0 && isScope(list[0]) {
		block := list[0].Cmd.(*syntax.Block)
		block.Stmts = belowShell(block.Stmts)
		return list
	}
	if len(list) == 0 || len(list) == 1 && list[0].Cmd == nil {
		return list // $(<FILE), which the interpreter reads itself
	}
	at := 0
	if hasEntered(list) {
		at = 1
	}
	if len(list) > at && isMark(list[at]) {
		return list
	}
	return slices.Insert(slices.Clone(list), at, both("below", "status"))
}

func isMark(st *syntax.Stmt) bool {
	and, ok := st.Cmd.(*syntax.BinaryCmd)
	return ok && and.Op == syntax.AndStmt && isInnerCall(and.X, "below")
}

// firstPart is a part of a pipeline that is not the last one.
func firstPart(st *syntax.Stmt) *syntax.Stmt {
	switch cmd := st.Cmd.(type) {
	case *syntax.Subshell:
		return st // which sets it
	case *syntax.Block:
		if isScope(st) || len(cmd.Stmts) > 0 && isMark(cmd.Stmts[0]) {
			cmd.Stmts = belowShell(cmd.Stmts)
			return st
		}
	}
	return &syntax.Stmt{Cmd: &syntax.Block{Stmts: belowShell([]*syntax.Stmt{st})}}
}

// lastPart marks the last part of a pipeline if it is one command: what runs the first part beside it may make a trap
// due before that command is called, which then has its output where the trap's is not to go. The trap waits for the
// pipeline's end. One of several commands has traps run between them, as in other shells that run that part themselves.
func lastPart(st *syntax.Stmt) {
	if block, ok := st.Cmd.(*syntax.Block); ok && isMarked(st, "keep") {
		st = block.Stmts[0]
	}
	if call, ok := st.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 && !isMarked(st, "last") {
		st.Redirs = append(st.Redirs, scope("last", "")) // behind the others, which would hide it from the call
	}
}

// later marks a command in which something is substituted: a signal that came meanwhile has its trap run when the
// command has ended, as in other shells, and not where the command's output goes. What exec redirects would keep the
// mark.
func later(st *syntax.Stmt) {
	call, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || isMarked(st, "last") || isMarked(st, "late") || !substitutes(st) {
		return
	}
	if slices.ContainsFunc(call.Args, func(w *syntax.Word) bool { return w.Lit() == "exec" }) {
		return
	}
	st.Redirs = append(st.Redirs, scope("late", "")) // behind the others, which would hide it from the call
}

// substitutes tells whether a command's words or redirections have substitutions.
func substitutes(st *syntax.Stmt) (found bool) {
	syntax.Walk(st, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			found = true
		}
		return !found
	})
	return found
}

// spaced is a list with the command that does nothing where it is needed. Before the first statement of a subshell it
// is not: that is where the subshell began.
func spaced(list []*syntax.Stmt, first bool) []*syntax.Stmt {
	var out []*syntax.Stmt
	for i, st := range list {
		if needsGap(st) && (first || i > 0) && (i == 0 || !isGap(list[i-1])) {
			out = append(out, gap()...)
		}
		out = append(out, st)
	}
	return out
}

// trapStatus is the variable that has $? as it was before a trap, while that runs.
const trapStatus = "_trap_status"

// gap runs the traps, behind && so that what fails there ends a script that has set -e, and leaves $? as it is, in
// front of && so that it ends none.
func gap() []*syntax.Stmt {
	return []*syntax.Stmt{both("pending", "act"), both("after", "status")}
}

func both(x, y string) *syntax.Stmt {
	return &syntax.Stmt{Cmd: &syntax.BinaryCmd{Op: syntax.AndStmt, X: innerCall(x), Y: innerCall(y)}}
}

// gapCall is what the commands of a gap become, and the one at the beginning of a subshell.
func (s *session) gapCall(hc interp.HandlerContext, name string) []string {
	before := hc.Env.Get(trapStatus).String()
	switch {
	case name == inner+"below":
		return []string{"eval", fmt.Sprintf(subshell+"=1; "+inner+"status %d", hc.LastExitStatus)}
	case name == inner+"pending" && s.traps.waiting(below(hc)):
		return []string{"eval", fmt.Sprintf(trapStatus+"=%d", hc.LastExitStatus)}
	case name == inner+"act" && before != "":
		set := inner + "status " + before + " && " + inner + "status"
		return []string{"eval", strings.Join([]string{set, s.traps.take(below(hc)), inner + "status 0"}, "\n")}
	case name == inner+"after" && before != "":
		return []string{"eval", trapStatus + "=; " + inner + "status " + before}
	}
	return []string{inner + "status"}
}

func innerCall(name string) *syntax.Stmt {
	return &syntax.Stmt{Cmd: &syntax.CallExpr{Args: []*syntax.Word{literal(inner + name)}}}
}

func isInnerCall(st *syntax.Stmt, name string) bool {
	call, ok := st.Cmd.(*syntax.CallExpr)
	return ok && len(call.Args) == 1 && call.Args[0].Lit() == inner+name
}

// isGap tells whether a statement was put there before: functions that go along into the background are rewritten anew.
func isGap(st *syntax.Stmt) bool {
	and, ok := st.Cmd.(*syntax.BinaryCmd)
	return ok && and.Op == syntax.AndStmt && isInnerCall(and.X, "after") && isInnerCall(and.Y, "status")
}

func joins(cmd *syntax.BinaryCmd) bool { return cmd.Op == syntax.AndStmt || cmd.Op == syntax.OrStmt }

// endsInGap tells whether what is before && or || ends with the command that does nothing.
func endsInGap(cmd *syntax.BinaryCmd) bool {
	before, ok := cmd.X.Cmd.(*syntax.BinaryCmd)
	return ok && joins(before) && isInnerCall(before.Y, "status")
}

// needsGap tells whether a statement does something before its command is called, or in another shell.
func needsGap(st *syntax.Stmt) (needs bool) {
	if isScope(st) || isGap(st) || isMarked(st, "last") {
		return false
	}
	switch cmd := st.Cmd.(type) {
	case *syntax.FuncDecl:
		return false
	case *syntax.Subshell:
		return true
	case *syntax.BinaryCmd:
		return !joins(cmd) || needsGap(cmd.X)
	case *syntax.TimeClause:
		return cmd.Stmt != nil && needsGap(cmd.Stmt)
	}
	if len(st.Redirs) > 0 {
		return true
	}
	if st.Cmd == nil {
		return false
	}
	syntax.Walk(st.Cmd, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			needs = true
		case *syntax.Stmt: // it is in a list of its own
			return false
		}
		return !needs
	})
	return needs
}

// catchUp prepares the functions that are older than the first mention of a trap, or of -e. Nothing runs meanwhile.
func (s *session) catchUp() {
	w := &s.rewriter
	if (w.strict || w.onErr) && !s.heedful {
		s.heedful = true
		for _, body := range s.runner.Funcs {
			place{onErr: w.onErr}.heed(&syntax.FuncDecl{Body: body})
		}
	}
	if w.signals && !s.caughtUp {
		s.caughtUp = true
		for _, body := range s.runner.Funcs {
			giveWay(body)
		}
	}
}
