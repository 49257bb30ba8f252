// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
	"honnef.co/go/tools/unused"
)

// finding is what an analyzer found at a place.
type finding struct {
	at      token.Position
	check   string
	message string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d:%d: %s (%s)", f.at.Filename, f.at.Line, f.at.Column, f.message, f.check)
}

// analyze runs analyzers on packages of the module at root, and returns what they find there, each once, with names of
// files that begin at root.
func analyze(root string, analyzers []*analysis.Analyzer, pkgs []*packages.Package) ([]finding, error) {
	graph, err := checker.Analyze(analyzers, written(pkgs), nil)
	if err != nil {
		return nil, err
	}
	var failed []error
	var findings []finding
	use := usage{}
	for _, act := range graph.Roots {
		if act.Err != nil {
			failed = append(failed, fmt.Errorf("%s of %s: %w", act.Analyzer, act.Package, act.Err))
			continue
		}
		for _, d := range act.Diagnostics {
			findings = append(findings, finding{act.Package.Fset.Position(d.Pos), act.Analyzer.Name, d.Message})
		}
		if result, is := act.Result.(unused.Result); is {
			use.add(act.Package.PkgPath, result)
		}
	}
	if len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	return inOrder(root, append(findings, use.findings()...)), nil
}

// inOrder sorts findings by place, each once, and leaves out those in files elsewhere, which the compiler wrote.
func inOrder(root string, findings []finding) []finding {
	var out []finding
	for _, f := range findings {
		name, err := filepath.Rel(root, f.at.Filename)
		if err != nil || strings.HasPrefix(name, "..") {
			continue
		}
		f.at.Filename, f.at.Offset = name, 0
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.at.Filename, b.at.Filename), cmp.Compare(a.at.Line, b.at.Line),
			cmp.Compare(a.at.Column, b.at.Column), cmp.Compare(a.check, b.check), cmp.Compare(a.message, b.message))
	})
	return slices.Compact(out)
}

// usage is what packages, with their tests and without, use of what they declare.
type usage map[declared]*use

// declared is a thing that a package declares.
type declared struct {
	pkg, file, name string
	line            int
}

type use struct {
	object unused.Object
	used   bool
}

func (u usage) add(pkg string, result unused.Result) {
	for _, o := range result.Unused {
		u.of(pkg, o)
	}
	for _, o := range result.Used {
		u.of(pkg, o).used = true
	}
}

func (u usage) of(pkg string, o unused.Object) *use {
	d := declared{pkg, o.Position.Filename, o.Name, o.Position.Line}
	if u[d] == nil {
		u[d] = &use{object: o}
	}
	return u[d]
}

// findings are the things that none of the forms of their package uses.
func (u usage) findings() []finding {
	var out []finding
	for _, one := range u {
		if !one.used {
			out = append(out, finding{one.object.DisplayPosition, unused.Analyzer.Analyzer.Name,
				one.object.Kind + " " + one.object.Name + " is unused"})
		}
	}
	return out
}
