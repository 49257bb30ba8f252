// SPDX-License-Identifier: Apache-2.0

package podwhy

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/wherryproject/wherry/internal/why"
)

const (
	bold  = "1"
	red   = "1;31"
	green = "32"
	dim   = "2"
)

// shownLines is how many lines of a log are shown: all is to be on one screen.
const shownLines = 8

// page is how an answer is laid out.
type page struct {
	width  int // 0: lines are as long as they are
	colour bool
	zone   *time.Location

	b strings.Builder
}

// text is an answer as a person reads it.
func (p *page) text(a why.Answer, via string) string {
	if via != "" {
		p.line("", "%s.", via)
	}
	name := a.Name
	if a.Namespace != "" {
		name = a.Namespace + "/" + name
	}
	p.b.WriteString(p.in(bold, a.Kind+" "+name) + ": " + a.State + "\n")
	if !a.Wrong {
		p.b.WriteString(p.in(green, a.Summary) + "\n")
	}
	past := false
	for i := range a.Findings {
		if f := &a.Findings[i]; f.Past && !past {
			past = true
			p.b.WriteString("\nWhat was, and is over, or does not keep it from running:\n")
		}
		p.finding(i+1, &a.Findings[i])
	}
	for _, l := range a.Logs {
		p.log(l)
	}
	if len(a.Changes) > 0 {
		p.changes(a.Changes)
	}
	for i, u := range a.Unseen {
		if i == 0 {
			p.b.WriteString("\nNot looked at:\n")
		}
		switch {
		case u.Right != "":
			p.line("  ", "%s: you have no right to %s", u.What, u.Right)
		default:
			p.line("  ", "%s: %s", u.What, u.Why)
		}
	}
	return p.b.String()
}

// in puts text in a colour.
func (p *page) in(colour, text string) string {
	if !p.colour || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// line writes a line, wrapped if it is longer than the terminal is wide.
func (p *page) line(indent, format string, args ...any) {
	for i, l := range wrap(fmt.Sprintf(format, args...), p.width-utf8.RuneCountInString(indent)-2) {
		if i > 0 {
			l = "  " + l
		}
		p.b.WriteString(indent + l + "\n")
	}
}

func (p *page) finding(number int, f *why.Finding) {
	p.b.WriteByte('\n')
	colour := red
	if f.Past {
		colour = bold
	}
	head := fmt.Sprintf("%d. %s:", number, f.Where)
	for i, l := range wrap(head+" "+f.What, p.width-3) {
		if i == 0 {
			rest, ok := strings.CutPrefix(l, head)
			if ok {
				l = p.in(colour, head) + rest
			}
		} else {
			l = "   " + l
		}
		p.b.WriteString(l + "\n")
	}
	for _, fact := range f.Facts {
		from := "[" + fact.From + "]"
		lines := wrap("- "+fact.Says+" "+strings.ReplaceAll(from, " ", together), p.width-5)
		for i, l := range lines {
			l = strings.ReplaceAll(l, together, " ")
			if i > 0 {
				l = "  " + l
			}
			if rest, ok := strings.CutSuffix(l, from); ok && i == len(lines)-1 {
				l = rest + p.in(dim, from)
			}
			p.b.WriteString("   " + l + "\n")
		}
	}
	for _, try := range f.Try {
		for i, l := range wrap("Try: "+try, p.width-5) {
			if i > 0 {
				l = "     " + l
			} else {
				l = p.in(bold, "Try:") + strings.TrimPrefix(l, "Try:")
			}
			p.b.WriteString("   " + l + "\n")
		}
	}
}

func (p *page) log(l why.Log) {
	lines, run := l.Lines, ""
	if l.Previous {
		run = ", of the run before this one"
	}
	if len(lines) > shownLines {
		lines = lines[len(lines)-shownLines:]
	}
	p.line("\n", "Last lines of the log of %s%s:", l.Container, run)
	for _, text := range lines {
		p.b.WriteString("  " + p.in(dim, "|") + " " + text + "\n")
	}
}

func (p *page) changes(all []why.Change) {
	p.b.WriteString("\nWhat happened:\n")
	for _, c := range all {
		by := ""
		if c.By != "" {
			by = ", by " + c.By
		}
		what := c.What + by
		if c.Sign {
			what = "first sign of trouble: " + what
		}
		p.line("  ", "%s %s [%s]", c.At.In(p.zone).Format("2006-01-02 15:04:05"), what, c.From)
	}
}

// together stands for a space at which no line ends: who looks for where a fact is from finds it.
const together = "\x00"

// wrap cuts a text into lines of a width at spaces. A word that is longer than a line stays whole.
func wrap(text string, width int) []string {
	if width < 20 || utf8.RuneCountInString(text) <= width {
		return []string{text}
	}
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line)
			line = word
			continue
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
