// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	out := flag.String("o", "bin/.failpoints", "folder for the overlay and the rewritten files")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, "failpoints:", err)
		os.Exit(1)
	}
}

// output is what the rewritten files are put into.
type output struct {
	dir     string
	Replace map[string]string // of the repository's files, as go build -overlay reads it
	// folders of modules, which no overlay may touch: the copies that are used in their place
	replaced map[string]string
}

func run(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	o := &output{dir, map[string]string{}, map[string]string{}}
	if err := errors.Join(os.RemoveAll(o.sources()), os.RemoveAll(o.modules()),
		os.MkdirAll(o.sources(), 0o755)); err != nil {
		return err
	}
	err = errors.Join(
		each(slices.Concat(ours(), embedded()), func(p listed) error { return p.wrapCalls(o) }),
		each(commented(), func(p listed) error { return p.turnComments(o) }),
	)
	if err != nil {
		return err
	}
	var edits strings.Builder
	for module, copied := range o.replaced {
		fmt.Fprintf(&edits, "-replace=%s=%s\n", module, copied)
	}
	text, err := json.MarshalIndent(o, "", "\t")
	return errors.Join(err, os.WriteFile(filepath.Join(dir, "overlay.json"), text, 0o644),
		os.WriteFile(filepath.Join(dir, "replaced"), []byte(edits.String()), 0o644))
}

func (o *output) sources() string { return filepath.Join(o.dir, "sources") }
func (o *output) modules() string { return filepath.Join(o.dir, "modules") }

// put takes a rewritten file of a package; nil, if there was nothing to rewrite.
func (o *output) put(p listed, name string, text []byte) error {
	if text == nil {
		return nil
	}
	if p.Module.Main {
		to := filepath.Join(o.sources(), fmt.Sprintf("%04d-%s", len(o.Replace), name))
		o.Replace[filepath.Join(p.Dir, name)] = to
		return os.WriteFile(to, text, 0o644)
	}
	copied, found := o.replaced[p.Module.Path]
	if !found {
		copied = filepath.Join(o.modules(), strings.ReplaceAll(p.Module.Path, "/", "_"))
		if err := os.CopyFS(copied, os.DirFS(p.Module.Dir)); err != nil {
			return err
		}
		o.replaced[p.Module.Path] = copied
	}
	rel, err := filepath.Rel(p.Module.Dir, p.Dir)
	to := filepath.Join(copied, rel, name)
	return errors.Join(err, os.Chmod(to, 0o644), os.WriteFile(to, text, 0o644))
}

// listed is what `go list` says about a package.
type listed struct {
	Dir, ImportPath string
	GoFiles         []string
	Module          struct {
		Path, Dir string
		Main      bool
	}
}

// each lists packages and calls do with each of them.
func each(patterns []string, do func(listed) error) error {
	list := exec.Command("go", append([]string{"list", "-json=Dir,ImportPath,GoFiles,Module"}, patterns...)...)
	list.Stderr = os.Stderr
	text, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		var p listed
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := do(p); err != nil {
			return fmt.Errorf("%s: %w", p.ImportPath, err)
		}
	}
}

// name is the package's name in places: short, and without what is the same for all.
func (p listed) name() string {
	name := strings.TrimPrefix(p.ImportPath, module)
	name = strings.TrimPrefix(name, "internal/")
	name = strings.Replace(name, "github.com/containerd/containerd/v2/", "containerd/", 1)
	return strings.TrimPrefix(strings.TrimPrefix(name, "github.com/"), "go.etcd.io/")
}

func (p listed) wrapCalls(o *output) error {
	r := &rewriter{pkg: p.name(), calls: calls(), methods: methods(), seen: map[string]int{}}
	return p.files(o, r.file)
}

func (p listed) turnComments(o *output) error {
	return p.files(o, func(_ string, text []byte) ([]byte, error) { return comments(p.name(), text), nil })
}

func (p listed) files(o *output, rewrite func(name string, text []byte) ([]byte, error)) error {
	for _, f := range p.GoFiles {
		name := filepath.Join(p.Dir, f)
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if text, err = rewrite(name, text); err != nil {
			return err
		}
		if err := o.put(p, f, text); err != nil {
			return err
		}
	}
	return nil
}
