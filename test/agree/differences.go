// SPDX-License-Identifier: Apache-2.0

package agree

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// difference is one that is known: what it is, why it is, and a request that shows it. In differences.txt it is two
// lines or three:
//
//	Pod PodTemplate | ours refuses | spec\.hostUsers | why
//		Pod 0: create: spec.hostUsers=false ;; -spec.os
//		stored: spec.hostUsers=true
//
// The field is a regular expression for the whole of it, with [*] for all indexes and keys. The second line changes the
// object with that number of testdata; the third, if there is one, changes what is stored before an update. Above the
// rows, # begins a comment.
type difference struct {
	kinds   []string
	what    string // as in finding
	field   *regexp.Regexp
	why     string
	shownBy string // a kind
	shown   attempt
}

// String names the row.
func (d difference) String() string {
	return fmt.Sprintf("%s | %s | %s", strings.Join(d.kinds, " "), d.what, d.field)
}

func (d difference) explains(f finding) bool {
	at := f.field
	if f.kind == "PodTemplate" {
		at = strings.TrimPrefix(at, "template.") // the rows of the Pod are good for it
	}
	return slices.Contains(d.kinds, f.kind) && d.what == f.what && d.field.MatchString(at)
}

func parseDifferences(text string) (all []difference, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case !strings.HasPrefix(line, "\t"):
			var d difference
			if d, err = parseHead(line); err == nil {
				all = append(all, d)
			}
		case len(all) == 0:
			err = fmt.Errorf("%q belongs to no row", line)
		default:
			err = all[len(all)-1].parseShown(strings.TrimSpace(line))
		}
		if err != nil {
			return nil, fmt.Errorf("differences.txt: %w", err)
		}
	}
	return all, nil
}

// unjudged stands in a new row in the place of the reason.
const unjudged = "not judged yet"

func parseHead(line string) (d difference, err error) {
	parts := strings.Split(line, " | ")
	if len(parts) != 4 || parts[3] == "" {
		return d, fmt.Errorf("%q: a row begins with KINDS | WHAT | FIELD | WHY", line)
	}
	if parts[3] == unjudged {
		return d, fmt.Errorf("%q: mend what is different, or say why it is", line)
	}
	d = difference{kinds: strings.Fields(parts[0]), what: parts[1], why: parts[3]}
	d.field, err = regexp.Compile("^(" + parts[2] + ")$")
	return d, err
}

func (d *difference) parseShown(line string) error {
	parts := strings.SplitN(line, ": ", 3)
	if parts[0] == "stored" {
		changes, err := parseChanges(strings.TrimPrefix(line, "stored: "))
		d.shown.old = changes
		return err
	}
	if len(parts) < 2 {
		return fmt.Errorf("%q: a row is shown by KIND NUMBER: OPERATION: CHANGES", line)
	}
	kind, index, _ := strings.Cut(parts[0], " ")
	n, err := strconv.Atoi(index)
	if err != nil {
		return fmt.Errorf("%q: %w", line, err)
	}
	d.shownBy, d.shown.good, d.shown.operation = kind, n, strings.TrimSuffix(parts[1], ":")
	if len(parts) == 3 {
		d.shown.changes, err = parseChanges(parts[2])
	}
	return err
}

func parseChanges(text string) (all []change, err error) {
	for part := range strings.SplitSeq(text, " ;; ") {
		c, err := parseChange(part)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// newRow is what differences.txt would have for a finding.
func (s *subject) newRow(a attempt, f finding) string {
	field := regexp.QuoteMeta(f.field)
	if f.kind == "PodTemplate" {
		field = strings.TrimPrefix(field, `template\.`)
	}
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		field = strings.Replace(field, `spec\.`+list+`\[\*\]`, `spec\.\w*ontainers\[\*\]`, 1)
	}
	head := fmt.Sprintf("%s | %s | %s | %s\n\t%s %d: %s: %s", f.kind, f.what, field, unjudged, f.kind, a.good,
		a.operation, changesString(a.changes))
	if len(a.old) > 0 {
		head += "\n\tstored: " + changesString(a.old)
	}
	return head
}

func changesString(all []change) string {
	var texts []string
	for _, c := range all {
		texts = append(texts, c.String())
	}
	return strings.Join(texts, " ;; ")
}
