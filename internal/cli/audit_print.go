// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/wherryproject/wherry/internal/audit/trail"
)

// auditPrinter shows events: as they are, or as lines for a person.
type auditPrinter struct {
	f         *auditCommand
	out       io.Writer
	note      io.Writer
	merge     trail.Merge
	following bool // each event is a line of its own as it comes
	headed    bool
}

func (f *auditCommand) printer(t Terminal) *auditPrinter {
	return &auditPrinter{f: f, out: t.Out, note: t.Err}
}

func (p *auditPrinter) event(e trail.Event) error {
	switch p.f.output {
	case "json":
		_, err := fmt.Fprintf(p.out, "%s\n", e.Line)
		return err
	case "yaml":
		text, err := yaml.JSONToYAML(e.Line)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.out, "---\n%s", text)
		return err
	}
	entry := trail.Say(&e.Event)
	if p.following {
		return p.line(entry)
	}
	p.merge.Add(entry)
	return nil
}

// live ends the part of a followed log that was there before.
func (p *auditPrinter) live() {
	if p.f.output == "" || p.f.output == "wide" {
		_ = p.lines() // a terminal that is gone shows itself at the next event
	}
	p.following = true
}

func (p *auditPrinter) end() error {
	if p.f.output == "json" || p.f.output == "yaml" {
		return nil
	}
	if err := p.lines(); err != nil || p.headed {
		return err
	}
	_, err := fmt.Fprintln(p.note, "No matching requests found.")
	return err
}

func (p *auditPrinter) lines() error {
	for _, e := range p.merge.Last(p.f.tail) {
		if err := p.line(e); err != nil {
			return err
		}
	}
	return nil
}

func (p *auditPrinter) line(e trail.Entry) error {
	zone := time.Local
	if p.f.utc {
		zone = time.UTC
	}
	if !p.headed {
		p.headed = true
		if err := p.row([]string{"TIME", "USER", "NAMESPACE", "RESULT", "WHAT"},
			[]string{"FROM", "AGENT", "AUDIT-ID", "MESSAGE"}); err != nil {
			return err
		}
	}
	return p.row(e.Columns(zone), e.Wide())
}

// row writes a line at once: columns have fixed widths, which the last may exceed.
func (p *auditPrinter) row(columns, wide []string) error {
	text := trail.Pad(columns, 19, 20, 12, 14)
	if p.f.output == "wide" {
		last := len(columns) - 1
		text = trail.Pad(append(slices.Clone(columns[:last]), append(wide[:3:3], columns[last], wide[3])...), 19, 20,
			12, 14, 15, 16, 36, 0)
	}
	_, err := fmt.Fprintln(p.out, text)
	return err
}
