// SPDX-License-Identifier: Apache-2.0

package check

import (
	"go/ast"
	"strings"
	"testing"
)

// TestCommandsWriteToTheirStreams (RS-13): a command writes to the streams it was given, which keep what others have written from acting on
// the user's terminal. So nothing in internal/cli names the process's own, and only these files reach below the filter, each for a reason.
func TestCommandsWriteToTheirStreams(t *testing.T) {
	main := "internal/cli/root.go" // makes the streams plain
	own := map[string]string{
		"internal/cli/onhost/debug.go":       "a session on this machine with a terminal of its own has the user's",
		"internal/cli/ask/session.go":        "sessions with a terminal of their own",
		"internal/cli/pods/debug.go":         "a note while the terminal is in raw mode, escaped there",
		"internal/cli/images/import.go":      "a line that the next one replaces",
		"internal/cli/images/pull.go":        "a line that the next one replaces",
		"internal/cli/podwhy/command.go":     "an answer in colours; what others wrote was put on single lines before",
		"internal/cli/pods/meter.go":         "a line that the next one replaces",
		"internal/cli/podrun/screen.go":      "colours of its own; all that others wrote is escaped there",
		"internal/cli/pulling/wait.go":       "a line that the next one replaces; a line while the terminal is in raw mode, escaped there",
		"internal/cli/short/short.go":        "a note while the terminal is in raw mode, escaped there",
		"internal/cli/pods/debug_cluster.go": "a note while the terminal is in raw mode, escaped there",
		"internal/cli/timeline.go":           "a chart in colours, drawn again in its place",
	}
	seen := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.test() || !strings.HasPrefix(f.dir(), "internal/cli") {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if id, ok := call.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
					t.Errorf("%s: %s writes to the process's standard error: write to the Terminal", f.path, id.Name)
				}
			}
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			from, ok := s.X.(*ast.Ident)
			if !ok {
				return true
			}
			switch from.Name + "." + s.Sel.Name {
			case "os.Stdout", "os.Stderr", "fmt.Print", "fmt.Printf", "fmt.Println":
				if f.path != main {
					t.Errorf("%s: %s.%s: write to the Terminal", f.path, from.Name, s.Sel.Name)
				}
			case "plain.Own":
				seen[f.path] = true
				if own[f.path] == "" {
					t.Errorf("%s goes below the filter (plain.Own): say why in this test", f.path)
				}
			}
			return true
		})
	}
	for path := range own {
		if !seen[path] {
			t.Errorf("%s does not use plain.Own any more: take it out of this test", path)
		}
	}
}
