// SPDX-License-Identifier: Apache-2.0

package streams

import "io"

const (
	// littleAtOnce is how much is read of a stream at first, and of one that says little always: a keystroke, a line.
	littleAtOnce = 16 << 10
	// muchAtOnce is how much is read of one that has so much to say: a copy is gigabytes, and each read costs a call of
	// the kernel, and wakes who has the bytes next.
	muchAtOnce = 256 << 10
	// littleInARow is how many reads may give little before the room for much is let go: a stream that says much has
	// some of them too, at the end of each message.
	littleInARow = 8
)

// room is what a stream is read into. It grows with what the stream says at once, and is small again when the stream
// says little: there may be hundreds that said much once, and wait.
type room struct {
	buf    []byte
	little int // reads in a row that gave little
}

// read reads into the room. What it returns is there until the next read.
func (r *room) read(from io.Reader) ([]byte, error) {
	if r.buf == nil {
		r.buf = make([]byte, littleAtOnce)
	}
	n, err := from.Read(r.buf)
	text := r.buf[:n]
	switch {
	case n == len(r.buf) && n < muchAtOnce:
		r.buf = make([]byte, min(4*n, muchAtOnce))
	case n == 0: // an end says nothing
		return text, err
	case n < littleAtOnce && len(r.buf) > littleAtOnce:
		if r.little++; r.little >= littleInARow {
			r.buf = nil
		}
		return text, err
	}
	r.little = 0
	return text, err
}

// pass hands on what a reader says, as it comes, until its end or an error of one of both.
func (r *room) pass(to io.Writer, from io.Reader) error {
	for {
		text, err := r.read(from)
		if len(text) > 0 {
			if _, werr := to.Write(text); werr != nil {
				return werr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Pass hands on what a reader says, as it comes, until its end or an error of one of both: in small pieces where little
// is said, and in large ones where much is.
func Pass(to io.Writer, from io.Reader) error { return new(room).pass(to, from) }
