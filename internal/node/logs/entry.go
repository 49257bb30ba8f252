// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"time"
)

// Stream is the output an entry came from.
type Stream int

// The streams of a container.
const (
	Stdout Stream = iota
	Stderr
	streams // how many there are
)

// Entry is one line of a log file: a line of the container's output or, if not Full, a piece of one.
type Entry struct {
	Time   time.Time
	Stream Stream
	Full   bool   // the line ends with this entry
	Text   []byte // without the line's end; in the runtime's own format a part of the slice parsed
}

// Parse reads a line of a log file, with or without its newline. Of the tags, which colons separate, the first says
// whether the entry is full (F) or partial (P); others are for the future and ignored. An entry of Docker's own log is
// one as well.
func Parse(line []byte) (e Entry, ok bool) {
	line = bytes.TrimSuffix(line, []byte{'\n'})
	if bytes.HasPrefix(line, []byte{'{'}) {
		return parseDocker(line)
	}
	stamp, rest, ok := bytes.Cut(line, []byte{' '})
	if !ok {
		return e, false
	}
	if e.Time, ok = stampTime(stamp); !ok {
		return e, false
	}
	stream, rest, ok := bytes.Cut(rest, []byte{' '})
	if !ok {
		return e, false
	}
	if e.Stream, ok = streamNamed(stream); !ok {
		return e, false
	}
	tags, text, _ := bytes.Cut(rest, []byte{' '}) // no blank after the tags: an empty line
	first, _, _ := bytes.Cut(tags, []byte{':'})
	switch string(first) {
	case "F":
		e.Full = true
	case "P":
	default:
		return e, false
	}
	e.Text = text
	return e, true
}

// heads parses lines that come one after the other. Those that were written at once have one time and mostly one
// stream: what is before their text is read once.
type heads struct {
	head []byte // of the last line; nil: it had none of its own
	of   Entry
}

// parse is [Parse].
func (h *heads) parse(line []byte) (e Entry, ok bool) {
	if len(h.head) > 0 && bytes.HasPrefix(line, h.head) {
		e = h.of
		e.Text = bytes.TrimSuffix(line[len(h.head):], []byte{'\n'})
		return e, true
	}
	if e, ok = Parse(line); !ok {
		return e, false
	}
	h.head = h.head[:0]
	line = bytes.TrimSuffix(line, []byte{'\n'})
	if head := line[:len(line)-min(len(e.Text), len(line))]; bytes.HasSuffix(head, []byte{' '}) && head[0] != '{' {
		h.head, h.of = append(h.head, head...), e
		h.of.Text = nil
	}
	return e, true
}

// stampTime reads a time as RFC 3339 writes it. time.Parse also takes an hour of one digit, a comma for the point, and
// zones of a day and more, some of which it writes so that it cannot read them again.
func stampTime(stamp []byte) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, string(stamp))
	if err != nil || len(stamp) < len("2006-01-02T15:04:05Z") || stamp[13] != ':' || stamp[19] == ',' {
		return t, false
	}
	const day = 24 * 60 * 60
	_, offset := t.Zone()
	return t, -day < offset && offset < day
}
