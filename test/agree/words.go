// SPDX-License-Identifier: Apache-2.0

package agree

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// words are the texts that random objects are made of.
type words struct {
	enums  map[string][]string // by type, such as k8s.io/api/core/v1.PullPolicy
	fields map[string][]string // what the good objects have in a field of this name
	keys   map[string][]string // and the keys of its maps
}

// odd are texts that rules may think something of, wherever they stand.
func odd() []string {
	return []string{"", "a", "b", "A", "a.b", "a/b", "a_b", "-a", "a-", "a b", " a", "1", "0", "..", ".", "../a", "..a",
		"/", "/a", "/a/../b", "a:b", "a.b/c", "a/b/c", "A.b/C", "example.com", "example.com/thing", "*.example.com",
		"*", "1.2.3.4", "01.2.3.4", "::1", "fd00::1", "1.2.3.4/8", "http://a.b/c", "https://a.b/c", "http", "80-90",
		"-1", "1.5", "100Mi", "é", "a\nb", "$(A)", "None", "True", "Gt", "In", "metadata.name", "metadata.labels['a']",
		"spec.nodeName", "status.hostIP", "limits.cpu", "requests.memory", "object.x == 1", "=", "kubernetes.io/a",
		"a.k8s.io/b", "cpu", "memory", "hugepages-2Mi", "pods", "count/pods", "requests.cpu", "system:a", "system-a",
		strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 253), strings.Repeat("a", 254)}
}

func quantities() []string {
	return []string{"0", "1", "2", "-1", "1.5", "100m", "0.1m", "64Mi", "2Mi", "3Mi", "1Gi", "1e30",
		"9223372036854775807", "10"}
}

func numbers() []int64 {
	return []int64{0, 0, 1, 1, 2, 3, -1, 5, 10, 80, 255, 256, 443, 511, 512, 600, 1000, 8080, 30000, 40000, 65535,
		65536, 1<<31 - 1, -1 << 31}
}

// newWords reads the constants of the API's packages and harvests the good objects.
func newWords(good map[string][]any) (*words, error) {
	w := &words{fields: map[string][]string{}, keys: map[string][]string{}}
	for _, kind := range sortedKeys(good) {
		for _, tree := range good[kind] {
			w.harvest("", tree)
		}
	}
	var err error
	w.enums, err = constants("k8s.io/api/...")
	return w, err
}

func (w *words) harvest(field string, tree any) {
	switch t := tree.(type) {
	case string:
		if !slices.Contains(w.fields[field], t) {
			w.fields[field] = append(w.fields[field], t)
		}
	case []any:
		for _, v := range t {
			w.harvest(field, v)
		}
	case map[string]any:
		for _, k := range sortedKeys(t) {
			if !slices.Contains(w.keys[field], k) {
				w.keys[field] = append(w.keys[field], k)
			}
			w.harvest(k, t[k])
		}
	}
}

// constants are the typed string constants of some packages, by type: the values that its authors thought of.
func constants(pattern string) (map[string][]string, error) {
	var complaint bytes.Buffer
	cmd := exec.Command("go", "list", "-f", "{{.ImportPath}} {{.Dir}}", pattern)
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w: %s", pattern, err, complaint.String())
	}
	found := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		files, err := filepath.Glob(filepath.Join(dir, "*types.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			fileConstants(file, path, found)
		}
	}
	return found, nil
}

func fileConstants(file *ast.File, path string, found map[string][]string) {
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Type == nil {
			return true
		}
		kind, ok := spec.Type.(*ast.Ident)
		if !ok {
			return true
		}
		for _, v := range spec.Values {
			if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					found[path+"."+kind.Name] = append(found[path+"."+kind.Name], text)
				}
			}
		}
		return true
	})
}
