// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

// TestEveryCommandHasATest: each command of the README and of the guides is in the script of the test that types them,
// which takes long.
func TestEveryCommandHasATest(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root, "test/e2e/testdata/guides.txt"))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := Parse(string(script))
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, p := range pages {
		known = append(known, p.Path)
		text, err := os.ReadFile(filepath.Join(root, p.Path))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Match(string(text)); err != nil {
			t.Errorf("%s: %v", p.Path, err)
		}
	}
	written, err := filepath.Glob(filepath.Join(root, "docs/guides/*.md"))
	if err != nil || len(written) == 0 {
		t.Fatalf("%v, %v", written, err)
	}
	for _, g := range append(written, "README.md") {
		if page := strings.TrimPrefix(g, root+"/"); !slices.Contains(known, page) {
			t.Errorf("%s is not in guides.txt", page)
		}
	}
}

// TestMatch: a command that is missing on either side is named.
func TestMatch(t *testing.T) {
	pages, err := Parse("# a remark\n== p.md\n+ touch x\n> wherry a\nout\n? docker\n= docker <<EOF\nno reason to\n")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"text\n\n    wherry a # remark\n    docker <<EOF\n    x\n    EOF\n": "",
		"text\n\n    wherry a\n": "line 7: the page has no command left",
		"text\n\n    wherry b\n": `line 4: the page goes on with "wherry b", the script with "wherry a"`,
		"text\n\n```sh\nwherry a\n```\n\n    docker <<EOF\n    x\n    EOF\n    wherry c\n": `the script does not know "wherry c"`,
	} {
		typed, err := pages[0].Match(text)
		switch {
		case want == "" && (err != nil || !slices.Equal(typed,
			[]string{"touch x", "wherry a", "docker <<EOF\nx\nEOF"})):
			t.Errorf("%q, %v", typed, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%v, want %s", err, want)
		}
	}
	for script, want := range map[string]string{
		"> wherry a\n":               "of which page",
		"== p.md\nout\n":             "of which command",
		"== p.md\n= wherry a\n> b\n": "why is",
	} {
		if _, err := Parse(script); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
