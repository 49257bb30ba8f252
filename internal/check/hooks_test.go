// SPDX-License-Identifier: Apache-2.0

package check

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// TestHooksAreComposed: a store of k8s.io/apiserver has one place for each hook, and whoever assigns it drops what another part of the
// server has put there. So only the package that composes them does, and everybody else adds to it.
func TestHooksAreComposed(t *testing.T) {
	const composer = "internal/api/onwrite"
	composed := 0
	for _, f := range goFiles(t) {
		if strings.HasPrefix(f.path, "toolbox/") || f.dir() == composer && f.test() {
			continue
		}
		for _, name := range hooksSet(f.tree) {
			if f.dir() == composer {
				composed++
			} else {
				t.Errorf("%s sets the hook %s of a store: add to it, with %s", f.path, name, composer)
			}
		}
	}
	if composed != 5 {
		t.Errorf("%s sets %d hooks, want 5: has it moved?", composer, composed)
	}
}

// hooksSet lists the hooks of stores that a file assigns, or names in a literal.
func hooksSet(tree *ast.File) (out []string) {
	hooks := []string{"BeginCreate", "AfterCreate", "BeginUpdate", "AfterUpdate", "AfterDelete"}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, to := range n.Lhs {
				if s, ok := to.(*ast.SelectorExpr); ok && slices.Contains(hooks, s.Sel.Name) {
					out = append(out, s.Sel.Name)
				}
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && slices.Contains(hooks, key.Name) {
				out = append(out, key.Name)
			}
		}
		return true
	})
	return out
}
