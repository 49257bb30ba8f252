// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	_ "embed"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

//go:embed testdata/guides.txt
var guidesScript string

// TestGuides types every command of the README and of the guides as it stands there, as a person without rights who has sudo.
// testdata/guides.txt says what must come of each, in the guides' order; a command that is not in it fails the test.
func TestGuides(t *testing.T) {
	t.Parallel()
	desk := newDesk(t)
	for _, page := range parsePages(t, guidesScript) {
		t.Run(page.path, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("../..", page.path))
			if err != nil {
				t.Fatal(err)
			}
			written := commandsOf(string(text))
			desk.sits(t)
			for _, s := range page.steps {
				typed := s.run
				if s.kind.ofPage() {
					if len(written) == 0 {
						t.Fatalf("guides.txt, line %d: the page has no command left for %q", s.line, s.run)
					}
					if typed = written[0]; firstLine(typed) != s.run {
						t.Fatalf("guides.txt, line %d: the page goes on with %q, the script with %q", s.line, firstLine(typed), s.run)
					}
					written = written[1:]
				}
				desk.does(t, s, typed)
			}
			for _, left := range written {
				t.Errorf("the script does not know %q", firstLine(left))
			}
		})
	}
	t.Run("no guide is left out", func(t *testing.T) {
		guides, err := filepath.Glob("../../docs/guides/*.md")
		if err != nil || len(guides) == 0 {
			t.Fatalf("%v, %v", guides, err)
		}
		for _, g := range guides {
			if !strings.Contains(guidesScript, "== docs/guides/"+filepath.Base(g)+"\n") {
				t.Errorf("%s is not in testdata/guides.txt", g)
			}
		}
	})
}

// kind says what a step of the script is.
type kind string

const (
	ofScript    kind = "+"  // of the script, run as root, to set a scene
	works       kind = ">"  // typed, and exits with 0
	refuses     kind = "!>" // typed, and fails
	lasts       kind = "&"  // typed, and goes on until Ctrl-C
	scriptLasts kind = "+&" // of the script, and goes on until Ctrl-C
	interrupts  kind = "^C" // Ctrl-C for the one that goes on
	atTerminal  kind = "@"  // typed at a terminal, with answers
	stands      kind = "%"  // what a word of the page stands for until the page's end
	notTyped    kind = "="  // in the page, but not for this test; the line after it says why
)

// ofPage says that it is one of the page's commands.
func (k kind) ofPage() bool {
	return slices.Contains([]kind{works, refuses, lasts, atTerminal, notTyped}, k)
}

// page is what the script says of one page.
type page struct {
	path  string
	steps []guideStep
}

type guideStep struct {
	step
	kind  kind
	needs string // what must be on this machine for it, as [desk.has] knows it; empty: nothing
}

// parsePages reads the script: "== PAGE", then steps, as the script's own first lines tell.
func parsePages(t *testing.T, script string) (pages []page) {
	t.Helper()
	needs := ""
	for i, line := range strings.Split(script, "\n") {
		mark, rest, _ := strings.Cut(line, " ")
		switch {
		case strings.TrimSpace(line) == "", mark == "#":
		case mark == "==":
			pages, needs = append(pages, page{path: rest}), ""
		case mark == "?":
			needs = rest
		case kind(mark).ofPage(), slices.Contains([]kind{ofScript, scriptLasts, interrupts, stands}, kind(mark)):
			p := &pages[len(pages)-1]
			p.steps = append(p.steps, guideStep{step{line: i + 1, run: rest, fails: kind(mark) == refuses}, kind(mark), needs})
		default:
			p := &pages[len(pages)-1]
			last := &p.steps[len(p.steps)-1]
			last.wants = append(last.wants, line)
		}
	}
	for _, p := range pages {
		for _, s := range p.steps {
			if s.kind == notTyped && len(s.wants) == 0 {
				t.Fatalf("guides.txt, line %d: why is %q not typed?", s.line, s.run)
			}
		}
	}
	return pages
}

// typists are the words with which lines of the pages begin that are for typing; what else stands in a block is output, or a file.
func typists() []string {
	return []string{
		"wherry", "bin/wherry", "sudo", "kubectl", "docker", "podman", "helm", "openssl", "make", "tar", "for", "export", "cd", "nft", "curl", "cat", "cp", "mkdir",
		"sha256sum", "echo", "systemctl", "ssh", "scp", "apt", "go", "sh", "git", "ctr",
	}
}

// commandsOf are the commands in the blocks of code of a page, whole, without the remarks behind them.
func commandsOf(text string) (all []string) {
	fenced, until := "", "" // the kind of block; what ends a command of several lines
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if mark, ok := strings.CutPrefix(line, "```"); ok {
			if fenced = mark; mark == "" {
				fenced = ""
			}
			continue
		}
		code, indented := strings.CutPrefix(line, "    ")
		if fenced == "sh" {
			code, indented = line, true
		}
		if !indented {
			until = ""
			continue
		}
		code = strings.TrimPrefix(code, "  ") // of a block in a list
		if until != "" {
			last := &all[len(all)-1]
			*last += "\n" + strings.TrimRight(strings.TrimPrefix(line, "    "), " ")
			if until == `\` && !strings.HasSuffix(code, `\`) || code == until {
				until = ""
			}
			continue
		}
		code = strings.TrimPrefix(code, "$ ")
		if word, _, _ := strings.Cut(code, " "); !slices.Contains(typists(), word) {
			continue
		}
		all = append(all, withoutRemark(code))
		if _, end, here := strings.Cut(code, "<<"); here {
			until = strings.Trim(strings.TrimSpace(end), "'")
		} else if strings.HasSuffix(code, `\`) {
			until = `\`
		}
	}
	return all
}

func withoutRemark(code string) string {
	if i := strings.Index(code, " # "); i >= 0 {
		code = code[:i]
	}
	return strings.TrimSpace(code)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
