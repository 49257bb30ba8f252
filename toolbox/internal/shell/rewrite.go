// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// lastBackground is the variable that stands for $!, which the interpreter cannot be told.
const lastBackground = "_last_background"

// shellID is the variable that stands for $$, which in the background is still that of the shell itself.
const shellID = "_shell_id"

// shellName is the variable that stands for $0, which the interpreter knows of files only.
const shellName = "_shell_name"

// stand is the variable that stands for a parameter.
func stand(n *syntax.ParamExp) string {
	if n.Param == nil || n.Excl {
		return ""
	}
	return map[string]string{"!": lastBackground, "$": shellID, "0": shellName}[n.Param.Value]
}

// parse reads source and rewrites what the interpreter does in another way than a shell with processes:
//
//   - a command with & becomes a call that starts a process for it, so that $! is a process id;
//   - descriptors from 3 on become calls that open and close them, and files under /dev/fd, which open knows;
//   - a substitution whose output becomes such a descriptor, as in $(COMMAND 3>&1 1>&2 2>&3), gets a pipe to write to, for there it is no file.
func parse(source, name string) (*syntax.File, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(source), name)
	if err == nil {
		rewrite(file)
	}
	return file, err
}

// rewritten is source for those of the interpreter's commands that read it themselves.
func rewritten(source string) (string, error) {
	file, err := parse(source, "")
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(text(file), "\n"), nil
}

func text(n syntax.Node, options ...syntax.PrinterOption) string {
	var b strings.Builder
	_ = syntax.NewPrinter(options...).Print(&b, n) // to a string it does not fail
	return b.String()
}

func rewrite(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			if duplicatesOutput(n.Stmts) {
				throughPipe(n)
			}
		case *syntax.Stmt:
			if n.Background {
				detach(n)
				return true
			}
			describeFiles(n)
		case *syntax.ParamExp:
			if name := stand(n); name != "" {
				n.Param.Value, n.Short = name, false
			}
		}
		return true
	})
}

// duplicatesOutput tells whether commands of a substitution make a high descriptor of its output, or of one that only they know the number of.
func duplicatesOutput(list []*syntax.Stmt) (found bool) {
	for _, st := range list {
		syntax.Walk(st, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.CmdSubst:
				return false // has an output of its own
			case *syntax.Stmt:
				return !onlyFiles(n) // what exec opens stays open, and a pipe that does has no end
			case *syntax.Redirect:
				if n.N != nil && high(n.N.Value) && n.Op == syntax.DplOut && (n.Word.Lit() == "1" || n.Word.Lit() == "") {
					found = true
				}
			}
			return true
		})
	}
	return found
}

// piped is a substitution that goes through a pipe, for the command in it. It ends with that command's exit code, as pipefail does it, which
// the command itself sees only if it was set before. However the command ends, descriptors that hold the pipe open do too.
const piped = `[[ -o pipefail ]] && _pipefail=1 || _pipefail=
set -o pipefail
{ [[ -n $_pipefail ]] || set +o pipefail; ` + inner + `descriptor mark 3; (COMMAND) && ` + inner + `descriptor unwind 3 || ` + inner + `descriptor unwind 3; } | ` + inner + `copy`

// throughPipe gives the commands of a substitution a pipe for their output.
func throughPipe(n *syntax.CmdSubst) {
	file, err := syntax.NewParser().Parse(strings.NewReader(piped), "")
	if err != nil {
		return // it is written above
	}
	last := file.Stmts[len(file.Stmts)-1].Cmd.(*syntax.BinaryCmd)
	syntax.Walk(last.X, func(inside syntax.Node) bool {
		if sub, ok := inside.(*syntax.Subshell); ok {
			sub.Stmts = n.Stmts
			return false
		}
		return true
	})
	n.Stmts = file.Stmts
}

// detach makes a call of a statement with &: its source, the options and the parameters are the call's arguments.
func detach(st *syntax.Stmt) {
	inside := *st
	inside.Background = false
	params := &syntax.Word{Parts: []syntax.WordPart{&syntax.DblQuoted{Parts: []syntax.WordPart{param("@")}}}}
	options := &syntax.Word{Parts: []syntax.WordPart{&syntax.DblQuoted{Parts: []syntax.WordPart{param("-")}}}}
	st.Cmd = &syntax.CallExpr{Args: []*syntax.Word{literal(inner + "detach"), quoted(text(&inside)), options, pipefail(), params}}
	st.Background, st.Negated, st.Redirs = false, false, nil
}

// pipefail is a word that is the command to set that option if it is set: $- does not have it.
func pipefail() *syntax.Word {
	const source = `"$([[ -o pipefail ]] && echo set -o pipefail)"`
	var w *syntax.Word
	for word, err := range syntax.NewParser().WordsSeq(strings.NewReader(source)) {
		if err == nil {
			w = word
		}
	}
	return w
}

func param(name string) *syntax.ParamExp { return &syntax.ParamExp{Param: &syntax.Lit{Value: name}} }

func literal(text string) *syntax.Word {
	return &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: text}}}
}

// quoted is a word that stands for itself, whatever is in it.
func quoted(text string) *syntax.Word {
	w := &syntax.Word{}
	for i, part := range strings.Split(text, "'") {
		if i > 0 {
			w.Parts = append(w.Parts, &syntax.DblQuoted{Parts: []syntax.WordPart{&syntax.Lit{Value: "'"}}})
		}
		w.Parts = append(w.Parts, &syntax.SglQuoted{Value: part})
	}
	return w
}

// high reads a descriptor that the interpreter does not know.
func high(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n > 2
}

// describeFiles rewrites a statement's redirections of descriptors from 3 on, in their order.
func describeFiles(st *syntax.Stmt) {
	for i, r := range st.Redirs {
		if r.N == nil || !high(r.N.Value) || r.Hdoc != nil {
			redirect(r)
			continue
		}
		if onlyFiles(st) {
			permanent(st, st.Cmd.(*syntax.CallExpr))
			return
		}
		// { open 3 FILE && { COMMAND; close 3; } }, with what stands before it around and what stands behind it inside
		within := &syntax.Stmt{Cmd: st.Cmd, Redirs: st.Redirs[i+1:]}
		block := &syntax.Block{Stmts: []*syntax.Stmt{within, descriptorCall("pop", r)}}
		st.Cmd = &syntax.Block{Stmts: []*syntax.Stmt{{Cmd: &syntax.BinaryCmd{Op: syntax.AndStmt, X: descriptorCall("push", r), Y: &syntax.Stmt{Cmd: block}}}}}
		st.Redirs = st.Redirs[:i:i]
		return
	}
}

// onlyFiles tells whether a statement is exec without a program.
func onlyFiles(st *syntax.Stmt) bool {
	call, ok := st.Cmd.(*syntax.CallExpr)
	return ok && len(call.Assigns) == 0 && len(call.Args) == 1 && call.Args[0].Lit() == "exec"
}

// permanent rewrites exec with redirections only, which are the shell's own from then on.
func permanent(st *syntax.Stmt, call *syntax.CallExpr) {
	var list []*syntax.Stmt
	for _, r := range st.Redirs {
		if r.N != nil && high(r.N.Value) && r.Hdoc == nil {
			list = append(list, descriptorCall("set", r))
			continue
		}
		redirect(r)
		list = append(list, &syntax.Stmt{Cmd: call, Redirs: []*syntax.Redirect{r}})
	}
	st.Cmd, st.Redirs = &syntax.Block{Stmts: list}, nil
}

func descriptorCall(verb string, r *syntax.Redirect) *syntax.Stmt {
	args := []*syntax.Word{literal(inner + "descriptor"), literal(verb), literal(r.N.Value)}
	if verb != "pop" {
		args = append(args, quoted(r.Op.String()), r.Word)
	}
	return &syntax.Stmt{Cmd: &syntax.CallExpr{Args: args}}
}

// redirect makes <&3 and >&3 files, and knows >|.
func redirect(r *syntax.Redirect) {
	switch r.Op {
	case syntax.RdrClob:
		r.Op = syntax.RdrOut
	case syntax.DplIn, syntax.DplOut:
		if lit := r.Word.Lit(); lit == "-" || lit == "1" || lit == "2" {
			return
		} else if _, err := strconv.Atoi(lit); lit != "" && err != nil { // >&FILE
			r.Op = syntax.RdrAll
			return
		}
		if r.Op == syntax.DplIn {
			r.Op = syntax.RdrIn
		} else {
			r.Op = syntax.RdrOut
		}
		r.Word = &syntax.Word{Parts: append([]syntax.WordPart{&syntax.Lit{Value: descriptorDir}}, r.Word.Parts...)}
	}
}
