// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

const failPackage = module + "tools/failpoints/fail"

// edit is text to insert at an offset.
type edit struct {
	at   int
	text string
}

// rewriter makes the failpoints of one file.
type rewriter struct {
	pkg     string // as its places are named
	set     *token.FileSet
	calls   map[string]string
	methods map[string][]method
	seen    map[string]int // places so far in the package: two of one function with one call are told apart
	edits   []edit
}

// file rewrites the text of a Go file; nil, if there is nothing to rewrite. Lines keep their numbers.
func (r *rewriter) file(name string, text []byte) ([]byte, error) {
	r.set, r.edits = token.NewFileSet(), nil
	tree, err := parser.ParseFile(r.set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range tree.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			r.function(fn, text)
		}
	}
	if len(r.edits) == 0 {
		return nil, nil
	}
	r.edits = append(r.edits, edit{r.offset(tree.Name.End()), `; import wherryfail "` + failPackage + `"`})
	return r.apply(text), nil
}

func (r *rewriter) offset(p token.Pos) int { return r.set.Position(p).Offset }

func (r *rewriter) function(fn *ast.FuncDecl, text []byte) {
	name := fn.Name.Name
	if fn.Recv != nil {
		of := string(text[r.offset(fn.Recv.List[0].Type.Pos()):r.offset(fn.Recv.List[0].Type.End())])
		name = strings.TrimPrefix(of, "*") + "." + name
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.DeferStmt: // its arguments are evaluated now, its call is made later
			_, isFunc := n.Call.Fun.(*ast.FuncLit)
			return isFunc
		case *ast.GoStmt:
			_, isFunc := n.Call.Fun.(*ast.FuncLit)
			return isFunc
		case *ast.CallExpr:
			r.call(name, n, text)
		case *ast.AssignStmt:
			r.environment(n)
		}
		return true
	})
}

// call wraps a call, if it is one that changes something.
func (r *rewriter) call(function string, c *ast.CallExpr, text []byte) {
	sel, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	if x, ok := sel.X.(*ast.Ident); ok {
		called := x.Name + "." + sel.Sel.Name
		result, known := r.calls[called]
		switch {
		case called == "grpc.NewClient" && !c.Ellipsis.IsValid():
			r.edits = append(r.edits, edit{r.offset(c.Rparen), r.comma(c, text) + "wherryfail.Calls()"})
			return
		case called == "os.WriteFile":
			r.edits = append(r.edits, edit{r.offset(c.Pos()),
				fmt.Sprintf("wherryfail.WriteFile(%q, ", r.place(function, called))},
				edit{r.offset(c.Lparen), ")"})
			return
		case called == "os.OpenFile" && !makes(c, r, text):
			return
		case known:
			r.wrap(c, r.place(function, called), result)
			return
		}
	}
	for _, m := range r.methods[sel.Sel.Name] {
		if strings.HasPrefix(r.pkg, m.in) && len(c.Args) > 0 == m.given {
			r.wrap(c, r.place(function, sel.Sel.Name), m.result)
			return
		}
	}
}

// environment gives a program whose environment is written out, word by word, what its failpoints need.
func (r *rewriter) environment(a *ast.AssignStmt) {
	for i, to := range a.Lhs {
		field, ok := to.(*ast.SelectorExpr)
		if !ok || field.Sel.Name != "Env" || len(a.Lhs) != len(a.Rhs) {
			continue
		}
		if words, ok := a.Rhs[i].(*ast.CompositeLit); ok {
			r.edits = append(r.edits, edit{r.offset(words.Pos()), "append("},
				edit{r.offset(words.End()), ", wherryfail.Environment()...)"})
		}
	}
}

// makes tells whether an os.OpenFile can make or empty a file.
func makes(c *ast.CallExpr, r *rewriter, text []byte) bool {
	flags := text[r.offset(c.Lparen):r.offset(c.Rparen)]
	return bytes.Contains(flags, []byte("O_CREATE")) || bytes.Contains(flags, []byte("O_TRUNC"))
}

// comma is what is needed between the last argument and another.
func (r *rewriter) comma(c *ast.CallExpr, text []byte) string {
	if bytes.HasSuffix(bytes.TrimSpace(text[:r.offset(c.Rparen)]), []byte(",")) {
		return ""
	}
	return ", "
}

func (r *rewriter) wrap(c *ast.CallExpr, place, result string) {
	open := fmt.Sprintf("wherryfail.Do(%q, func() error { return ", place)
	if result != onlyError {
		open = fmt.Sprintf("wherryfail.Get(%q, func() (%s, error) { return ", place, result)
	}
	r.edits = append(r.edits, edit{r.offset(c.Pos()), open}, edit{r.offset(c.End()), " })"})
}

func (r *rewriter) place(function, called string) string {
	place := r.pkg + "." + function + ":" + called
	r.seen[place]++
	if n := r.seen[place]; n > 1 {
		place = fmt.Sprintf("%s#%d", place, n)
	}
	return place
}

// apply makes the edits. Those at one offset stay in their order.
func (r *rewriter) apply(text []byte) []byte {
	slices.SortStableFunc(r.edits, func(a, b edit) int { return a.at - b.at })
	var out bytes.Buffer
	from := 0
	for _, e := range r.edits {
		out.Write(text[from:e.at])
		out.WriteString(e.text)
		from = e.at
	}
	out.Write(text[from:])
	return out.Bytes()
}

var gofailComment = regexp.MustCompile(`(?m)^(\s*)// gofail: var (\w+) struct\{\}$`)

// inMemory are those of gofail's comments that stand where nothing is written: nobody can tell whether the process died
// before or after.
var inMemory = regexp.MustCompile(`beforeBucketPut|StartDBTxn|WritebackBuf|RangeStreamChunk|LeaderSend|FollowerSend|SendWatchResponse`)

// comments turns a file's comments of gofail into calls; nil, if there are none. Those that return errors are left:
// etcd and bbolt take a failed write for the end, as they should.
func comments(pkg string, text []byte) []byte {
	if !gofailComment.Match(text) {
		return nil
	}
	out := gofailComment.ReplaceAllFunc(text, func(found []byte) []byte {
		if inMemory.Match(found) {
			return found
		}
		return gofailComment.ReplaceAll(found, []byte(`${1}wherryfail.Here("`+pkg+`.${2}")`))
	})
	if bytes.Equal(out, text) {
		return nil
	}
	end := regexp.MustCompile(`(?m)^package \w+`).FindIndex(out)[1]
	return append(append(append([]byte{}, out[:end]...), `; import wherryfail "`+failPackage+`"`...), out[end:]...)
}
