// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// module is the import path of the repository.
const module = "github.com/wherryproject/wherry"

// root is the repository's folder, seen from this package's.
const root = "../.."

// file is one Go file of the repository.
type file struct {
	path string // from the root, with slashes
	text []byte
	tree *ast.File
	set  *token.FileSet
}

func (f *file) dir() string { return path.Dir(f.path) }
func (f *file) test() bool  { return strings.HasSuffix(f.path, "_test.go") }
func (f *file) lines() int  { return bytes.Count(f.text, []byte("\n")) }
func (f *file) imports() (out []string) {
	for _, i := range f.tree.Imports {
		p, _ := strconv.Unquote(i.Path.Value) // the parser has checked it
		out = append(out, p)
	}
	return out
}

var generatedLine = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func (f *file) generated() bool {
	return generatedLine.Match(f.text[:min(len(f.text), 4096)])
}

// parsed is every Go file of the repository. To parse them takes two seconds of a processor, and most tests look at all: nobody
// changes what is in it.
var parsed = sync.OnceValues(parseAll)

// goFiles gives every Go file of the repository.
func goFiles(t *testing.T) []*file {
	t.Helper()
	out, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 50 {
		t.Fatalf("found %d Go files only; is %s the root?", len(out), root)
	}
	return out
}

func parseAll() (out []*file, err error) {
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && p != root && (strings.HasPrefix(name, ".") || name == "bin" || name == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		f := &file{path: filepath.ToSlash(rel), set: token.NewFileSet()}
		if f.text, err = os.ReadFile(p); err != nil {
			return err
		}
		mode := parser.ParseComments | parser.SkipObjectResolution
		if f.generated() {
			mode = parser.ImportsOnly | parser.ParseComments
		}
		if f.tree, err = parser.ParseFile(f.set, rel, f.text, mode); err != nil {
			return err
		}
		out = append(out, f)
		return nil
	})
	return out, err
}

// packages groups the files that are not tests by folder.
func packages(files []*file) map[string][]*file {
	out := map[string][]*file{}
	for _, f := range files {
		if !f.test() {
			out[f.dir()] = append(out[f.dir()], f)
		}
	}
	return out
}

// SPDX headers make the licence of every copied file plain.
func TestEveryFileNamesItsLicence(t *testing.T) {
	for _, f := range goFiles(t) {
		if !bytes.HasPrefix(f.text, []byte("// SPDX-License-Identifier: Apache-2.0\n\n")) && !f.generated() {
			t.Errorf("%s: the first line must be // SPDX-License-Identifier: Apache-2.0, then an empty one", f.path)
		}
	}
}

// The root folder is for documents and what builds: code has a folder with a reason, and what a command wrote there by
// chance, such as a kubeconfig, is not kept.
func TestTheRootHoldsWhatIsNamed(t *testing.T) {
	known := strings.Fields(".gitignore CONTRIBUTING.md LICENSE Makefile README.md SCOPE.md SECURITY.md go.mod go.sum staticcheck.conf")
	found, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		if e.Type().IsRegular() && e.Name() != ".git" && !slices.Contains(known, e.Name()) {
			t.Errorf("%s: it is not for the root folder: move it to a folder, or remove it", e.Name())
		}
	}
}

// A package says what it is in doc.go, where its readers look first.
func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for dir, files := range packages(goFiles(t)) {
		documented := false
		for _, f := range files {
			documented = documented || path.Base(f.path) == "doc.go" && f.tree.Doc != nil && len(f.tree.Doc.Text()) > 40
		}
		if !documented {
			t.Errorf("%s: write doc.go: what the package is, its few types, its law", dir)
		}
	}
}

// maxLines is where a file is to be split. Tests may be longer: a table is read by searching.
const (
	maxLines     = 500
	maxTestLines = 1000
)

func TestFilesAreNotTooLong(t *testing.T) {
	for _, f := range goFiles(t) {
		limit := maxLines
		if f.test() {
			limit = maxTestLines
		}
		if n := f.lines(); n > limit && !f.generated() {
			t.Errorf("%s: %d lines; split it at %d", f.path, n, limit)
		}
	}
}

// Names that say nothing collect what does not belong together.
func TestNoCatchAllPackages(t *testing.T) {
	for dir := range packages(goFiles(t)) {
		switch path.Base(dir) {
		case "util", "utils", "common", "helpers", "helper", "misc", "shared":
			t.Errorf("%s: name the package after what it is", dir)
		}
	}
}

// atStart tells whether a file is of the packages that work while others are initialized.
func atStart(path string) bool {
	return strings.HasPrefix(path, "internal/quickstart/") || strings.HasPrefix(path, "internal/firstthread/")
}

// Registration by init and changeable globals hide what a program is made of. The exceptions register nothing: one is about the time
// that the initialization of packages takes, one keeps a library's package from registering what would wake the server for ever, and
// one holds the first thread, which only main's goroutine is sure to be on, and only then.
func TestNoInitFunctions(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test() || f.generated() || atStart(f.path) {
			continue
		}
		for _, d := range f.tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: no init functions; compose in internal/server", f.path)
			}
		}
	}
}

// What runs pods is ours: nothing of Kubernetes' node agent may be imported by anything, and nothing of Kubernetes' internals by what
// decides about pods or debugs them. The comparison with Kubernetes' own rules is a module of its own.
func TestForbiddenImports(t *testing.T) {
	bad := map[string]string{
		"k8s.io/kubernetes/pkg/kubelet": "the node agent is ours",
		"io/ioutil":                     "use io and os",
		"github.com/pkg/errors":         "use errors and %w",
		"github.com/golang/glog":        "use log/slog",
		"github.com/stretchr/testify":   "use package testing",
	}
	ours := []string{"internal/podspec", "internal/node", "internal/debug", "internal/runtime", "internal/cri", "internal/cli"}
	for _, f := range goFiles(t) {
		for _, i := range f.imports() {
			for prefix, why := range bad {
				if i == prefix || strings.HasPrefix(i, prefix+"/") {
					t.Errorf("%s imports %s: %s", f.path, i, why)
				}
			}
			for _, folder := range ours {
				if strings.HasPrefix(f.path, folder+"/") && strings.HasPrefix(i, "k8s.io/kubernetes/") {
					t.Errorf("%s imports %s: what runs and debugs pods is ours (docs/decisions/040)", f.path, i)
				}
			}
		}
	}
}

// RS-01: what comes from outside the API is read as a quantity only by package quantities, in no time.
func TestQuantitiesAreBounded(t *testing.T) {
	for _, f := range goFiles(t) {
		if !f.test() && !strings.HasPrefix(f.path, "internal/quantities/") && bytes.Contains(f.text, []byte(" resource.ParseQuantity(")) {
			t.Errorf("%s calls resource.ParseQuantity, which takes minutes for 1e-100000000: quantities.Parse", f.path)
		}
	}
}
