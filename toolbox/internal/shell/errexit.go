// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// Whether a failure ends a shell that has set -e, or runs the trap on ERR, depends on what is around the command. The
// interpreter knows that in the shell itself, but
//
//   - does not tell subshells that they are in a condition, as it should, but for substitutions: so they are told (calm),
//     those of functions by a variable;
//   - takes what ! negates for no condition: so it is put before an && (negate);
//   - takes for a failure of its own what a for, if or case or braces end with, although that one did not count or has
//     counted: so these end with 0, and $? is set behind them (forgive).
//
// That is done in programs that have set -e or such a trap, only.

// tested is the variable that is set in functions whose result is asked for: no failure in them counts.
const tested = "_tested"

// heeds notes whether a program may set -e or a trap on ERR.
func (w *rewriter) heeds(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) < 2 {
			return true
		}
		switch call.Args[0].Lit() {
		case "set":
			w.strict = w.strict || setsErrexit(call.Args[1:])
		case "trap":
			w.onErr = w.onErr || slices.ContainsFunc(call.Args[1:], func(a *syntax.Word) bool {
				return strings.EqualFold(strings.TrimPrefix(a.Lit(), "SIG"), "ERR")
			})
		}
		return true
	})
}

func setsErrexit(args []*syntax.Word) bool {
	for _, a := range args {
		switch word := a.Lit(); {
		case word == "errexit":
			return true
		case len(word) < 2 || word[0] != '-' || word[1] == '-':
			return false
		case word[1] != 'o' && strings.Contains(word, "e"):
			return true
		}
	}
	return false
}

// place is where a statement stands.
type place struct {
	asked    bool // its result is asked for, as in a condition
	function bool // it is in a function, whose result may be
	onErr    bool // there may be a trap on ERR
}

func (p place) within(asked bool) place { return place{p.asked || asked, p.function, p.onErr} }

// heed rewrites a program in which failures count.
func (p place) heed(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.File:
		p.children(n)
		n.Stmts = p.forgive(n.Stmts)
	case *syntax.Block:
		p.children(n)
		n.Stmts = p.forgive(n.Stmts)
	case *syntax.CaseItem:
		p.children(n)
		n.Stmts = p.forgive(n.Stmts)
	case *syntax.Subshell:
		p.children(n)
		n.Stmts = p.calm(p.forgive(n.Stmts))
	case *syntax.CmdSubst: // in which failures count in any case
		p = place{onErr: p.onErr}
		p.children(n)
		n.Stmts = p.forgive(n.Stmts)
	case *syntax.ProcSubst:
		p = place{onErr: p.onErr}
		p.children(n)
		n.Stmts = p.forgive(n.Stmts)
	case *syntax.ForClause:
		p.children(n)
		n.Do = p.forgive(n.Do)
	case *syntax.WhileClause:
		p.within(true).all(n.Cond)
		p.all(n.Do)
		n.Do = p.forgive(n.Do)
	case *syntax.IfClause:
		p.within(true).all(n.Cond)
		p.all(n.Then)
		if n.Then = p.forgive(n.Then); n.Else != nil {
			p.heed(n.Else)
		}
	case *syntax.BinaryCmd:
		p.within(joins(n)).heed(n.X)
		if p.heed(n.Y); !joins(n) && (p.asked || p.function) {
			n.X = &syntax.Stmt{Cmd: &syntax.Block{Stmts: p.calm([]*syntax.Stmt{n.X})}}
		}
	case *syntax.Stmt:
		if n.Negated {
			negate(n)
		}
		p.children(n)
	case *syntax.FuncDecl:
		place{function: true, onErr: p.onErr}.heed(n.Body)
		ask(n.Body)
	default:
		p.children(n)
	}
}

func (p place) all(list []*syntax.Stmt) {
	for _, st := range list {
		p.heed(st)
	}
}

func (p place) children(of syntax.Node) {
	syntax.Walk(of, func(n syntax.Node) bool {
		if n == of || n == nil {
			return true
		}
		p.heed(n)
		return false
	})
}

// calm is a subshell's list that begins with a call by which it learns that no failure in it counts: always, or where
// the function that it is in finds that out.
func (p place) calm(list []*syntax.Stmt) []*syntax.Stmt {
	name := "calm"
	if !p.asked {
		name = "follow"
	}
	if !p.asked && !p.function || len(list) == 0 || len(list) == 1 && list[0].Cmd == nil || has(list, "calm") ||
		has(list, "follow") {
		return list // $(<FILE), which the interpreter reads itself, or rewritten before
	}
	return append([]*syntax.Stmt{innerCall(name), both("back", "status")}, list...)
}

// has tells whether a subshell's list has such a call among those that were put before what is its own.
func has(list []*syntax.Stmt, name string) bool {
	if len(list) > 0 && isScope(list[0]) {
		list = list[0].Cmd.(*syntax.Block).Stmts
	}
	return slices.ContainsFunc(list[:min(len(list), 4)], func(st *syntax.Stmt) bool { return isInnerCall(st, name) })
}

// ask has a function that has subshells find out whether its result is asked for.
func ask(body *syntax.Stmt) {
	found := false
	syntax.Walk(body, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		found = found || ok && len(call.Args) == 1 && call.Args[0].Lit() == inner+"follow"
		return !found
	})
	block, ok := body.Cmd.(*syntax.Block)
	if !found || ok && has(block.Stmts, "asked") {
		return
	}
	if !ok {
		block = &syntax.Block{Stmts: []*syntax.Stmt{{Cmd: body.Cmd}}}
		body.Cmd = block
	}
	block.Stmts = append([]*syntax.Stmt{innerCall("asked"), both("back", "status")}, block.Stmts...)
}

// negate makes a condition of what ! negates. No trap is run before the call behind it, as that would be within what is
// negated.
func negate(st *syntax.Stmt) {
	if block, ok := st.Cmd.(*syntax.Block); ok && len(block.Stmts) == 1 && isCondition(block.Stmts[0]) {
		return // rewritten before
	}
	condition := &syntax.BinaryCmd{Op: syntax.AndStmt, X: &syntax.Stmt{Cmd: st.Cmd}, Y: innerCall("back")}
	st.Cmd = &syntax.Block{Stmts: []*syntax.Stmt{{Cmd: condition}}}
}

func isCondition(st *syntax.Stmt) bool {
	and, ok := st.Cmd.(*syntax.BinaryCmd)
	return ok && and.Op == syntax.AndStmt && isInnerCall(and.Y, "back")
}

// forgive is a list whose compound commands end with 0, and behind each the call that sets $?. Of lists that are asked
// for there is none to be forgiven.
func (p place) forgive(list []*syntax.Stmt) []*syntax.Stmt {
	if p.asked {
		return list
	}
	var out []*syntax.Stmt
	for i, st := range list {
		out = append(out, st)
		if end := lastOf(st); end != nil && p.forgiven(end) && (i+1 == len(list) || !isBack(list[i+1])) {
			out = append(out, both("back", "status"))
		}
	}
	return out
}

func isBack(st *syntax.Stmt) bool {
	and, ok := st.Cmd.(*syntax.BinaryCmd)
	return ok && and.Op == syntax.AndStmt && isInnerCall(and.X, "back")
}

// lastOf is the command that a statement ends with, if that is one with lists.
func lastOf(st *syntax.Stmt) syntax.Command {
	if st.Negated {
		return nil
	}
	if and, ok := st.Cmd.(*syntax.BinaryCmd); ok && joins(and) {
		return lastOf(and.Y)
	}
	return st.Cmd
}

// forgiven puts a call that notes $? behind the lists of a command, and tells whether there are such lists.
func (p place) forgiven(cmd syntax.Command) (is bool) {
	note := func(list *[]*syntax.Stmt) {
		n := len(*list)
		switch {
		case n == 0:
		case isInnerCall((*list)[n-1], "note"):
			is = true
		case p.onErr || countsNot((*list)[n-1]):
			*list = append((*list)[:n:n], innerCall("note"))
			is = true
		}
	}
	switch cmd := cmd.(type) {
	case *syntax.Block:
		note(&cmd.Stmts)
	case *syntax.IfClause:
		for ; cmd != nil; cmd = cmd.Else {
			note(&cmd.Then)
		}
	case *syntax.ForClause:
		note(&cmd.Do)
	case *syntax.CaseClause:
		for _, item := range cmd.Items {
			note(&item.Stmts)
		}
	}
	return is
}

// countsNot tells whether a statement may fail without that being a failure of it.
func countsNot(st *syntax.Stmt) bool {
	and, ok := st.Cmd.(*syntax.BinaryCmd)
	return st.Negated || ok && joins(and)
}

// heedCall is what the calls become that were put in here.
func (s *session) heedCall(hc interp.HandlerContext, name string) []string {
	spared := s.spared(hc)
	s.notes.put(s.runnerOf(hc), hc.LastExitStatus)
	now, was := spared != nil && *spared, hc.Env.Get(tested).String() != ""
	switch {
	case name == inner+"asked" && now:
		return []string{"eval", "local " + tested + "=1"}
	case name == inner+"asked" && was: // of a function around it, in a substitution of which this one is called
		return []string{"eval", "local " + tested + "="}
	case spared != nil && (name == inner+"calm" || name == inner+"follow" && was):
		*spared = true
	}
	return []string{inner + "status", "0"}
}

// spared is where the interpreter keeps whether failures count for nothing, for whoever runs a command; nil: it keeps
// that nowhere any more.
func (s *session) spared(hc interp.HandlerContext) *bool {
	field := reflect.ValueOf(s.runnerOf(hc)).Elem().FieldByName("noErrExit")
	if !field.IsValid() || field.Kind() != reflect.Bool {
		return nil
	}
	return (*bool)(unsafe.Pointer(field.UnsafeAddr()))
}

// asks tells whether the result of whoever runs a command is asked for.
func (s *session) asks(hc interp.HandlerContext) bool {
	spared := s.spared(hc)
	return spared != nil && *spared
}

// inFunction tells whether whoever runs a command is in a function.
func (s *session) inFunction(hc interp.HandlerContext) bool {
	field := reflect.ValueOf(s.runnerOf(hc)).Elem().FieldByName("inFunc")
	return field.IsValid() && field.Bool()
}

// errTrap is the trap on ERR that the interpreter is given, as a word. A function has none but that which it has set
// itself, as in bash: the failure of its call is the one that counts.
func (s *session) errTrap(hc interp.HandlerContext, action, code string) string {
	s.nameTrap(hc, "ERR", action)
	if s.isShell(hc) {
		s.left.onErr = action != "-"
	}
	if action == "-" || action == "" {
		return "-"
	}
	return quote([]string{quote([]string{inner + "err", strconv.FormatBool(s.inFunction(hc)), code})})
}

// errCall is what such a trap becomes when it is run.
func (s *session) errCall(hc interp.HandlerContext, args []string) []string {
	if args[1] == "false" && s.inFunction(hc) {
		return []string{inner + "status"}
	}
	return []string{"eval", fmt.Sprintf(inner+"status %d && :\n%s", hc.LastExitStatus, args[2])}
}
