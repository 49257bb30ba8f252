// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestEveryFieldHasItsRule walks the v1 Pod field by field and fails when testdata/fields.txt does not say who
// judges a field, or names a function that does not look at it. A new version of the API with a new field
// thus fails here until somebody has thought about it.
func TestEveryFieldHasItsRule(t *testing.T) {
	rules := readRules(t)
	uses := fieldsUsedByFunctions(t)
	want := map[string]bool{}
	visited := map[reflect.Type]bool{}
	walkFields(reflect.TypeFor[corev1.PodSpec](), visited, want)
	for _, status := range []reflect.Type{
		reflect.TypeFor[corev1.PodStatus](), reflect.TypeFor[corev1.PodCondition](), reflect.TypeFor[corev1.ContainerStatus](),
	} {
		for i := range status.NumField() {
			want[status.Name()+"."+status.Field(i).Name] = true
		}
	}
	for name := range want {
		if len(rules[name]) == 0 {
			t.Errorf("%s has no rule: write one and name it in testdata/fields.txt", name)
		}
	}
	for name, functions := range rules {
		if !want[name] {
			t.Errorf("testdata/fields.txt names %s, which the API does not have", name)
		}
		for _, f := range functions {
			_, fieldName, _ := strings.Cut(name, ".")
			if f != "any" && !slices.Contains(uses[f], fieldName) {
				t.Errorf("%s is to be judged by %s, which does not look at it", name, f)
			}
		}
	}
}

func walkFields(x reflect.Type, visited map[reflect.Type]bool, out map[string]bool) {
	for x.Kind() == reflect.Pointer || x.Kind() == reflect.Slice || x.Kind() == reflect.Map {
		x = x.Elem()
	}
	if x.Kind() != reflect.Struct || visited[x] || x.PkgPath() != reflect.TypeFor[corev1.Pod]().PkgPath() {
		return
	}
	visited[x] = true
	for i := range x.NumField() {
		f := x.Field(i)
		if !f.Anonymous {
			out[x.Name()+"."+f.Name] = true
		}
		walkFields(f.Type, visited, out)
	}
}

// readRules returns the functions by "Type.Field".
func readRules(t *testing.T) map[string][]string {
	data, err := os.ReadFile(filepath.Join("testdata", "fields.txt"))
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		line, reason, _ := strings.Cut(strings.TrimSpace(line), " -- ")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		if words[1] == "any" && reason == "" {
			t.Errorf("%q: say why any value is right", line)
		}
		for _, name := range words[2:] {
			rules[words[0]+"."+name] = append(rules[words[0]+"."+name], words[1])
		}
	}
	return rules
}

// fieldsUsedByFunctions parses this package and lists the selectors (x.Field) in every function.
func fieldsUsedByFunctions(t *testing.T) map[string][]string {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	uses := map[string][]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					uses[f.Name.Name] = append(uses[f.Name.Name], s.Sel.Name)
				}
				return true
			})
		}
	}
	return uses
}
