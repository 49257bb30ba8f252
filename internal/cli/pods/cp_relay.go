// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// relay hands on what the other side of a copy says, in words that name the container. What the node says of everything
// else in the pod is held back: it matters only if the copy fails.
type relay struct {
	to    io.Writer
	other other
	meter *meter // gets the total; may be nil
	part  []byte // of a line
	held  []string
}

func newRelay(to io.Writer, o other, m *meter) *relay {
	return &relay{to: to, other: o, meter: m}
}

// Write implements io.Writer.
func (r *relay) Write(p []byte) (int, error) {
	r.part = append(r.part, p...)
	for {
		line, rest, whole := bytes.Cut(r.part, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		r.part = rest
		r.line(string(line))
	}
}

func (r *relay) line(text string) {
	if n, ok := strings.CutPrefix(text, "total "); ok && r.meter != nil {
		if total, err := strconv.ParseInt(n, 10, 64); err == nil {
			r.meter.total.Store(total)
			return
		}
	}
	if note, ok := strings.CutPrefix(text, "wherry: "); ok {
		if strings.Contains(note, "container "+r.other.container+" ") ||
			strings.Contains(note, "container "+r.other.container+":") || strings.Contains(note, "cannot run") {
			r.held = append(r.held, note)
		}
		return
	}
	text = strings.TrimPrefix(strings.TrimPrefix(text, "cp-pack: "), "cp-unpack: ")
	fmt.Fprintf(r.to, "%s: %s\n", r.other.words, text)
}

// end says what was held back if the copy has failed, and returns how it ended.
func (r *relay) end(err error) error {
	if len(r.part) > 0 {
		r.line(string(r.part))
		r.part = nil
	}
	if err != nil {
		for _, note := range r.held {
			fmt.Fprintln(r.to, note)
		}
	}
	return err
}
