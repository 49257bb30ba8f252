// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// opensHigh tells whether a program opens descriptors from 3 on, or may run another one that does.
func opensHigh(n syntax.Node) (found bool) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Redirect:
			found = found || isHigh(n)
		case *syntax.CallExpr:
			found = found || len(n.Args) > 1 && slices.Contains([]string{"eval", "source", "."}, n.Args[0].Lit())
		}
		return !found
	})
	return found
}

// divide makes a subshell, and the parts of a pipeline, what they are in other shells: exit and return end no more than
// that part, and its descriptors are its own. The interpreter runs a pipeline's last part in the shell itself, which is
// of use for variables only: one that changes anything else is a subshell, too.
func (w *rewriter) divide(st *syntax.Stmt) {
	switch cmd := st.Cmd.(type) {
	case *syntax.Subshell:
		exitFor(cmd.Stmts)
		cmd.Stmts = w.trapped(cmd.Stmts)
	case *syntax.BinaryCmd:
		if cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll {
			exitFor([]*syntax.Stmt{cmd.X})
			if w.traps && w.leaves(cmd.X) { // what ends there is not the subshell that it is a part of
				cmd.X = &syntax.Stmt{Cmd: &syntax.Subshell{Stmts: []*syntax.Stmt{cmd.X}}}
			}
			if w.leaves(cmd.Y) || changesShell(cmd.Y) {
				cmd.Y = &syntax.Stmt{Cmd: &syntax.Subshell{Stmts: []*syntax.Stmt{cmd.Y}}}
			}
		}
	}
	if !w.scoped {
		return
	}
	switch cmd := st.Cmd.(type) {
	case *syntax.Subshell:
		if !hasEntered(cmd.Stmts) {
			cmd.Stmts = append([]*syntax.Stmt{entering()}, cmd.Stmts...)
			st.Redirs = append(st.Redirs, scope("own", ""))
		}
	case *syntax.BinaryCmd:
		if (cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll) && !isScope(cmd.X) {
			w.last++
			number := strconv.Itoa(w.last)
			cmd.X = within("own", number, []*syntax.Stmt{entering(), cmd.X})
			cmd.Y = within("keep", number, []*syntax.Stmt{cmd.Y})
		}
	}
}

// leaves tells whether a part of a pipeline may end what it is a part of, by itself or by a function that does, or set
// its trap on EXIT.
func (w *rewriter) leaves(st *syntax.Stmt) (found bool) {
	if _, ok := st.Cmd.(*syntax.Subshell); ok {
		return false
	}
	calls([]*syntax.Stmt{st}, func(call *syntax.CallExpr) {
		name := call.Args[0].Lit()
		found = found || ends(call) || w.leaving[name] || setsExit(call) ||
			slices.Contains([]string{"return", "eval", "source", "."}, name) // what those read may do so
	})
	return found
}

// changesShell tells whether a part of a pipeline changes more of the shell that runs it than variables.
func changesShell(st *syntax.Stmt) (found bool) {
	if _, ok := st.Cmd.(*syntax.Subshell); ok {
		return false
	}
	syntax.Walk(st, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl, *syntax.Subshell, *syntax.CmdSubst:
			return false
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				found = found || slices.Contains([]string{"cd", "pushd", "popd", "set", "shift", "umask", "exec",
					"alias", "unalias"}, n.Args[0].Lit())
			} else {
				found = found || slices.ContainsFunc(n.Assigns,
					func(a *syntax.Assign) bool { return a.Name.Value == "IFS" })
			}
		}
		return !found
	})
	return found
}

// ends tells whether a command ends the shell that runs it.
func ends(call *syntax.CallExpr) bool {
	name := call.Args[0].Lit()
	return name == "exit" || name == "exec" && len(call.Args) > 1
}

// noteLeaving notes the functions that end the shell which calls them, or set its trap on EXIT, also by calling one
// another.
func (w *rewriter) noteLeaving(n syntax.Node) {
	var all []*syntax.FuncDecl
	syntax.Walk(n, func(n syntax.Node) bool {
		if f, ok := n.(*syntax.FuncDecl); ok && f.Name != nil { // which the interpreter refuses otherwise
			all = append(all, f)
		}
		return true
	})
	for more := len(all) > 0; more; {
		more = false
		for _, f := range all {
			if w.leaving[f.Name.Value] {
				continue
			}
			calls([]*syntax.Stmt{f.Body}, func(call *syntax.CallExpr) {
				if !w.leaving[f.Name.Value] && (ends(call) || setsExit(call) || w.leaving[call.Args[0].Lit()]) {
					if w.leaving == nil {
						w.leaving = map[string]bool{}
					}
					w.leaving[f.Name.Value], more = true, true
				}
			})
		}
	}
}

// exitFor makes of return in a subshell what it means there, but for the functions in it: the interpreter knows it in
// functions only.
func exitFor(list []*syntax.Stmt) {
	calls(list, func(call *syntax.CallExpr) {
		if name := call.Args[0]; name.Lit() == "return" {
			name.Parts = []syntax.WordPart{&syntax.Lit{Value: inner + "return"}}
		}
	})
}

// calls looks at all commands that have a name, but for those in functions.
func calls(list []*syntax.Stmt, see func(*syntax.CallExpr)) {
	for _, st := range list {
		syntax.Walk(st, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.FuncDecl:
				return false
			case *syntax.CallExpr:
				if len(n.Args) > 0 {
					see(n)
				}
			}
			return true
		})
	}
}

// apart gives the commands of a substitution descriptors of their own, or at least an output in which all that write to
// it at the same time have room.
func (w *rewriter) apart(list []*syntax.Stmt) []*syntax.Stmt {
	exitFor(list)
	list = w.trapped(list)
	if len(list) == 0 || len(list) == 1 && list[0].Cmd == nil || slices.ContainsFunc(list, isWhole) {
		return list // $(<FILE), which the interpreter reads itself, or rewritten before
	}
	whole := within("gather", "", list)
	if w.scoped {
		whole = within("own", "", append([]*syntax.Stmt{entering()}, list...))
	}
	if !w.onErr {
		return []*syntax.Stmt{whole}
	}
	block := whole.Cmd.(*syntax.Block) // whose end is no failure of its own
	block.Stmts = append(block.Stmts, innerCall("note"))
	return []*syntax.Stmt{whole, both("back", "status")}
}

// isWhole tells whether a statement is the braces around a substitution's.
func isWhole(st *syntax.Stmt) bool { return isScope(st) || isMarked(st, "gather") }

func within(verb, number string, list []*syntax.Stmt) *syntax.Stmt {
	return &syntax.Stmt{Cmd: &syntax.Block{Stmts: list}, Redirs: []*syntax.Redirect{scope(verb, number)}}
}

func scope(verb, number string) *syntax.Redirect {
	return &syntax.Redirect{Op: syntax.AppOut,
		Word: &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: marked(verb, number, "")}}}}
}

// isMarked tells whether a statement's last redirection is one with a mark and that verb.
func isMarked(st *syntax.Stmt, verb string) bool {
	if len(st.Redirs) == 0 {
		return false
	}
	r := st.Redirs[len(st.Redirs)-1]
	if r.Op != syntax.AppOut || r.Word == nil || len(r.Word.Parts) != 1 {
		return false
	}
	name, ok := r.Word.Parts[0].(*syntax.SglQuoted)
	return ok && strings.HasPrefix(name.Value, mark+verb+mark)
}

// entering is the call by which a subshell learns of its table, written so that $? may be anything with set -e.
func entering() *syntax.Stmt {
	call := func(name string) *syntax.Stmt {
		return &syntax.Stmt{Cmd: &syntax.CallExpr{Args: []*syntax.Word{literal(name)}}}
	}
	return &syntax.Stmt{Cmd: &syntax.BinaryCmd{Op: syntax.AndStmt, X: call(inner + "enter"), Y: call(inner + "status")}}
}

// hasEntered tells whether a subshell's commands were rewritten before, as functions are that go along into the
// background.
func hasEntered(list []*syntax.Stmt) bool {
	and, ok := list[0].Cmd.(*syntax.BinaryCmd)
	if !ok {
		return false
	}
	call, ok := and.X.Cmd.(*syntax.CallExpr)
	return ok && len(call.Args) == 1 && call.Args[0].Lit() == inner+"enter"
}

func isScope(st *syntax.Stmt) bool {
	block, ok := st.Cmd.(*syntax.Block)
	return ok && len(block.Stmts) > 0 && hasEntered(block.Stmts)
}
