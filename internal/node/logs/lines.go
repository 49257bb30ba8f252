// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"errors"
	"io"
)

// maxLine bounds a line of a log file. containerd cuts at 16 KiB by default; what is longer than this is no
// log.
const maxLine = 16 << 20

// lineReader splits what it reads into lines and can go on after an end of file, when more was written.
type lineReader struct {
	from    io.Reader
	buf     []byte
	start   int   // of what was not yet handed out
	scanned int   // up to where no newline was found
	offset  int64 // bytes read from from
	discard bool  // in a line that is too long
}

// next returns the next whole line without its newline, valid until the following call. At the end of the file it
// returns io.EOF, and keeps the beginning of a line for later.
func (l *lineReader) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.scanned:], '\n'); i >= 0 {
			line := l.buf[l.start : l.scanned+i]
			l.start = l.scanned + i + 1
			l.scanned = l.start
			if l.discard || len(line) > maxLine {
				l.discard = false
				continue
			}
			return line, nil
		}
		l.scanned = len(l.buf)
		if l.scanned-l.start > maxLine {
			l.discard, l.start = true, l.scanned
		}
		if err := l.fill(); err != nil {
			return nil, err
		}
	}
}

func (l *lineReader) fill() error {
	const block = 64 << 10
	if l.start > 0 { // make room
		n := copy(l.buf, l.buf[l.start:])
		l.buf, l.scanned, l.start = l.buf[:n], l.scanned-l.start, 0
	}
	if cap(l.buf)-len(l.buf) < block {
		l.buf = append(make([]byte, 0, 2*len(l.buf)+block), l.buf...)
	}
	n, err := l.from.Read(l.buf[len(l.buf):cap(l.buf)])
	l.buf = l.buf[:len(l.buf)+n]
	l.offset += int64(n)
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// consumed is the offset of the end of the last line that next returned.
func (l *lineReader) consumed() int64 { return l.offset - int64(len(l.buf)-l.start) }

// rest returns the beginning of a line that has no end, and forgets it.
func (l *lineReader) rest() []byte {
	out := l.buf[l.start:]
	if l.discard {
		out = nil
	}
	l.buf, l.start, l.scanned, l.discard = nil, 0, 0, false
	return out
}

// tail finds where to begin reading for the last n lines of output: the offset of an entry, and how many lines that end
// after it are to be left out. Lines are counted in the order of their ends; pieces are not lines of their own. It
// reads backwards from size and no more than it needs.
func tail(f io.ReaderAt, size, n int64, wanted func(Stream) bool) (start, skip int64, err error) {
	var (
		found int64         // lines seen
		open  [streams]bool // a line of the stream is being put together from its end
		seen  [streams]bool
		quiet int64 // bytes since a piece of an open line
	)
	start = size
	if n == 0 { // not into the middle of an entry that is being written
		line, at, err := (&backwards{f: f, at: size}).torn()
		if err == nil && len(line) > 0 {
			start = at
		}
		return start, 0, err
	}
	back := backwards{f: f, at: size}
	for {
		// With the lines found, what is missing are first pieces of lines that are open. They follow each other
		// closely.
		const patience = 256 << 10
		if found >= n && (!open[Stdout] && !open[Stderr] || quiet > patience) {
			return start, found - n, nil
		}
		line, at, err := back.next()
		if errors.Is(err, io.EOF) {
			return 0, max(found-n, 0), nil
		}
		if err != nil {
			return 0, 0, err
		}
		quiet += int64(len(line))
		e, ok := Parse(line)
		if !ok || !wanted(e.Stream) {
			start = at
			continue
		}
		ends := e.Full || !open[e.Stream] && found < n && !seen[e.Stream]
		seen[e.Stream] = true
		if ends {
			if found >= n {
				open[e.Stream] = false // this line is older: the one that was open is whole
				if !open[Stdout] && !open[Stderr] {
					return start, found - n, nil
				}
			} else {
				open[e.Stream] = true
			}
			found++
		}
		if open[e.Stream] {
			quiet = 0
		}
		start = at
	}
}

// backwards hands out the lines of a file from its end.
type backwards struct {
	f       io.ReaderAt
	at      int64  // offset of buf
	buf     []byte // read, not yet handed out
	newline bool   // the line returned last had one at its end
}

// torn returns the beginning of a line at the file's end that has no newline yet, and its offset.
func (b *backwards) torn() ([]byte, int64, error) {
	line, at, err := b.next()
	if errors.Is(err, io.EOF) {
		return nil, 0, nil
	}
	if err != nil || b.newline {
		return nil, 0, err
	}
	return line, at, nil
}

// next returns the line before the last one, without its newline, and its offset. The first may have none.
func (b *backwards) next() ([]byte, int64, error) {
	const block = 64 << 10
	end := bytes.TrimSuffix(b.buf, []byte{'\n'})
	for from := len(end); ; {
		if i := bytes.LastIndexByte(end[:from], '\n'); i >= 0 {
			line, at := end[i+1:], b.at+int64(i)+1
			b.newline = len(end) < len(b.buf)
			b.buf = b.buf[:i+1]
			return line, at, nil
		}
		if b.at == 0 {
			if len(b.buf) == 0 {
				return nil, 0, io.EOF
			}
			b.newline = len(end) < len(b.buf)
			b.buf = nil
			return end, 0, nil
		}
		n := min(b.at, max(block, int64(len(b.buf)))) // doubling: long lines are not copied over and over
		grown := make([]byte, n, n+int64(len(b.buf)))
		if _, err := b.f.ReadAt(grown, b.at-n); err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		b.buf = append(grown, b.buf...)
		b.at -= n
		from = int(n)
		end = bytes.TrimSuffix(b.buf, []byte{'\n'})
		from = min(from, len(end))
	}
}
