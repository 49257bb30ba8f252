// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Proofs are the tests by the rule, or the attack, that they name.
type Proofs map[string][]string

// Prefixes are the families of rules. Only ids of these count, so that UTF-16 or SHA-25 name no rule.
var Prefixes = []string{"EC", "IX", "DC", "PID", "SC", "PL", "WL", "RS", "DA", "UI"}

var id = regexp.MustCompile(`\b(?:` + strings.Join(Prefixes, "|") + `)-\d\d\b`)

// Scan finds the tests below root that name rules: in the doc comment of a Test or Fuzz function, or inside it (subtest
// names, comments, tables).
func Scan(root fs.FS) (Proofs, error) {
	return scan(root, func(text string) []string { return id.FindAllString(text, -1) })
}

// ScanAttacks finds the tests below root that say ATTACK and ids of docs/attacks.md, in the same places.
func ScanAttacks(root fs.FS) (Proofs, error) {
	return scan(root, namedAttacks)
}

// scan finds the tests below root by the ids that named finds in their text.
func scan(root fs.FS, named func(text string) []string) (Proofs, error) {
	found := Proofs{}
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin") {
			return fs.SkipDir
		}
		// The checks' own tests make rules up.
		if d.IsDir() || !strings.HasSuffix(p, "_test.go") || strings.HasPrefix(p, "internal/check/") {
			return nil
		}
		text, err := fs.ReadFile(root, p)
		if err != nil {
			return err
		}
		return scanFile(p, text, named, found)
	})
	for rule := range found {
		slices.Sort(found[rule])
		found[rule] = slices.Compact(found[rule])
	}
	return found, err
}

func scanFile(p string, text []byte, named func(text string) []string, found Proofs) error {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, p, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range tree.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") &&
			!strings.HasPrefix(fn.Name.Name, "Fuzz") {
			continue
		}
		from, to := set.Position(fn.Pos()).Offset, set.Position(fn.End()).Offset
		if fn.Doc != nil {
			from = set.Position(fn.Doc.Pos()).Offset
		}
		for _, rule := range named(string(text[from:to])) {
			found[rule] = append(found[rule], path.Dir(p)+"."+fn.Name.Name)
		}
	}
	return nil
}
