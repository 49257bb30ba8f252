// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/suite/vet"
	"honnef.co/go/tools/analysis/lint"
	"honnef.co/go/tools/config"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"honnef.co/go/tools/unused"
)

func main() {
	folders := os.Args[1:]
	if len(folders) == 0 {
		folders = []string{"."}
	}
	found := 0
	for _, folder := range folders {
		findings, err := look(folder)
		if err != nil {
			fmt.Fprintf(os.Stderr, "lint: %s: %v\n", folder, err)
			os.Exit(2)
		}
		for _, f := range findings {
			fmt.Println(f)
		}
		found += len(findings)
	}
	if found > 0 {
		os.Exit(1)
	}
}

// look is what the analyzers find in the module of a folder, in the order of the files.
func look(folder string) ([]finding, error) {
	root, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	analyzers, err := wanted(root)
	if err != nil {
		return nil, err
	}
	pkgs, err := load(root)
	if err != nil {
		return nil, err
	}
	return analyze(root, analyzers, pkgs)
}

// wanted are the analyzers of go vet, and those of staticcheck that the configuration of a folder asks for.
func wanted(root string) ([]*analysis.Analyzer, error) {
	conf, err := config.Load(root)
	if err != nil {
		return nil, err
	}
	analyzers := append([]*analysis.Analyzer{}, vet.Suite...)
	for _, list := range [][]*lint.Analyzer{simple.Analyzers, staticcheck.Analyzers, stylecheck.Analyzers,
		{unused.Analyzer}} {
		for _, a := range list {
			if asked(conf.Checks, a.Analyzer.Name) {
				analyzers = append(analyzers, a.Analyzer)
			}
		}
	}
	return analyzers, nil
}

// asked says whether a list of checks, of which later ones have the last word, asks for one: all, a name, or either
// behind a minus.
func asked(checks []string, name string) bool {
	is := false
	for _, c := range checks {
		switch c {
		case "all", name:
			is = true
		case "-all", "-" + name:
			is = false
		}
	}
	return is
}
