// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Options say how text is drawn.
type Options struct {
	Width   int            // columns; 0: 100
	Colour  bool           // ANSI colours
	ASCII   bool           // for terminals that have nothing else
	Zone    *time.Location // of clock times; nil: UTC
	Moments bool           // list all moments below
}

// ink is how a shade looks: without colour its character alone shows it.
type ink struct {
	rich, plain rune
	colour      string // of a terminal
	fill        string // of a picture
	name        string
}

var inks = map[Shade]ink{
	Quiet:     {'░', ':', "33", "#f2c94c", "runs, not started"},
	Up:        {'▒', '-', "36", "#a6dcf5", "runs, not ready"},
	Serving:   {'█', '#', "32", "#27ae60", "ready"},
	Pause:     {'·', '.', "31", "#f5b7b1", "back-off"},
	Mounting:  {'v', 'v', "35", "#bb6bd9", "volumes"},
	Boxing:    {'b', 'b', "34", "#34495e", "sandbox"},
	Pulling:   {'p', 'p', "34", "#2d6fdb", "pull"},
	Creating:  {'c', 'c', "36", "#d7b98e", "create"},
	Starting:  {'s', 's', "36", "#8d5524", "start"},
	HookStart: {'h', 'h', "35", "#e84393", "postStart"},
	HookStop:  {'H', 'H', "35", "#6c3483", "preStop"},
	Stopping:  {'~', '~', "33", "#f2994a", "stopping"},
	Leaving:   {'t', 't', "2", "#828282", "take-down"},
}

var signs = map[Sign]ink{
	Passed: {'✓', '+', "32", "#219653", "probe passed"},
	Died:   {'!', '!', "1;31", "#c0392b", "non-zero exit code"},
	Done:   {'0', '0', "1;32", "#1e8449", "exit 0"},
	Failed: {'✗', 'x', "1;31", "#c0392b", "failed"},
}

func (i ink) rune(o Options) rune {
	if o.ASCII {
		return i.plain
	}
	return i.rich
}

// cell is one place of a line.
type cell struct {
	r      rune
	colour string
}

// canvas is a line of cells.
type canvas []cell

func newCanvas(n int) canvas {
	c := make(canvas, n)
	for i := range c {
		c[i].r = ' '
	}
	return c
}

func (c canvas) write(at int, text, colour string) {
	for _, r := range text {
		if at >= 0 && at < len(c) {
			c[at] = cell{r, colour}
		}
		at++
	}
}

func (c canvas) render(b *strings.Builder, colour bool) {
	for i := 0; i < len(c); {
		j := i
		for j < len(c) && c[j].colour == c[i].colour {
			j++
		}
		if colour && c[i].colour != "" {
			fmt.Fprintf(b, "\x1b[%sm", c[i].colour)
		}
		for _, x := range c[i:j] {
			b.WriteRune(x.r)
		}
		if colour && c[i].colour != "" {
			b.WriteString("\x1b[0m")
		}
		i = j
	}
}

const (
	widest    = 24 // of names
	stateMax  = 30 // of states
	narrowest = 24 // of the bars
	dim       = "2"
)

// Text draws a history for a terminal.
func Text(h History, o Options) string {
	p := Draw(h)
	if o.Width <= 0 {
		o.Width = 100
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	names, states := 3, 0
	for _, r := range p.Rows {
		names, states = max(names, utf8.RuneCountInString(r.Label)), max(states, utf8.RuneCountInString(r.State))
	}
	names, states = min(names, widest), min(states, stateMax)
	t := &drawing{o: o, left: names + 1, bars: max(o.Width-names-states-3, narrowest)}
	t.states = max(min(states, o.Width-t.left-t.bars-1), 0)
	t.axis = NewAxis(p, float64(t.bars))
	t.line(t.header(h), "1")
	t.b.WriteByte('\n')
	t.scale()
	for i := range p.Rows {
		t.row(&p.Rows[i])
	}
	t.legend(p)
	t.b.WriteByte('\n')
	t.wrap(Summary(h))
	if o.Moments {
		t.b.WriteByte('\n')
		t.b.WriteString(List(h, o))
	}
	return t.b.String()
}

// drawing is a text in the making.
type drawing struct {
	b          strings.Builder
	o          Options
	axis       *Axis
	left, bars int
	states     int // the columns of the states
}

func (t *drawing) header(h History) string {
	text := h.Namespace + "/" + h.Name
	if h.Node != "" {
		text += " on " + h.Node
	}
	text += ", since " + h.Begin().In(t.o.Zone).Format("2006-01-02 15:04:05 MST")
	if h.Gone {
		return text + ", gone"
	}
	return text + ", now " + Took(h.end().Sub(h.Begin()))
}

// line writes text as one line, cut to the width.
func (t *drawing) line(text, colour string) {
	c := newCanvas(min(utf8.RuneCountInString(text), t.o.Width))
	c.write(0, fit(text, t.o.Width), colour)
	c.render(&t.b, t.o.Colour)
	t.b.WriteByte('\n')
}

func fit(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(width-1, 0)]) + "…"
}

// scale writes the labels of the axis and the axis.
func (t *drawing) scale() {
	labels, line := newCanvas(t.left+t.bars+8), newCanvas(t.left+t.bars)
	rule, notch, gap := "─", "┬", "╱"
	if t.o.ASCII {
		rule, notch, gap = "-", "+", "/"
	}
	line.write(t.left, strings.Repeat(rule, t.bars), dim)
	for _, c := range t.axis.Cuts() {
		line.write(t.left+int(c), gap+gap, dim)
	}
	free := 0
	for _, k := range t.axis.Ticks(11) {
		at := t.left + min(int(k.At+0.5), t.bars-1)
		line.write(at, notch, dim)
		if at >= free {
			labels.write(at, k.Label, dim)
			free = at + utf8.RuneCountInString(k.Label) + 1
		}
	}
	for _, c := range []canvas{labels, line} {
		c = trim(c)
		c.render(&t.b, t.o.Colour)
		t.b.WriteByte('\n')
	}
}

func trim(c canvas) canvas {
	for len(c) > 0 && c[len(c)-1].r == ' ' {
		c = c[:len(c)-1]
	}
	return c
}

// row writes a row's bars and, below, its notes.
func (t *drawing) row(r *Row) {
	c := newCanvas(t.left + t.bars + 1 + t.states)
	c.write(0, fit(r.Label, t.left-1), "1")
	for _, b := range painted(r.Bars) {
		i := inks[b.Shade]
		from, to := int(t.axis.At(b.From)+0.5), int(t.axis.At(b.To)+0.5)
		from = min(from, t.bars-1)
		for x := from; x < max(to, from+1); x++ {
			c.write(t.left+x, string(i.rune(t.o)), i.colour)
		}
	}
	for _, m := range signed(r.Marks) {
		i := signs[m.Sign]
		c.write(t.left+min(int(t.axis.At(m.At)+0.5), t.bars-1), string(i.rune(t.o)), i.colour)
	}
	c.write(t.left+t.bars+1, fit(r.State, t.states), "")
	trim(c).render(&t.b, t.o.Colour)
	t.b.WriteByte('\n')
	t.notes(r.Notes)
}

// notes writes a row's notes on two lines at most.
func (t *drawing) notes(notes []string) {
	indent := strings.Repeat(" ", t.left)
	lines := []string{}
	for _, n := range notes {
		last := len(lines) - 1
		switch {
		case last < 0:
			lines = append(lines, indent+n)
		case last == 0 && utf8.RuneCountInString(lines[0]+t.dot()+n) > t.o.Width:
			lines = append(lines, indent+n)
		default:
			lines[last] += t.dot() + n
		}
	}
	for _, l := range lines {
		t.line(l, dim)
	}
}

func (t *drawing) dot() string {
	if t.o.ASCII {
		return ", "
	}
	return " · "
}

// painted orders bars so that the shorter one comes on top, and what is done on what merely is.
func painted(bars []Bar) []Bar {
	layer := func(b Bar) int {
		switch b.Shade {
		case Quiet, Up, Serving, Pause:
			return 0
		}
		return 1
	}
	out := slices.Clone(bars)
	slices.SortStableFunc(out, func(a, b Bar) int {
		if d := layer(a) - layer(b); d != 0 {
			return d
		}
		return int(min(max(b.To.Sub(b.From)-a.To.Sub(a.From), -1), 1))
	})
	return out
}

func signed(marks []Mark) []Mark {
	out := slices.Clone(marks)
	slices.SortStableFunc(out, func(a, b Mark) int { return int(a.Sign) - int(b.Sign) })
	return out
}

// legend names what was drawn, and nothing else.
func (t *drawing) legend(p Picture) {
	var words []string
	for _, e := range legendOf(p) {
		words = append(words, string(e.rune(t.o))+" "+e.name)
	}
	if len(words) == 0 {
		return
	}
	t.b.WriteByte('\n')
	line := ""
	for _, w := range words {
		if line != "" && utf8.RuneCountInString(line)+2+utf8.RuneCountInString(w) > t.o.Width {
			t.line(line, dim)
			line = ""
		}
		if line != "" {
			line += "  "
		}
		line += w
	}
	t.line(line, dim)
}

// wrap writes a paragraph.
func (t *drawing) wrap(text string) {
	for _, line := range paragraph(text, t.o.Width) {
		t.b.WriteString(line + "\n")
	}
}

// paragraph breaks a text into lines.
func paragraph(text string, width int) (lines []string) {
	line := ""
	for _, w := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(w) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += w
	}
	return append(lines, line)
}

// List writes all moments, one a line.
func List(h History, o Options) string {
	var b strings.Builder
	for _, m := range h.sorted() {
		b.WriteString(Line(h, m, o) + "\n")
	}
	return b.String()
}

// News writes the moments of a part that has just come, as List does; h is the whole with it.
func News(h, part History, o Options) string {
	var b strings.Builder
	for _, m := range part.sorted() {
		b.WriteString(Line(h, m, o) + "\n")
	}
	return b.String()
}

// Line writes one moment with the time since the pod's beginning and that of the clock.
func Line(h History, m Moment, o Options) string {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	return fmt.Sprintf("%9.3fs  %s  %-*s  %s", m.At.Sub(h.Begin()).Seconds(), m.At.In(o.Zone).Format("15:04:05.000"),
		subjects(h), Subject(m), Describe(m))
}

func subjects(h History) int {
	n := 3
	for _, c := range h.Containers {
		n = max(n, len(c.Name)+2)
	}
	return min(n, widest)
}
