// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// where the program to be measured is in this module; it exists for the compiler only.
const where = "cost/program"

// source is the main program with what is named linked in: kept, because a run could call it for all that the linker
// knows, and never called.
func source(theirs []string) ([]byte, error) {
	var imports, kept bytes.Buffer
	seen := map[string]int{}
	for _, name := range theirs {
		dir, last := path.Split(name)
		pkg, symbol, ok := strings.Cut(last, ".")
		if !ok {
			return nil, fmt.Errorf("%s: want IMPORT/PATH.Name", name)
		}
		p := dir + pkg
		if !strings.HasPrefix(p, "k8s.io/") {
			p = "k8s.io/kubernetes/" + p
		}
		if _, ok := seen[p]; !ok {
			seen[p] = len(seen)
			fmt.Fprintf(&imports, "p%d %q\n", seen[p], p)
		}
		fmt.Fprintf(&kept, "p%d.%s,\n", seen[p], symbol)
	}
	return format.Source(fmt.Appendf(nil, `package main

import (
	"fmt"
	"os"

	%s
	"github.com/wherryproject/wherry/internal/cli"
	_ "github.com/wherryproject/wherry/internal/quickstart"
)

var kept = []any{
	%s
}

func main() {
	if len(os.Args) > 1<<20 {
		fmt.Println(kept...)
	}
	os.Exit(cli.Main(os.Args))
}
`, &imports, &kept))
}

// build makes the program with what is named, in dir, and counts its packages. The module file is a copy: what more the
// program needs is not what the tests need.
func build(dir, name string, theirs []string) (file string, packages int, err error) {
	src, err := source(theirs)
	if err != nil {
		return "", 0, err
	}
	work := filepath.Join(dir, name+".build")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return "", 0, err
	}
	for _, f := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(f)
		if err != nil {
			return "", 0, fmt.Errorf("run this in test/agree: %w", err)
		}
		here, err := filepath.Abs("../..")
		if err != nil {
			return "", 0, err
		}
		text = bytes.ReplaceAll(text, []byte("=> ../.."), []byte("=> "+here))
		if err := os.WriteFile(filepath.Join(work, f), text, 0o644); err != nil {
			return "", 0, err
		}
	}
	virtual, err := filepath.Abs(filepath.Join(where, "main.go"))
	if err != nil {
		return "", 0, err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {virtual: filepath.Join(work, "main.go")}})
	if err != nil {
		return "", 0, err
	}
	if err := os.WriteFile(filepath.Join(work, "main.go"), src, 0o644); err != nil {
		return "", 0, err
	}
	if err := os.WriteFile(filepath.Join(work, "overlay.json"), overlay, 0o644); err != nil {
		return "", 0, err
	}
	file = filepath.Join(dir, name)
	flags := []string{"-mod=mod", "-modfile=" + filepath.Join(work, "go.mod"),
		"-overlay=" + filepath.Join(work, "overlay.json")}
	if _, err := os.Stat(file); err != nil {
		if _, err := run("go", slices.Concat([]string{"build"}, flags,
			[]string{"-trimpath", "-ldflags=-s -w", "-o", file, "./" + where})...); err != nil {
			return "", 0, err
		}
	}
	list, err := run("go", slices.Concat([]string{"list"}, flags, []string{"-deps", "./" + where})...)
	return file, strings.Count(list, "\n"), err
}

func run(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as the Makefile has it
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, args[0], err, &problem)
	}
	return string(out), nil
}
