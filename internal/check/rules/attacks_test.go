// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"
	"testing/fstest"
)

const attacksPage = `# Attacks

| id | what is attempted | what holds | rules | tests |
|---|---|---|---|---|
| A1 | one | refused | EC-01 |  |
| A2 | two | refused | EC-01, PL-01 |  |
| B10 | three | refused | PL-09 |  |
`

var attackers = fstest.MapFS{
	"internal/a/a_test.go": {Data: []byte("package a\n\n// TestOne: ATTACK A1,\n// B10 and C3.\nfunc TestOne() {}\n\n// ATTACK A2\nfunc helper() {}\n\n// A2, B10: no mark.\nfunc TestTwo() {}\n")},
}

func TestAttacksAreKeptInStep(t *testing.T) {
	found, err := ScanAttacks(attackers)
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParseAttacks(attacksPage)
	if err != nil {
		t.Fatal(err)
	}
	behaviour, err := Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"A1: internal/a.TestOne repeats it, so take it off the list of those without a test",
		"A2: no test repeats it: none says ATTACK A2",
		"B10: bears on PL-09, which is not a rule",
		"B9: said to be without a test, but not on the page",
		"C3: named by internal/a.TestOne, but not on the page",
	}
	if got := p.Faults(found, []string{"A1", "B9"}, behaviour); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("faults:\n%s", strings.Join(got, "\n"))
	}
	p.Update(found)
	text := p.String()
	for _, line := range []string{"| A1 | one | refused | EC-01 | internal/a.TestOne |", "| A2 | two | refused | EC-01, PL-01 |  |"} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
	again, err := ParseAttacks(text)
	if err != nil {
		t.Fatal(err)
	}
	if again.String() != text {
		t.Error("rendering is not stable")
	}
}

func TestBadAttackPagesAreRefused(t *testing.T) {
	for _, text := range []string{"", "| A1 | x | y | EC-01 |", "| A1 | x | y | EC-01 |  |\n| A1 | x | y | EC-01 |  |"} {
		if _, err := ParseAttacks(text); err == nil {
			t.Errorf("took %q", text)
		}
	}
}
