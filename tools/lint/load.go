// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"

	"golang.org/x/tools/go/packages"
)

// What is loaded of packages that are named by a pattern, all of it, and of those that they import, their types.
const mode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedExportFile |
	packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedTypesSizes | packages.NeedModule | packages.NeedForTest

// telling are packages of the standard library that are read from source, too: which functions never return
// (testing.T.Fatal), and which never return nil, the analyzers know from nothing else.
var telling = []string{"errors", "fmt", "log", "os", "testing"}

// load loads the packages of the module in a folder with their tests, and those that are telling. What else they import
// is cut off: there is no source to look at.
func load(root string) ([]*packages.Package, error) {
	pkgs, err := packages.Load(&packages.Config{Mode: mode, Dir: root, Tests: true},
		append([]string{"./..."}, telling...)...)
	if err != nil {
		return nil, err
	}
	var failed []error
	read := map[string]bool{}
	for _, p := range pkgs {
		for _, e := range p.Errors {
			failed = append(failed, e)
		}
		read[p.ID] = true
	}
	if len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	for _, p := range pkgs {
		for path, imported := range p.Imports {
			if !read[imported.ID] {
				delete(p.Imports, path)
			}
		}
	}
	return pkgs, nil
}

// written are the packages of the module itself, without those that are there once more with their tests in them, and
// without the main functions of tests, which nobody wrote.
func written(pkgs []*packages.Package) []*packages.Package {
	tested := map[string]bool{}
	for _, p := range pkgs {
		if p.ForTest == p.PkgPath {
			tested[p.PkgPath] = true
		}
	}
	var out []*packages.Package
	for _, p := range pkgs {
		if p.Module == nil || !p.Module.Main || p.ForTest == "" && tested[p.PkgPath] ||
			strings.HasSuffix(p.PkgPath, ".test") {
			continue
		}
		out = append(out, p)
	}
	return out
}
