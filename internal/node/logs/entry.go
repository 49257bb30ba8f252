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
	if e.Time.UnmarshalText(stamp) != nil { // stricter than time.Parse, which takes an hour of one digit
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
