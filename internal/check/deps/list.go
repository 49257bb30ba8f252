// SPDX-License-Identifier: Apache-2.0

package deps

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// Standard is the name of the Go standard library in a list of modules.
const Standard = "std"

// Module is one module of the binary.
type Module struct {
	Path     string
	Version  string   // empty for the standard library
	Packages []string // import paths, sorted
	Code     int64    // bytes of machine code, 0 when not measured
}

// List returns the modules whose packages a program is made of, sorted by path. dir is the module's folder.
func List(ctx context.Context, dir, program string) ([]Module, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=ImportPath,Standard,Module", program)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64") // one list for everybody
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("go list: %w", err)
	}
	return parse(out)
}

func parse(out []byte) ([]Module, error) {
	modules := map[string]*Module{}
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p struct {
			ImportPath string
			Standard   bool
			Module     *struct {
				Path, Version string
				Main          bool
			}
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if p.Module != nil && p.Module.Main {
			continue // our own code is no dependency
		}
		m := Module{Path: Standard}
		if p.Module != nil {
			m.Path, m.Version = p.Module.Path, p.Module.Version
		}
		if modules[m.Path] == nil {
			modules[m.Path] = &m
		}
		modules[m.Path].Packages = append(modules[m.Path].Packages, p.ImportPath)
	}
	var list []Module
	for _, m := range modules {
		slices.Sort(m.Packages)
		list = append(list, *m)
	}
	slices.SortFunc(list, func(a, b Module) int { return cmp.Compare(a.Path, b.Path) })
	return list, nil
}

// Write renders the list: a line per module, its packages below it. The text without sizes is what is compared.
func Write(w io.Writer, list []Module, total int64) error {
	var b strings.Builder
	packages := 0
	for _, m := range list {
		packages += len(m.Packages)
	}
	fmt.Fprintf(&b, "# What bin/wherry is made of. Written by make deps; read the difference when it changes.\n")
	fmt.Fprintf(&b, "# A line per module: its code in KiB (for orientation; data is not counted), then its packages.\n")
	fmt.Fprintf(&b, "# binary: %.1f MiB; modules: %d; packages: %d\n", float64(total)/(1<<20), len(list), packages)
	for _, m := range list {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimRight(fmt.Sprintf("%s %s", m.Path, m.Version), " "))
		fmt.Fprintf(&b, "# %d KiB\n", m.Code>>10)
		for _, p := range m.Packages {
			fmt.Fprintf(&b, "  %s\n", p)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Essence is a rendered list without what may differ from build to build.
func Essence(text string) string {
	var out []string
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}
