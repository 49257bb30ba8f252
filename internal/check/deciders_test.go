// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A decider is a package that decides and does nothing: what it returns depends on its arguments alone, so that a test
// can give it any world and the explorer all of them. Such a package says "Pure." in a paragraph of its own in doc.go.

var pureLine = regexp.MustCompile(`(?m)^Pure\.$`)

// adapters are files that stand in a decider's folder and hand its work to a library; the library's interface is
// impure.
var adapters = map[string]string{
	"internal/api/table/convert.go": "rest.TableConvertor takes a context and no time",
}

// words are packages that are not pure, of which deciders may use the types.
var words = map[string]string{
	"internal/debug/debugrun": "a kind of the API, beside which is its client",
}

// undecided are packages that could be pure and are not asked to be.
var undecided = map[string]string{
	"internal/check":                "tests, which read the repository",
	"internal/check/rules":          "tests' tables, of which files are made",
	"internal/controllers":          "has no code",
	"internal/firstthread":          "locks a thread, and has a program run beside it",
	"internal/quickstart/unmetered": "sets a library's variable, and nothing else",
}

// worldly is what would let the world in: contexts, clients, loggers, clocks, files, processes, randomness.
func worldly() map[string]string {
	return map[string]string{
		"context":                     "nothing to cancel",
		"log":                         "say it in the result",
		"log/slog":                    "say it in the result",
		"k8s.io/klog/v2":              "say it in the result",
		"k8s.io/client-go/kubernetes": "objects are arguments",
		"k8s.io/client-go/tools":      "objects are arguments",
		"k8s.io/client-go/rest":       "objects are arguments",
		"k8s.io/client-go/informers":  "objects are arguments",
		"k8s.io/client-go/dynamic":    "objects are arguments",
		"google.golang.org/grpc":      "calls are somebody else's",
		"k8s.io/utils/clock":          "time is an argument",
		"math/rand":                   "randomness is an argument",
		"math/rand/v2":                "randomness is an argument",
		"crypto/rand":                 "randomness is an argument",
		"net/http":                    "calls are somebody else's",
		"os/exec":                     "calls are somebody else's",
		"os":                          "files are somebody else's",
		"sync":                        "nothing runs at the same time",
	}
}

// TestDecidersArePure: a package that says that it is pure is, and uses only packages of ours that are. One that is,
// says so: whoever changes it ought to know.
func TestDecidersArePure(t *testing.T) {
	all := packages(goFiles(t))
	pure := map[string]bool{}
	for dir, files := range all {
		for _, f := range files {
			pure[dir] = pure[dir] || path.Base(f.path) == "doc.go" && f.tree.Doc != nil &&
				pureLine.MatchString(f.tree.Doc.Text())
		}
	}
	number := 0
	for dir, files := range all {
		if !strings.HasPrefix(dir, "internal/") {
			continue
		}
		var faults []string
		for _, f := range files {
			if adapters[f.path] == "" {
				faults = append(faults, impurities(f, pure)...)
			}
		}
		_, excused := undecided[dir]
		switch {
		case pure[dir]:
			number++
			for _, fault := range faults {
				t.Errorf("%s says that it is pure, but %s", dir, fault)
			}
		case len(faults) == 0 && !excused && !generatedOnly(files):
			t.Errorf("%s depends on its arguments alone: say so in doc.go, with a paragraph that is \"Pure.\"", dir)
		}
	}
	if number < 20 {
		t.Errorf("only %d packages say that they are pure: does this test still see them?", number)
	}
	for dir := range undecided {
		if all[dir] == nil || pure[dir] {
			t.Errorf("%s: no such package, or it is pure: take it off the list", dir)
		}
	}
}

// impurities says by what a file depends on more than its arguments.
func impurities(f *file, pure map[string]bool) (faults []string) {
	for _, i := range f.imports() {
		for prefix, why := range worldly() {
			if i == prefix || strings.Contains(prefix, "/") && strings.HasPrefix(i, prefix+"/") {
				faults = append(faults, fmt.Sprintf("%s imports %s: %s", f.path, i, why))
			}
		}
		if dir, ours := strings.CutPrefix(i, module+"/"); ours && !pure[dir] && words[dir] == "" {
			faults = append(faults, fmt.Sprintf("%s imports %s, which is not pure", f.path, dir))
		}
	}
	for _, call := range clockCalls(f) {
		faults = append(faults, fmt.Sprintf("%s calls time.%s: time is an argument", f.path, call))
	}
	return faults
}

func generatedOnly(files []*file) bool {
	return !slices.ContainsFunc(files, func(f *file) bool { return !f.generated() && path.Base(f.path) != "doc.go" })
}

// clockCalls lists the uses of the clock in a file.
func clockCalls(f *file) (out []string) {
	ast.Inspect(f.tree, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" &&
			slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer",
				"NewTicker"}, s.Sel.Name) {
			out = append(out, s.Sel.Name)
		}
		return true
	})
	return out
}

// Reading and printing go through the commands' own streams; only the program's start and package cli may touch the
// process'. So may what runs a package's tests. The toolbox is another program: its commands are processes of their
// own, which hand their streams to others.
func TestOnlyMainsAndTheCommandLineUseTheProcessStreams(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test() || f.tree.Name.Name == "main" || f.dir() == "internal/cli" || f.dir() == "internal/leaktest" ||
			f.generated() || strings.HasPrefix(f.path, "toolbox/") {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := s.X.(*ast.Ident)
			if !ok {
				return true
			}
			switch x.Name + "." + s.Sel.Name {
			case "os.Stdout", "os.Stderr", "os.Stdin", "os.Exit", "fmt.Println", "fmt.Printf", "fmt.Print", "log.Fatal",
				"log.Fatalf":
				t.Errorf("%s uses %s.%s: hand it in", f.path, x.Name, s.Sel.Name)
			}
			return true
		})
	}
}
