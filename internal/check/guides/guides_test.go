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

// scriptOf is a script whose pages have all the commands that are written in them, and no others.
func scriptOf(t *testing.T, path string) []Page {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := Parse(string(script))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, p := range pages {
		text, err := os.ReadFile(filepath.Join(root, p.Path))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Match(string(text)); err != nil {
			t.Errorf("%s: %s: %v", path, p.Path, err)
		}
	}
	return pages
}

// TestEveryCommandHasATest: each command of the README and of the guides is in the scripts of the tests that type them,
// which take long.
func TestEveryCommandHasATest(t *testing.T) {
	var known []string
	for _, p := range scriptOf(t, "test/e2e/testdata/guides.txt") {
		known = append(known, p.Path)
	}
	scriptOf(t, "test/cluster/testdata/guide.txt")
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

// TestTypedElsewhere: what guides.txt leaves to the test on a cluster is typed there.
func TestTypedElsewhere(t *testing.T) {
	typed := map[string]bool{} // page and command
	for _, p := range scriptOf(t, "test/cluster/testdata/guide.txt") {
		for _, s := range p.Steps {
			typed[p.Path+s.Run] = typed[p.Path+s.Run] || s.Kind.ofPage() && s.Kind != NotTyped
		}
	}
	left := 0
	for _, p := range scriptOf(t, "test/e2e/testdata/guides.txt") {
		for _, s := range p.Steps {
			if s.Kind != NotTyped || !strings.Contains(s.Wants[0], "test/cluster") {
				continue
			}
			if left++; !typed[p.Path+s.Run] {
				t.Errorf("%s: %q is typed by neither test", p.Path, s.Run)
			}
		}
	}
	if left == 0 {
		t.Error("guides.txt leaves nothing to test/cluster: is it written otherwise?")
	}
}

// TestPrints: a text, a regular expression of a line, and what must not be there.
func TestPrints(t *testing.T) {
	for want, is := range map[string]bool{"two": true, "four": false, "~^two .*here$": true, "~^here": false, "-two": false, "-four": true} {
		if got, err := Prints("one\ntwo is here\nthree\n", want); got != is || err != nil {
			t.Errorf("%q: %v, %v", want, got, err)
		}
	}
	if _, err := Prints("", "~("); err == nil {
		t.Error("half a regular expression is taken")
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
