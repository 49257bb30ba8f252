// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"reflect"
	"slices"
	"strconv"
	"sync"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// The interpreter leaves a loop when it is back in the loop's own list: what comes behind break or continue within an
// if, a case or braces it runs first. So that is put into an if of its own, which asks whether the loop is being left.

// unbroken puts what must not be run behind a break or continue into such an if.
func unbroken(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.File:
			n.Stmts = askFirst(n.Stmts)
		case *syntax.Block:
			n.Stmts = askFirst(n.Stmts)
		case *syntax.IfClause:
			n.Then = askFirst(n.Then)
		case *syntax.CaseItem:
			n.Stmts = askFirst(n.Stmts)
		}
		return true
	})
}

func askFirst(list []*syntax.Stmt) []*syntax.Stmt {
	for i, st := range list {
		if i+1 == len(list) || !breaks(st) {
			continue
		}
		if slices.ContainsFunc(list[i+1:min(i+3, len(list))], asks) {
			return list // rewritten before, as functions are that go along into the background
		}
		rest := append([]*syntax.Stmt{both("back", "status")}, askFirst(list[i+1:])...)
		asking := &syntax.IfClause{Cond: []*syntax.Stmt{innerCall("going")}, Then: rest}
		return append(list[:i+1:i+1], &syntax.Stmt{Cmd: asking})
	}
	return list
}

// asks tells whether a statement is such an if.
func asks(st *syntax.Stmt) bool {
	cmd, ok := st.Cmd.(*syntax.IfClause)
	return ok && len(cmd.Cond) == 1 && isInnerCall(cmd.Cond[0], "going")
}

// breaks tells whether a statement may break or continue a loop that it is in.
func breaks(st *syntax.Stmt) (found bool) {
	var loops []bool // of the nodes above, which are loops
	within := 0
	syntax.Walk(st, func(n syntax.Node) bool {
		loop := false
		switch n := n.(type) {
		case nil:
			if loops[len(loops)-1] {
				within--
			}
			loops = loops[:len(loops)-1]
			return true
		case *syntax.FuncDecl, *syntax.Subshell, *syntax.CmdSubst, *syntax.ProcSubst:
			return false
		case *syntax.WhileClause, *syntax.ForClause:
			loop = true
			within++
		case *syntax.CallExpr:
			found = found || len(n.Args) > 0 && leavesLoops(n, within)
		}
		loops = append(loops, loop)
		return true
	})
	return found
}

// leavesLoops tells whether a command leaves more loops than those within which it is looked at.
func leavesLoops(call *syntax.CallExpr, within int) bool {
	if name := call.Args[0].Lit(); name != "break" && name != "continue" {
		return false
	}
	if len(call.Args) == 1 {
		return within == 0
	}
	n, err := strconv.Atoi(call.Args[1].Lit())
	return err != nil || n > within
}

// leavingLoop tells whether whoever runs a command is about to leave a loop, or to begin its next round.
func (s *session) leavingLoop(hc interp.HandlerContext) bool {
	runner := reflect.ValueOf(s.runnerOf(hc)).Elem()
	for _, name := range []string{"breakEnclosing", "contnEnclosing"} {
		if field := runner.FieldByName(name); field.IsValid() && field.Int() != 0 {
			return true
		}
	}
	return false
}

// notes keep $? over a command of ours that succeeds. A note is for the next command of the same shell or subshell, and
// gone if that one does not ask for it.
type notes struct {
	mu sync.Mutex
	of map[*interp.Runner]int
}

func (n *notes) put(of *interp.Runner, status int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of = map[*interp.Runner]int{}
	}
	n.of[of] = status
}

// take is the note of whoever runs a command, and whether there is one.
func (s *session) take(hc interp.HandlerContext) (status int, ok bool) {
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	if len(s.notes.of) == 0 {
		return 0, false
	}
	of := s.runnerOf(hc)
	status, ok = s.notes.of[of]
	delete(s.notes.of, of)
	return status, ok
}

// noteCall is what the commands become by which $? is kept: going fails where a loop is being left, note never does,
// and back gives it back.
func (s *session) noteCall(hc interp.HandlerContext, name string) []string {
	status, noted := s.take(hc)
	switch {
	case name == inner+"going" && s.leavingLoop(hc):
		return []string{inner + "status", "1"}
	case name == inner+"going", name == inner+"note":
		s.notes.put(s.runnerOf(hc), hc.LastExitStatus)
		return []string{inner + "status", "0"}
	case noted:
		return []string{inner + "status", strconv.Itoa(status)}
	}
	return []string{inner + "status"}
}
