// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"
	"testing/fstest"
)

const page = `# Rules

| rule | what | status | tests |
|---|---|---|---|
| EC-01 P | one | works | internal/a.TestOne |
| EC-02 | two | works |  |
| PL-01 | three | planned |  |
`

var tree = fstest.MapFS{
	"internal/a/a_test.go": {Data: []byte("package a\n\n// EC-01: the first.\nfunc TestOne() {}\n\nfunc TestTwo() {\n\trun(\"EC-02 and EC-01\")\n}\n\n// EC-09\nfunc helper() {}\n")},
	"test/b_test.go":       {Data: []byte("package b\n\nfunc TestThree() { /* PL-01 SHA-25 */ }\n")},
	"internal/a/a.go":      {Data: []byte("package a // PL-07\n")},
}

func TestPageIsKeptInStep(t *testing.T) {
	found, err := Scan(tree)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"EC-02: says works, but no test on a real container runtime (below test/ or in internal/runtime) names it",
	}
	if got := p.Faults(found); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("faults:\n%s", strings.Join(got, "\n"))
	}
	p.Update(found)
	text := p.String()
	for _, line := range []string{
		"| EC-01 P | one | works | internal/a.TestOne, internal/a.TestTwo |",
		"| EC-02 | two | works | internal/a.TestTwo |",
		"| PL-01 | three | planned | test.TestThree |",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
	again, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Faults(found); len(got) != 1 {
		t.Errorf("after the update:\n%s", strings.Join(got, "\n"))
	}
	if again.String() != text {
		t.Error("rendering is not stable")
	}
}

func TestUnprovenAndUnknownRulesAreFaults(t *testing.T) {
	p, err := Parse("| EC-03 P | x | works |  |\n")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(p.Faults(Proofs{"SC-77": {"a.TestX"}}), "\n")
	if got != "EC-03: says works, but no test names it\nSC-77: named by a.TestX, but not a rule of the page" {
		t.Error(got)
	}
}

func TestBadPagesAreRefused(t *testing.T) {
	for _, text := range []string{"", "| EC-01 | x | done |  |", "| EC-01 | x | works |  |\n| EC-01 | x | works |  |"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("took %q", text)
		}
	}
}
