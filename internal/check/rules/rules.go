// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Status is how far a rule is kept.
type Status string

const (
	Works   Status = "works"   // proven by a test
	Part    Status = "part"    // some of it works; the rule's text says what is missing
	Planned Status = "planned" // not yet
)

// Rule is one line of the page.
type Rule struct {
	ID     string
	Text   string
	Pure   bool // of the API or of planning alone: proven in that layer
	Status Status
	Tests  []string // "folder.TestName", sorted
}

// Page is docs/behaviour.md: text with rules in tables.
type Page struct {
	lines []string
	at    map[string]int // rule id -> line
	Rules []*Rule
}

// row is a rule's line: | EC-01 P | text | status | tests |
var row = regexp.MustCompile(`^\| ([A-Z]{2,3}-\d\d)( P)? \| (.*) \| (\S*) \| (.*) ?\|$`)

// Parse reads the page.
func Parse(text string) (*Page, error) {
	p := &Page{lines: strings.Split(text, "\n"), at: map[string]int{}}
	for n, line := range p.lines {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		r := &Rule{ID: m[1], Pure: m[2] != "", Text: m[3], Status: Status(m[4])}
		if !slices.Contains([]Status{Works, Part, Planned}, r.Status) {
			return nil, fmt.Errorf("line %d: %s: status %q is not one of works, part, planned", n+1, r.ID, r.Status)
		}
		if _, twice := p.at[r.ID]; twice {
			return nil, fmt.Errorf("line %d: %s stands twice", n+1, r.ID)
		}
		if m[5] = strings.TrimSpace(m[5]); m[5] != "" {
			r.Tests = strings.Split(m[5], ", ")
		}
		p.at[r.ID] = n
		p.Rules = append(p.Rules, r)
	}
	if len(p.Rules) == 0 {
		return nil, fmt.Errorf("no rules found; a line is | EC-01 P | text | status | tests |")
	}
	return p, nil
}

// Update puts the tests found into the page.
func (p *Page) Update(found Proofs) {
	for _, r := range p.Rules {
		r.Tests = found[r.ID]
	}
}

// String renders the page.
func (p *Page) String() string {
	lines := slices.Clone(p.lines)
	for _, r := range p.Rules {
		layer := ""
		if r.Pure {
			layer = " P"
		}
		lines[p.at[r.ID]] = fmt.Sprintf("| %s%s | %s | %s | %s |", r.ID, layer, r.Text, r.Status,
			strings.Join(r.Tests, ", "))
	}
	return strings.Join(lines, "\n")
}

// Faults says where the page claims what the tests do not show. That its tests column is up to date is `make verify`'s
// to check.
func (p *Page) Faults(found Proofs) []string {
	var out []string
	known := map[string]bool{}
	for _, r := range p.Rules {
		known[r.ID] = true
		if r.Status != Works {
			continue
		}
		switch real := slices.ContainsFunc(found[r.ID], OnRealRuntime); {
		case len(found[r.ID]) == 0:
			out = append(out, fmt.Sprintf("%s: says works, but no test names it", r.ID))
		case !r.Pure && !real:
			out = append(out,
				fmt.Sprintf("%s: says works, but no test on a real container runtime (below test/ or in internal/runtime) names it", r.ID))
		}
	}
	for id, tests := range found {
		if !known[id] {
			out = append(out, fmt.Sprintf("%s: named by %s, but not a rule of the page", id, tests[0]))
		}
	}
	slices.Sort(out)
	return out
}

// OnRealRuntime returns the tests that run real containers: those against the built binary, and the embedded runtime's
// own.
func OnRealRuntime(test string) bool {
	return strings.HasPrefix(test, "test/") || strings.HasPrefix(test, "internal/runtime")
}
