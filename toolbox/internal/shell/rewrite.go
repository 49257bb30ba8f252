// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"slices"
	"strconv"
	"strings"
	"sync"

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

// rewriter prepares programs for the interpreter.
type rewriter struct {
	mu sync.Mutex // held while a program is rewritten: the parts of a pipeline may read further ones

	traps   bool            // some subshell sets a trap: subshells have their own trap on EXIT
	scoped  bool            // some program used what subshells have of their own: they get tables
	signals bool            // some program sets traps: they are run between statements
	strict  bool            // some program sets -e: which failures count is to be told
	onErr   bool            // some program sets a trap on ERR: as with -e
	last    int             // the number of the pipeline that was rewritten last
	leaving map[string]bool // functions that end the shell which calls them, or set its trap on EXIT
}

// parse reads source and rewrites what the interpreter does in another way than a shell with processes:
//
//   - a command with & becomes a call that starts a process for it, so that $! is a process id;
//   - redirections of descriptors from 3 on become ones that [session.opener] knows by a mark, and files under /dev/fd;
//   - subshells, substitutions and the parts of a pipeline get a redirection that gives them descriptors of their own until they end;
//   - subshells and substitutions get a trap on EXIT of their own;
//   - substitutions get an output to which all that they run may write;
//   - here-documents and words become such as the interpreter reads as other shells do;
//   - what stands behind a break or continue is run only where no loop is being left;
//   - which failures count is told where there is set -e or a trap on ERR;
//   - traps are run before what a statement redirects or substitutes, by a command that is put in.
func (w *rewriter) parse(source, name string) (*syntax.File, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(source), name)
	if err == nil {
		w.rewrite(file, place{})
	}
	return file, err
}

// rewritten is source for those of the interpreter's commands that read it themselves.
func (w *rewriter) rewritten(source string, at place) (string, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(source), "")
	if err != nil {
		return "", err
	}
	w.rewrite(file, at)
	out := text(file)
	if strings.HasSuffix(out, "\n\n") { // an empty line may be a here-document's end
		return out, nil
	}
	return strings.TrimSuffix(out, "\n"), nil
}

func text(n syntax.Node, options ...syntax.PrinterOption) string {
	var b strings.Builder
	_ = syntax.NewPrinter(options...).Print(&b, n) // to a string it does not fail
	return b.String()
}

func (w *rewriter) rewrite(n syntax.Node, at place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.scoped = w.scoped || opensHigh(n) || changesBelow(n, changesProcess)
	w.traps = w.traps || changesBelow(n, setsExit)
	w.signals = w.signals || mentionsTraps(n)
	w.noteLeaving(n)
	w.heeds(n)
	unbroken(n)
	if w.strict || w.onErr {
		at.onErr = w.onErr
		at.heed(n)
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			n.Stmts = w.apart(n.Stmts)
		case *syntax.ProcSubst:
			n.Stmts = w.apart(n.Stmts)
		case *syntax.Stmt:
			if n.Background {
				detach(n)
				return true
			}
			listed(n)
			describeFiles(n)
			w.divide(n)
		case *syntax.Word:
			allParameters(n)
		case *syntax.Assign:
			escaped(n.Value)
			homes(n.Value)
		case *syntax.CaseClause:
			escaped(n.Word)
		case *syntax.UnaryTest:
			escapedTest(n.X)
		case *syntax.BinaryTest:
			if escapedTest(n.X); n.Op != syntax.TsReMatch { // in which a backslash is the pattern's
				escapedTest(n.Y)
			}
		case *syntax.DblQuoted:
			asQuoted(n.Parts)
		case *syntax.ParamExp:
			positional(n)
			if instead(n) {
				escaped(n.Exp.Word)
			}
			if name := stand(n); name != "" {
				n.Param.Value, n.Short = name, false
			}
		}
		return true
	})
	if w.signals {
		giveWay(n)
	}
}

// detach makes a call of a statement with &: its source, the options and the parameters are the call's arguments.
func detach(st *syntax.Stmt) {
	inside := *st
	inside.Background = false
	params := &syntax.Word{Parts: []syntax.WordPart{&syntax.DblQuoted{Parts: []syntax.WordPart{param("@")}}}}
	options := &syntax.Word{Parts: []syntax.WordPart{&syntax.DblQuoted{Parts: []syntax.WordPart{param("-")}}}}
	st.Cmd = &syntax.CallExpr{Args: []*syntax.Word{literal(inner + "detach"), quoted(text(&inside)), options,
		pipefail(), params}}
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
	high := slices.ContainsFunc(st.Redirs, isHigh)
	for _, r := range st.Redirs {
		if document(r); r.Hdoc == nil {
			escaped(r.Word)
		}
	}
	if high && onlyFiles(st) {
		permanent(st, st.Cmd.(*syntax.CallExpr))
		return
	}
	for _, r := range st.Redirs {
		if !isHigh(r) {
			redirect(r)
			continue
		}
		// What is opened stands first, for the sake of ~, and may be more than one part.
		how := &syntax.SglQuoted{Value: marked("push", r.N.Value, r.Op.String())}
		r.Word = &syntax.Word{Parts: append(slices.Clone(r.Word.Parts), how)}
		r.N, r.Op = nil, syntax.AppOut
	}
}

// isHigh tells whether a redirection is of a descriptor that the interpreter does not know.
func isHigh(r *syntax.Redirect) bool { return r.N != nil && high(r.N.Value) }

// onlyFiles tells whether a statement is exec without a program.
func onlyFiles(st *syntax.Stmt) bool {
	call, ok := st.Cmd.(*syntax.CallExpr)
	return ok && len(call.Assigns) == 0 && len(call.Args) == 1 && call.Args[0].Lit() == "exec"
}

// permanent rewrites exec with redirections only, which are the shell's own from then on.
func permanent(st *syntax.Stmt, call *syntax.CallExpr) {
	var list []*syntax.Stmt
	for _, r := range st.Redirs {
		if isHigh(r) {
			list = append(list, descriptorCall(r))
			continue
		}
		redirect(r)
		list = append(list, &syntax.Stmt{Cmd: call, Redirs: []*syntax.Redirect{r}})
	}
	st.Cmd, st.Redirs = &syntax.Block{Stmts: list}, nil
}

func descriptorCall(r *syntax.Redirect) *syntax.Stmt {
	args := []*syntax.Word{literal(inner + "descriptor"), literal(r.N.Value), quoted(r.Op.String()), unsplit(r.Word)}
	return &syntax.Stmt{Cmd: &syntax.CallExpr{Args: args}}
}

// unsplit is a word that stays one argument whatever it becomes, as that of a redirection does, and is no pattern.
func unsplit(w *syntax.Word) *syntax.Word {
	out := &syntax.Word{}
	for _, part := range w.Parts {
		switch part.(type) {
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp:
			part = &syntax.DblQuoted{Parts: []syntax.WordPart{part}}
		}
		out.Parts = append(out.Parts, part)
	}
	return out
}

// redirect makes <&3 and >&3 files, and knows >| and <>.
func redirect(r *syntax.Redirect) {
	if r.Op == syntax.RdrOut || r.Op == syntax.AppOut || r.Op == syntax.RdrClob {
		// The kernel's files of these names are the process's, not those of what runs in it.
		if to := map[string]string{"/dev/stdout": "1", "/dev/stderr": "2"}[r.Word.Lit()]; to != "" {
			r.Op, r.Word = syntax.DplOut, literal(to)
		}
	}
	switch r.Op {
	case syntax.RdrInOut:
		if r.Op = syntax.RdrOut; r.N == nil || r.N.Value == "0" {
			r.Op = syntax.RdrIn
		}
		r.Word = &syntax.Word{Parts: append(slices.Clone(r.Word.Parts),
			&syntax.SglQuoted{Value: marked("both", "", "")})}
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
