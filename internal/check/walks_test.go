// SPDX-License-Identifier: Apache-2.0

package check

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// walkers are the functions outside of package podspec that go through more than one list of a pod's containers by hand, and why. The
// planner keeps the lists apart by design: gates, mains and debug containers are three things to it.
func walkers() map[string]string {
	return map[string]string{
		"internal/features.parts":                 "takes fields out of lists",
		"internal/node/plan.look":                 "gates, mains and debug containers are three lists to the planner too",
		"internal/node/plan.view.containers":      "writes the status, list by list",
		"internal/node/plan.view.containersReady": "pairs members and statuses by their places",
		"internal/cli/progress.failure":           "main containers are named before init containers",
		"internal/podspec.SetDefaults":            "ephemeral containers have other defaults",
		"internal/podspec.takeUpdatable":          "pairs old and new by their places",
		"internal/podspec.KeepResize":             "pairs old and new by their places",
		"internal/podspec.ValidateResize":         "pairs old and new by their places",
		"internal/podspec.movedContainers":        "pairs old and new by their places",
		"internal/podspec.scope.podResources":     "makes a pod of the lists",
		"internal/podspec.statusLists":            "is the walk",
		"internal/podspec.containersBelow":        "is the walk",
		"internal/podspec.ValidateStatusUpdate":   "names the list in errors",
		"internal/podspec.ValidateStatus":         "names the list in errors",
	}
}

// TestOneWalk: a list that is forgotten in a loop by hand is a container that is not checked, not counted or not shown. So what goes through
// the containers of a pod, or through their statuses, goes through podspec.Containers, podspec.Statuses and their like.
func TestOneWalk(t *testing.T) {
	known, found := walkers(), map[string]bool{}
	for _, f := range goFiles(t) {
		if f.test() || f.generated() || !strings.HasPrefix(f.path, "internal/") && !strings.HasPrefix(f.path, "cmd/") {
			continue
		}
		for _, d := range f.tree.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil || len(podLists(fn.Body)) < 2 {
				continue
			}
			name := f.dir() + "." + nameOf(fn)
			found[name] = true
			if known[name] == "" {
				t.Errorf("%s: %s goes through %s: use podspec.Containers, OwnContainers, FindContainer, Statuses, OwnStatuses or FindStatus",
					f.set.Position(fn.Pos()), nameOf(fn), strings.Join(podLists(fn.Body), ", "))
			}
		}
	}
	for name := range known {
		if !found[name] {
			t.Errorf("%s goes through one list at most: take it off the list", name)
		}
	}
}

// podLists names the lists of containers, or of their statuses, that code uses, if it uses them one by one: their lengths are no walk.
func podLists(body ast.Node) (lists []string) {
	spec := []string{"InitContainers", "Containers", "EphemeralContainers"}
	status := []string{"InitContainerStatuses", "ContainerStatuses", "EphemeralContainerStatuses"}
	counted := map[ast.Node]bool{}
	var specs, statuses []string
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if fn, ok := n.Fun.(*ast.Ident); ok && fn.Name == "len" {
				counted[n.Args[0]] = true
			}
		case *ast.SelectorExpr:
			name := n.Sel.Name
			switch {
			case counted[n]:
			case slices.Contains(spec, name) && ofPod(n.X) && !slices.Contains(specs, name):
				specs = append(specs, name)
			case slices.Contains(status, name) && !slices.Contains(statuses, name):
				statuses = append(statuses, name)
			}
		}
		return true
	})
	if len(specs) > 1 {
		lists = specs
	}
	if len(statuses) > 1 {
		lists = append(lists, statuses...)
	}
	return lists
}

// ofPod leaves out other things with containers: packages, what the node sees, what is measured.
func ofPod(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "spec" || x.Name == "s"
	case *ast.SelectorExpr:
		return x.Sel.Name == "Spec" || x.Sel.Name == "spec"
	}
	return false
}

func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	x := fn.Recv.List[0].Type
	if star, ok := x.(*ast.StarExpr); ok {
		x = star.X
	}
	if id, ok := x.(*ast.Ident); ok {
		return id.Name + "." + fn.Name.Name
	}
	return fn.Name.Name
}

// One function tells whether an image is the toolbox, whatever tag or digest its name has; and one says what kinds of containers there are.
func TestOneOfEach(t *testing.T) {
	kinds := []string{`"INIT"`, `"SIDECAR"`, `"EPHEMERAL"`}
	for _, f := range goFiles(t) {
		if f.test() || f.generated() || f.dir() == "internal/podspec" || !strings.HasPrefix(f.path, "internal/") {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if (n.Op == token.EQL || n.Op == token.NEQ) && (isToolbox(n.X) || isToolbox(n.Y)) {
					t.Errorf("%s compares with the toolbox's name: use podspec.IsToolbox", f.set.Position(n.Pos()))
				}
			case *ast.CallExpr:
				for _, arg := range n.Args[min(len(n.Args), 1):] {
					if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "HasPrefix" && isToolbox(arg) {
						t.Errorf("%s compares with the toolbox's name: use podspec.IsToolbox", f.set.Position(n.Pos()))
					}
				}
			case *ast.BasicLit:
				if slices.Contains(kinds, n.Value) {
					t.Errorf("%s names a kind of container: use podspec.Kind", f.set.Position(n.Pos()))
				}
			}
			return true
		})
	}
}

func isToolbox(x ast.Expr) (is bool) {
	ast.Inspect(x, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		is = is || ok && id.Name == "ToolboxImage"
		return true
	})
	return is
}
