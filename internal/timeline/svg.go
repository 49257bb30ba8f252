// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/wherryproject/wherry/internal/oneline"
)

// Measures of the picture, in its own units.
const (
	svgWidth = 1060
	svgLeft  = 170 // where bars begin
	svgRight = 240 // kept for the states
	svgTop   = 64  // where rows begin
	svgRow   = 44
	svgBar   = 16
	svgText  = 18  // from line to line
	svgLine  = 150 // characters that a line holds
	svgLabel = 23  // characters that stand before the bars
	svgName  = 32  // characters that are left of a name where names are too long for a line
)

// SVG draws a history as a picture that stands alone. Bars and marks show what they are when pointed at.
func SVG(h History, zone *time.Location) string {
	p := Draw(h)
	s := &sheet{axis: NewAxis(p, svgWidth-svgLeft-svgRight), begin: h.Begin()}
	legend := legendOf(p)
	summary := paragraph(Summary(h), svgLine)
	height := svgTop + svgRow*len(p.Rows) + 24*((len(legend)+5)/6) + 20 + svgText*len(summary)
	s.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12">`,
		svgWidth, height, svgWidth, height)
	s.add(`<title>%s</title>`, html.EscapeString("Timeline of pod "+h.Namespace+"/"+h.Name))
	s.add(`<rect width="100%%" height="100%%" fill="#ffffff"/>`)
	d := drawing{o: Options{Zone: zone}}
	if zone == nil {
		d.o.Zone = time.UTC
	}
	s.text(12, 22, "#333333", "bold", d.heading(h))
	s.scale(len(p.Rows))
	for i := range p.Rows {
		s.row(&p.Rows[i], svgTop+svgRow*i)
	}
	s.legend(legend, svgTop+svgRow*len(p.Rows)+8)
	for i, line := range summary {
		s.text(12, height-14-svgText*(len(summary)-1-i), "#333333", "normal", line)
	}
	s.add(`</svg>`)
	return s.b.String()
}

// heading is the header in one line of the picture: names are cut where it would be longer. The title has the pod's
// whole.
func (t *drawing) heading(h History) string {
	text := t.header(h)
	if utf8.RuneCountInString(text) <= svgLine {
		return text
	}
	for _, name := range []*string{&h.Namespace, &h.Name, &h.Node} {
		*name = fit(*name, svgName)
	}
	return t.header(h)
}

// sheet is a picture in the making.
type sheet struct {
	b     strings.Builder
	axis  *Axis
	begin time.Time
}

func (s *sheet) add(format string, args ...any) { fmt.Fprintf(&s.b, format+"\n", args...) }

func (s *sheet) text(x, y int, fill, weight, text string) {
	s.add(`<text x="%d" y="%d" fill="%s" font-weight="%s">%s</text>`, x, y, fill, weight,
		html.EscapeString(oneline.Of(text)))
}

func (s *sheet) scale(rows int) {
	bottom := svgTop + svgRow*rows - 6
	free := 0.0
	for _, k := range s.axis.Ticks(80) {
		x := svgLeft + k.At
		s.add(`<line x1="%.1f" y1="48" x2="%.1f" y2="%d" stroke="#e0e0e0"/>`, x, x, bottom)
		if x < free {
			continue
		}
		free = x + 44
		s.add(`<text x="%.1f" y="44" fill="#828282" text-anchor="middle">%s</text>`, x, html.EscapeString(k.Label))
	}
	for _, x := range s.axis.Cuts() {
		s.add(`<line x1="%.1f" y1="48" x2="%.1f" y2="%d" stroke="#bdbdbd" stroke-dasharray="3 4"><title>a quiet stretch, cut short</title></line>`,
			svgLeft+x, svgLeft+x, bottom)
	}
}

func (s *sheet) row(r *Row, y int) {
	s.text(12, y+13, "#333333", "bold", fit(r.Label, svgLabel))
	for _, b := range painted(r.Bars) {
		i := inks[b.Shade]
		from, to := s.axis.At(b.From), s.axis.At(b.To)
		title := fmt.Sprintf("%s %s, from %s", i.name, Took(b.To.Sub(b.From)), Took(b.From.Sub(s.begin)))
		if b.Attempt > 0 {
			title += fmt.Sprintf(", attempt %d", b.Attempt)
		}
		if b.Failed {
			title += ", failed: " + oneline.Of(plainFailure(b.Text))
		}
		s.add(`<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"><title>%s</title></rect>`,
			svgLeft+from, y, max(to-from, 1.5), svgBar, i.fill, html.EscapeString(title))
	}
	for _, m := range signed(r.Marks) {
		i := signs[m.Sign]
		s.add(`<text x="%.1f" y="%d" fill="%s" font-weight="bold" text-anchor="middle" stroke="#ffffff" stroke-width="3" paint-order="stroke">%c<title>%s</title></text>`,
			svgLeft+s.axis.At(m.At), y+13, i.fill, i.rich, html.EscapeString(oneline.Of(m.Text)))
	}
	s.text(svgWidth-svgRight+8, y+13, "#333333", "normal", fit(r.State, stateMax))
	if len(r.Notes) > 0 {
		s.add(`<text x="%d" y="%d" fill="#828282" font-size="10">%s</text>`, svgLeft, y+svgBar+13,
			html.EscapeString(fit(strings.Join(r.Notes, " · "), 150)))
	}
}

// entry is one of the legend's.
type entry struct {
	ink
	sign bool
}

func legendOf(p Picture) (out []entry) {
	for s := Quiet; s <= Leaving; s++ {
		if slices.ContainsFunc(p.Rows,
			func(r Row) bool { return slices.ContainsFunc(r.Bars, func(b Bar) bool { return b.Shade == s }) }) {
			out = append(out, entry{inks[s], false})
		}
	}
	for s := Passed; s <= Failed; s++ {
		if slices.ContainsFunc(p.Rows,
			func(r Row) bool { return slices.ContainsFunc(r.Marks, func(m Mark) bool { return m.Sign == s }) }) {
			out = append(out, entry{signs[s], true})
		}
	}
	return out
}

func (s *sheet) legend(list []entry, y int) {
	for n, e := range list {
		x, y := 12+160*(n%6), y+24*(n/6)
		if e.sign {
			s.add(`<text x="%d" y="%d" fill="%s" font-weight="bold">%c</text>`, x+2, y+11, e.fill, e.rich)
		} else {
			s.add(`<rect x="%d" y="%d" width="14" height="12" fill="%s"/>`, x, y, e.fill)
		}
		s.text(x+20, y+10, "#4f4f4f", "normal", e.name)
	}
}

// HTML is a page with the picture and a table of all moments. It refers to nothing outside of itself.
func HTML(h History, zone *time.Location) string {
	if zone == nil {
		zone = time.UTC
	}
	var b strings.Builder
	title := html.EscapeString("Timeline of pod " + h.Namespace + "/" + h.Name)
	fmt.Fprintf(&b, `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>%s</title>
<style>body{font-family:sans-serif;margin:1.5em}table{border-collapse:collapse;font-size:13px}td,th{padding:2px 12px 2px 0;text-align:left;vertical-align:top}tr.bad{color:#c0392b}svg{max-width:100%%;height:auto}</style>
</head><body>
%s<table><tr><th>after</th><th>at</th><th>what</th><th></th></tr>
`, title, SVG(h, zone))
	for _, m := range h.sorted() {
		class := ""
		if m.Failed || m.What == Exited && m.Code != 0 {
			class = ` class="bad"`
		}
		fmt.Fprintf(&b, "<tr%s><td>%.3fs</td><td>%s</td><td>%s</td><td>%s</td></tr>\n", class,
			m.At.Sub(h.Begin()).Seconds(), m.At.In(zone).Format("15:04:05.000"), html.EscapeString(Subject(m)),
			html.EscapeString(Describe(m)))
	}
	b.WriteString("</table></body></html>\n")
	return b.String()
}
