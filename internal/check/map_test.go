// SPDX-License-Identifier: Apache-2.0

package check

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// CONTRIBUTING.md says what every package is for, so that a newcomer finds the way: in a row of its own, or by its name in the row of the
// folder above it. What it names is there.
func TestContributingNamesEveryPackage(t *testing.T) {
	rows := folderRows(t)
	for dir := range packages(goFiles(t)) {
		if !mapped(rows, dir) {
			t.Errorf("%s: give it a row in the table of CONTRIBUTING.md, or name it in the row of the folder above", dir)
		}
	}
	for dir := range rows {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(dir))); err != nil {
			t.Errorf("CONTRIBUTING.md has a row for %s: %v", dir, err)
		}
	}
}

var quoted = regexp.MustCompile("`([^`]+)`")

// folderRows are the words of each row of CONTRIBUTING.md's table of folders, by each folder that the row is about. A row may be about several
// folders side by side, of which the first is written in full.
func folderRows(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| folder | what it is |\n|---|---|\n")
	if !ok {
		t.Fatal("CONTRIBUTING.md has no table of folders")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]string{}
	for line := range strings.Lines(table) {
		cells := strings.SplitN(line, "|", 3)
		if len(cells) < 3 {
			t.Fatalf("CONTRIBUTING.md: odd row %q", line)
		}
		first := ""
		for _, name := range quoted.FindAllStringSubmatch(cells[1], -1) {
			dir := name[1]
			if first != "" && !strings.Contains(dir, "/") {
				dir = path.Join(path.Dir(first), dir)
			}
			first = dir
			rows[dir] = cells[2]
		}
	}
	return rows
}

// mapped tells whether a folder has a row, or its name stands in the nearest row above it.
func mapped(rows map[string]string, dir string) bool {
	for above := dir; above != "."; above = path.Dir(above) {
		words, ok := rows[above]
		switch {
		case !ok:
			continue
		case above == dir:
			return true
		case strings.Contains(words, "one package each") && path.Dir(dir) == above:
			return true
		}
		names := quoted.FindAllStringSubmatch(words, -1)
		within := strings.TrimPrefix(dir, above+"/")
		return slices.ContainsFunc(names, func(m []string) bool { return m[1] == within || m[1] == dir })
	}
	return false
}

// The rule above sees what is missing.
func TestMapped(t *testing.T) {
	rows := map[string]string{"internal/cli": "the commands; `ask` turns flags into a request; `a/b` too", "internal/controllers": "control loops, one package each"}
	for dir, want := range map[string]bool{
		"internal/cli": true, "internal/cli/ask": true, "internal/cli/a/b": true, "internal/cli/a": false, "internal/cli/other": false,
		"internal/controllers/x": true, "internal/controllers/x/y": false, "internal/other": false,
	} {
		if got := mapped(rows, dir); got != want {
			t.Errorf("%s with rows for %v: %t", dir, slices.Sorted(maps.Keys(rows)), got)
		}
	}
}
