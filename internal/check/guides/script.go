// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Kind says what a step of the script is.
type Kind string

// The kinds.
const (
	OfScript    Kind = "+"  // of the script, run as root, to set a scene
	Works       Kind = ">"  // typed, and exits with 0
	Refuses     Kind = "!>" // typed, and fails
	Lasts       Kind = "&"  // typed, and goes on until Ctrl-C
	ScriptLasts Kind = "+&" // of the script, and goes on until Ctrl-C
	Interrupts  Kind = "^C" // Ctrl-C for the one that goes on
	AtTerminal  Kind = "@"  // typed at a terminal, with answers
	Stands      Kind = "%"  // what a word of the page stands for until the page's end
	NotTyped    Kind = "="  // in the page, but not for the test; the line after it says why
)

// ofPage says that it is one of the page's commands.
func (k Kind) ofPage() bool {
	return slices.Contains([]Kind{Works, Refuses, Lasts, AtTerminal, NotTyped}, k)
}

// Page is what the script says of one page.
type Page struct {
	Path  string // from the repository's root
	Steps []Step
}

// Step is one step of the script.
type Step struct {
	Kind  Kind
	Line  int      // of the script
	Run   string   // what is typed: of a command of several lines the first
	Wants []string // the lines below it
	Needs string   // what must be on the machine for it; empty: nothing
}

// Parse reads the script.
func Parse(script string) (pages []Page, err error) {
	needs := ""
	for i, line := range strings.Split(script, "\n") {
		mark, rest, _ := strings.Cut(line, " ")
		kind := Kind(mark)
		switch {
		case strings.TrimSpace(line) == "", mark == "#":
			continue
		case mark == "==":
			pages, needs = append(pages, Page{Path: rest}), ""
			continue
		case len(pages) == 0:
			return nil, fmt.Errorf("the script, line %d: of which page is it?", i+1)
		}
		p := &pages[len(pages)-1]
		switch {
		case mark == "?":
			needs = rest
		case kind.ofPage() || slices.Contains([]Kind{OfScript, ScriptLasts, Interrupts, Stands}, kind):
			p.Steps = append(p.Steps, Step{Kind: kind, Line: i + 1, Run: rest, Needs: needs})
		case len(p.Steps) == 0:
			return nil, fmt.Errorf("the script, line %d: of which command is it?", i+1)
		default:
			last := &p.Steps[len(p.Steps)-1]
			last.Wants = append(last.Wants, line)
		}
	}
	for _, p := range pages {
		for _, s := range p.Steps {
			if s.Kind == NotTyped && len(s.Wants) == 0 {
				return nil, fmt.Errorf("the script, line %d: why is %q not typed?", s.Line, s.Run)
			}
		}
	}
	return pages, nil
}

// Match returns what is typed in each of the script's steps for a page with this text: the page's commands, whole, and
// what is the script's own. It is an error if they do not agree. (Pure.)
func (p Page) Match(text string) (typed []string, err error) {
	written := Commands(text)
	for _, s := range p.Steps {
		if !s.Kind.ofPage() {
			typed = append(typed, s.Run)
			continue
		}
		if len(written) == 0 {
			return nil, fmt.Errorf("the script, line %d: the page has no command left for %q", s.Line, s.Run)
		}
		if FirstLine(written[0]) != s.Run {
			return nil, fmt.Errorf("the script, line %d: the page goes on with %q, the script with %q", s.Line,
				FirstLine(written[0]), s.Run)
		}
		typed, written = append(typed, written[0]), written[1:]
	}
	if len(written) > 0 {
		return nil, fmt.Errorf("the script does not know %q", FirstLine(written[0]))
	}
	return typed, nil
}

// Prints reports whether what a command has printed is as a line of a script wants it: with that text in it or, after
// "~", as that regular expression says or, after "-", without that text. (Pure.)
func Prints(out, want string) (bool, error) {
	if text, not := strings.CutPrefix(want, "-"); not {
		return !strings.Contains(out, text), nil
	}
	text, is := strings.CutPrefix(want, "~")
	if !is {
		return strings.Contains(out, want), nil
	}
	re, err := regexp.Compile("(?m)" + text)
	if err != nil {
		return false, err
	}
	return re.MatchString(out), nil
}
