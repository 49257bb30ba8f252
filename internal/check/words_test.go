// SPDX-License-Identifier: Apache-2.0

package check

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestNothingIsNoSomething: what a user reads is ordinary English. "X is no list" is not: it is "X is not a list". "There is no list",
// "it is no longer there" and comparisons are right.
func TestNothingIsNoSomething(t *testing.T) {
	checked := 0
	for _, f := range goFiles(t) {
		if f.test() || f.generated() {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Errorf("%s: %v", f.path, err)
			}
			checked++
			for _, wrong := range nothings(text) {
				t.Errorf("%s: %q: say that it is not a …", f.path, wrong)
			}
			return true
		})
	}
	if checked < 1000 {
		t.Errorf("only %d strings checked", checked)
	}
}

// isNo finds the words, with the one before them and the one after.
var isNo = regexp.MustCompile(`(?i)(\S+)\s+(?:is|are|was|were)\s+no\s+([a-z]+)`)

// nothings are the places of a text where something "is no" something.
func nothings(text string) (wrong []string) {
	for _, m := range isNo.FindAllStringSubmatch(text, -1) {
		switch strings.ToLower(m[2]) {
		case "longer", "more", "less", "better", "worse", "older", "newer", "higher", "lower", "different":
			continue
		}
		if !strings.HasSuffix(strings.ToLower(m[1]), "there") {
			wrong = append(wrong, m[0])
		}
	}
	return wrong
}

// TestNothings proves that the words are found, and that what is right is left alone.
func TestNothings(t *testing.T) {
	for text, want := range map[string]int{
		`%q is no name of an image`:         1,
		"these are no lists":                1,
		"a\nis no b":                        1,
		"there is no server":                0,
		"There are no pods":                 0,
		"the image is no longer there":      0,
		"it is no more than a hint":         0,
		"is nobody there? is not a list":    0,
		"there was no way; that was no way": 1,
	} {
		if got := nothings(text); len(got) != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
