// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"errors"
	"io"
	"time"
)

// stampFormat is that of kubectl logs --timestamps: nanoseconds of a fixed width.
const stampFormat = "2006-01-02T15:04:05.000000000Z07:00"

// errEnough says that limitBytes is reached.
var errEnough = errors.New("limit of bytes reached")

// output puts lines together from entries, chooses and writes them. Lines of the two streams are not mixed within a
// line.
type output struct {
	to     [streams]io.Writer // nil: the stream is not wanted
	since  time.Time
	stamps bool
	limit  int64 // bytes still allowed; negative: any number
	skip   int64 // lines to leave out first

	lines [streams]unfinished
	buf   []byte // to be written to to[of]
	of    Stream
}

// unfinished is a line of which pieces have come.
type unfinished struct {
	begun   bool
	begin   time.Time
	text    []byte
	spilled bool // the beginning was written already, as it was too long to keep
}

func (o *output) wanted(s Stream) bool { return o.to[s] != nil }

// add takes an entry.
func (o *output) add(e Entry) error {
	if !o.wanted(e.Stream) {
		return nil
	}
	l := &o.lines[e.Stream]
	if !l.begun {
		l.begun, l.begin = true, e.Time
	}
	old := l.begin.Before(o.since)
	if e.Full {
		var err error
		if o.skip > 0 {
			o.skip--
		} else if !old {
			err = o.line(l, e.Stream, e.Text, "\n")
		}
		*l = unfinished{text: l.text[:0]}
		return err
	}
	if old {
		return nil
	}
	const most = 1 << 20 // while lines are left out it is not known yet whether this one will be
	if o.skip > 0 || len(l.text)+len(e.Text) <= most {
		l.text = append(l.text, e.Text...)
		return nil
	}
	err := o.line(l, e.Stream, e.Text, "")
	l.text, l.spilled = l.text[:0], true
	return err
}

// line writes what there is of a line, and more of it.
func (o *output) line(l *unfinished, s Stream, more []byte, end string) error {
	if o.of != s {
		if err := o.flush(); err != nil {
			return err
		}
		o.of = s
	}
	if o.stamps && !l.spilled {
		o.buf = append(l.begin.AppendFormat(o.buf, stampFormat), ' ')
	}
	o.buf = append(o.buf, l.text...)
	o.buf = append(o.buf, more...)
	o.buf = append(o.buf, end...)
	const enough = 256 << 10 // a follower has what there is when there is no more
	if len(o.buf) >= enough || o.limit >= 0 && int64(len(o.buf)) >= o.limit {
		return o.flush()
	}
	return nil
}

// finish writes the lines that have no end, in the order they began.
func (o *output) finish() error {
	order := []Stream{Stdout, Stderr}
	if o.lines[Stderr].begin.Before(o.lines[Stdout].begin) {
		order = []Stream{Stderr, Stdout}
	}
	for _, s := range order {
		l := &o.lines[s]
		if l.begun && len(l.text) > 0 && o.skip == 0 && !l.begin.Before(o.since) {
			if err := o.line(l, s, nil, ""); err != nil {
				return err
			}
		}
		*l = unfinished{}
	}
	return o.flush()
}

// flush writes what was put together. It returns errEnough when no more may be written.
func (o *output) flush() error {
	if o.limit >= 0 && int64(len(o.buf)) >= o.limit {
		o.buf = o.buf[:o.limit]
	}
	n := len(o.buf)
	if n > 0 {
		if _, err := o.to[o.of].Write(o.buf); err != nil {
			return err
		}
		o.buf = o.buf[:0]
	}
	if o.limit >= 0 {
		o.limit -= int64(n)
		if o.limit == 0 {
			return errEnough
		}
	}
	return nil
}
