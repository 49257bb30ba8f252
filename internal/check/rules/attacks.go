// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Attack is one line of docs/attacks.md: something that somebody tried, or that broke, and what holds.
type Attack struct {
	ID    string
	Text  string   // what was attempted, and what holds: two columns
	Rules []string // of docs/behaviour.md, that it bears on
	Tests []string // "folder.TestName", sorted
}

// AttackPage is docs/attacks.md: text with attacks in tables.
type AttackPage struct {
	lines   []string
	at      map[string]int // id -> line
	Attacks []*Attack
}

// attackRow is an attack's line: | A1 | what is attempted | what holds | RS-11, EC-21 | tests |
var attackRow = regexp.MustCompile(`^\| ([ABC]\d+) \| (.* \| .*) \| ([A-Z0-9, -]+) \| (.*) ?\|$`)

// mark is how a test says which attacks it repeats: ATTACK A12, A13 and B1. A comment's lines are joined before.
var (
	mark     = regexp.MustCompile(`\bATTACKS? ([ABC]\d+(?:(?:, | and |, and )[ABC]\d+)*)`)
	attackID = regexp.MustCompile(`[ABC]\d+`)
	lineEnd  = regexp.MustCompile(`\n\s*//\s?`)
)

// namedAttacks finds the ids of the attacks that a text names.
func namedAttacks(text string) []string {
	var ids []string
	for _, m := range mark.FindAllStringSubmatch(lineEnd.ReplaceAllString(text, " "), -1) {
		ids = append(ids, attackID.FindAllString(m[1], -1)...)
	}
	return ids
}

// ParseAttacks reads docs/attacks.md.
func ParseAttacks(text string) (*AttackPage, error) {
	p := &AttackPage{lines: strings.Split(text, "\n"), at: map[string]int{}}
	for n, line := range p.lines {
		m := attackRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		a := &Attack{ID: m[1], Text: m[2], Rules: strings.Split(m[3], ", ")}
		if _, twice := p.at[a.ID]; twice {
			return nil, fmt.Errorf("line %d: %s stands twice", n+1, a.ID)
		}
		if tests := strings.TrimSpace(m[4]); tests != "" {
			a.Tests = strings.Split(tests, ", ")
		}
		p.at[a.ID] = n
		p.Attacks = append(p.Attacks, a)
	}
	if len(p.Attacks) == 0 {
		return nil, fmt.Errorf("no attacks found; a line is | A1 | what is attempted | what holds | RS-11 | tests |")
	}
	return p, nil
}

// Update puts the tests found into the page.
func (p *AttackPage) Update(found Proofs) {
	for _, a := range p.Attacks {
		a.Tests = found[a.ID]
	}
}

// String renders the page.
func (p *AttackPage) String() string {
	lines := slices.Clone(p.lines)
	for _, a := range p.Attacks {
		lines[p.at[a.ID]] = fmt.Sprintf("| %s | %s | %s | %s |", a.ID, a.Text, strings.Join(a.Rules, ", "),
			strings.Join(a.Tests, ", "))
	}
	return strings.Join(lines, "\n")
}

// Faults says where the page claims what the tests do not show. untried are the ids that may still be without a test;
// one that has a test must be taken off them. rules is the page with the rules that attacks bear on.
func (p *AttackPage) Faults(found Proofs, untried []string, rules *Page) []string {
	var out []string
	for _, a := range p.Attacks {
		switch may := slices.Contains(untried, a.ID); {
		case len(found[a.ID]) == 0 && !may:
			out = append(out, fmt.Sprintf("%s: no test repeats it: none says ATTACK %s", a.ID, a.ID))
		case len(found[a.ID]) > 0 && may:
			out = append(out, fmt.Sprintf("%s: %s repeats it, so take it off the list of those without a test", a.ID,
				found[a.ID][0]))
		}
		for _, r := range a.Rules {
			if _, known := rules.at[r]; !known {
				out = append(out, fmt.Sprintf("%s: bears on %s, which is not a rule", a.ID, r))
			}
		}
	}
	for id, tests := range found {
		if _, known := p.at[id]; !known {
			out = append(out, fmt.Sprintf("%s: named by %s, but not on the page", id, tests[0]))
		}
	}
	for _, id := range untried {
		if _, known := p.at[id]; !known {
			out = append(out, fmt.Sprintf("%s: said to be without a test, but not on the page", id))
		}
	}
	slices.Sort(out)
	return out
}
