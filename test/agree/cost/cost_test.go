// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// A part whose files have moved would be counted as none, one that names something twice would not compile.
func TestParts(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range parts() {
		if seen[p.name] {
			t.Errorf("%s is there twice", p.name)
		}
		seen[p.name] = true
		for _, name := range p.ours {
			if n, err := codeLines("../../..", []string{name}); err != nil || n == 0 {
				t.Errorf("%s: %s has %d lines of code: %v", p.name, name, n, err)
			}
		}
		src, err := source(p.theirs)
		if err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), "main.go", src, 0)
		if err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		kept := 0
		ast.Inspect(f, func(n ast.Node) bool {
			if list, ok := n.(*ast.CompositeLit); ok {
				kept += len(list.Elts)
			}
			return true
		})
		if kept != len(p.theirs) {
			t.Errorf("%s: the program keeps %d of %d", p.name, kept, len(p.theirs))
		}
	}
}

func TestLinesWithCode(t *testing.T) {
	const text = "// What for.\npackage p\n\n/* no\ncode */\nvar a = `1\n2` // two lines\n"
	if n := linesWithCode([]byte(text)); n != 3 {
		t.Errorf("%d lines, want 3", n)
	}
}

func TestWrite(t *testing.T) {
	as := &program{part: part{name: "as-it-is"}, packages: 10, size: 5e6, cpu: []float64{3, 1, 2}, memory: []float64{7},
		init: []float64{1}, heap: []float64{9}}
	more := &program{part: part{name: "more"}, lines: 40, packages: 12, size: 6.5e6, cpu: []float64{4, 4, 4},
		memory: []float64{9}, init: []float64{1.5}, heap: []float64{19}}
	var out bytes.Buffer
	write(&out, []*program{as, more})
	got := strings.Fields(strings.Split(out.String(), "\n")[2])
	want := "more 40 +2 +1.50 +0.50 +0.50 +10 +2.0 +3.0 +2.0"
	if strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
