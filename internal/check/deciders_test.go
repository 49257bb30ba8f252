// SPDX-License-Identifier: Apache-2.0

package check

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// deciders are the packages that decide and do nothing: what they return depends on their arguments alone, so that a test can
// give them any world and the explorer all of them.
var deciders = []string{
	"internal/podspec",
	"internal/node/plan",
	"internal/door/crowd",
	"internal/node/env",
	"internal/api/table",
	"internal/api/rbac",
	"internal/api/nodeauth",
	"internal/controllers/scheduler/fit",
	"internal/cli/progress",
	"internal/timeline",
	"internal/manifest",
	"internal/imagename",
}

// adapters are files that stand in a decider's folder and hand its work to a library; the library's interface is impure.
var adapters = map[string]string{
	"internal/api/table/convert.go": "rest.TableConvertor takes a context and no time",
}

// TestDecidersArePure forbids what would let the world in: contexts, clients, loggers, clocks, files, processes, randomness.
func TestDecidersArePure(t *testing.T) {
	bad := map[string]string{
		"context":                      "nothing to cancel",
		"log":                          "say it in the result",
		"log/slog":                     "say it in the result",
		"k8s.io/klog/v2":               "say it in the result",
		"k8s.io/client-go/kubernetes":  "objects are arguments",
		"k8s.io/client-go/tools":       "objects are arguments",
		"k8s.io/client-go/rest":        "objects are arguments",
		"k8s.io/client-go/informers":   "objects are arguments",
		"k8s.io/client-go/dynamic":     "objects are arguments",
		"google.golang.org/grpc":       "calls are somebody else's",
		"k8s.io/utils/clock":           "time is an argument",
		"math/rand":                    "randomness is an argument",
		"math/rand/v2":                 "randomness is an argument",
		"crypto/rand":                  "randomness is an argument",
		"net/http":                     "calls are somebody else's",
		"os/exec":                      "calls are somebody else's",
		"os":                           "files are somebody else's",
		"sync":                         "nothing runs at the same time",
		module + "/internal/cri":       "calls are somebody else's",
		module + "/internal/node/work": "it is the other way round",
	}
	seen := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.test() || !slices.Contains(deciders, f.dir()) {
			continue
		}
		seen[f.dir()] = true
		if adapters[f.path] != "" {
			continue
		}
		for _, i := range f.imports() {
			for prefix, why := range bad {
				if i == prefix || strings.Contains(prefix, "/") && strings.HasPrefix(i, prefix+"/") {
					t.Errorf("%s imports %s: it is a decider: %s", f.path, i, why)
				}
			}
		}
		for _, call := range clockCalls(f) {
			t.Errorf("%s calls time.%s: it is a decider: time is an argument", f.path, call)
		}
	}
	for _, d := range deciders {
		if !seen[d] {
			t.Errorf("%s: no such package; take it off the list, or put the decider's new name on it", d)
		}
	}
}

// clockCalls lists the uses of the clock in a file.
func clockCalls(f *file) (out []string) {
	ast.Inspect(f.tree, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" &&
			slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}, s.Sel.Name) {
			out = append(out, s.Sel.Name)
		}
		return true
	})
	return out
}

// Reading and printing go through the commands' own streams; only the program's start and package cli may touch the process'.
// The toolbox is another program: its commands are processes of their own, which hand their streams to others.
func TestOnlyMainsAndTheCommandLineUseTheProcessStreams(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test() || f.tree.Name.Name == "main" || f.dir() == "internal/cli" || f.generated() || strings.HasPrefix(f.path, "toolbox/") {
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
			case "os.Stdout", "os.Stderr", "os.Stdin", "os.Exit", "fmt.Println", "fmt.Printf", "fmt.Print", "log.Fatal", "log.Fatalf":
				t.Errorf("%s uses %s.%s: hand it in", f.path, x.Name, s.Sel.Name)
			}
			return true
		})
	}
}
