// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// longestLine is where containerd and cri-o cut a line in a log file.
	longestLine = 16 << 10
	// logBatch is how much output is written to the log at once.
	logBatch = 4 * chunk
	// logText is the most that is formatted before it is written. The shortest lines become forty times as long, which
	// sixty busy containers should not all have in memory.
	logText = 2 * logBatch
)

// intent is what is about to be done to the log file. It is in the ring's file, so that the next process knows whether
// it was.
type intent struct {
	valid  atomic.Uint64
	ino    uint64
	size   uint64 // of the file, before
	length uint64 // of what is written
	logged [2]uint64
}

// logFile is a container's log, in the CRI's format. Every byte of output is written once: how far it is stands in the
// ring's header, and so does what it is about to write.
type logFile struct {
	ring *ring
	mu   sync.Mutex // held while the file is written or opened anew
	path string
	file *os.File
	// tail is the part of each stream's last line that was not written, as its end has not come; tailAt is its
	// position.
	tail   [2][]byte
	tailAt [2]uint64
	raw    []byte       // output as it came
	text   []byte       // and as it is written
	heads  [2][2][]byte // of the lines in text: by stream, of whole lines and of parts
	spare  *sync.Pool   // of *logBuffers, which are for those that have something to say; clients use it too
	now    func() time.Time
}

// logBuffers are the room that a batch of output takes.
type logBuffers struct{ raw, text []byte }

// takeBuffers gives buffers from a pool.
func takeBuffers(spare *sync.Pool) *logBuffers {
	if b, ok := spare.Get().(*logBuffers); ok {
		return b
	}
	return &logBuffers{raw: make([]byte, logBatch)}
}

// buffer gives room for a batch of output.
func (l *logFile) buffer() []byte {
	if l.raw == nil {
		b := takeBuffers(l.spare)
		l.raw, l.text = b.raw, b.text
	}
	return l.raw
}

// rest gives the buffers back, until there is output again.
func (l *logFile) rest() {
	if l.raw != nil {
		l.spare.Put(&logBuffers{l.raw, l.text})
		l.raw, l.text = nil, nil
	}
}

// newLog is a log that is not written.
func newLog(r *ring, spare *sync.Pool) *logFile {
	return &logFile{ring: r, spare: spare, now: time.Now}
}

// openLog opens a log and finishes what a former process began. An empty path is a log that nobody wants.
func openLog(r *ring, path string, spare *sync.Pool) (*logFile, error) {
	l := newLog(r, spare)
	l.path = path
	if err := l.takeUp(); err != nil {
		return nil, fmt.Errorf("log %s: %w", path, err)
	}
	return l, l.reopen(func() error { return nil })
}

// reopen opens the file at the log's path, after the one that was there was renamed, and after first, during which
// nothing is written.
func (l *logFile) reopen(first func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := first(); err != nil && !l.replaced() { // the runtime may have opened it all the same
		return err
	}
	if l.path == "" {
		return nil
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	if l.file != nil {
		_ = l.file.Close()
	}
	l.file = f
	return nil
}

// replaced reports whether there is a file at the log's path, and it is not the one that is written.
func (l *logFile) replaced() bool {
	var here, there unix.Stat_t
	return l.file != nil && unix.Fstat(int(l.file.Fd()), &here) == nil && unix.Stat(l.path, &there) == nil &&
		here.Ino != there.Ino
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
	l.path = "" // not to be opened anew
}

// logged is how far each stream's output is in the log.
func (l *logFile) logged() [2]uint64 {
	return [2]uint64{l.ring.h.logged[stdout].Load(), l.ring.h.logged[stderr].Load()}
}

// reader opens the log for a reader, as it is; nil if it cannot be read. With the lock held.
func (l *logFile) reader() (*os.File, int64) {
	if l.file == nil {
		return nil, 0
	}
	f, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", l.file.Fd())) // also when it was renamed just now
	if err != nil {
		return nil, 0
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, 0
	}
	return f, info.Size()
}

// takeUp finds out whether what a former process was about to write was written, takes back a part of it, and takes
// note of the whole.
func (l *logFile) takeUp() error {
	in := &l.ring.h.intent
	if in.valid.Load() == 0 {
		return nil
	}
	path, size, err := findLog(l.path, in.ino)
	if err != nil {
		return err
	}
	switch {
	case path == "" || uint64(size) >= in.size+in.length:
		l.commit(in.logged)
	case uint64(size) > in.size:
		if err := os.Truncate(path, int64(in.size)); err != nil {
			return err
		}
	}
	in.valid.Store(0)
	return nil
}

// findLog finds the file with an inode among a log and its rotated ones, and its size; an empty path if there is none.
func findLog(path string, ino uint64) (string, int64, error) {
	if path == "" {
		return "", 0, nil
	}
	rotated, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil {
		return "", 0, err
	}
	for _, p := range append([]string{path}, rotated...) {
		var st unix.Stat_t
		if unix.Stat(p, &st) == nil && st.Ino == ino {
			return p, st.Size, nil
		}
	}
	return "", 0, nil
}

// piece is output of one stream, and the position of its first byte.
type piece struct {
	of   stream
	at   uint64
	text []byte
}

// write puts output into the log: whole lines, and what is left of each stream when its line ends, is too long, or
// there will be no more (last), or the ring is about to let it go (next is where the output that follows these pieces
// begins).
func (l *logFile) write(pieces []piece, next uint64, last bool) error {
	l.text = l.text[:0]
	stamp := l.now().Format(time.RFC3339Nano)
	for s := range l.heads {
		for tag, name := range "FP" {
			l.heads[s][tag] = fmt.Appendf(l.heads[s][tag][:0], "%s %s %c ", stamp, stream(s), name)
		}
	}
	var failed error
	for _, p := range pieces {
		if err := l.lines(p); err != nil {
			failed = err
		}
	}
	for s := range l.tail {
		if rest := l.tail[s]; len(rest) > 0 && (last || next-l.tailAt[s] > l.ring.size/2) {
			l.line(stream(s), part, rest)
			l.tail[s] = rest[:0]
		}
	}
	return errors.Join(failed, l.flush(next))
}

// flush writes the lines that were formatted. All output before next is in them, in the log already, or in a tail.
func (l *logFile) flush(next uint64) error {
	var logged [2]uint64
	for s := range l.tail {
		logged[s] = max(next, l.ring.h.logged[s].Load())
		if len(l.tail[s]) > 0 {
			logged[s] = l.tailAt[s]
		}
	}
	err := l.append(logged)
	l.text = l.text[:0]
	return err
}

// lines formats the lines that end in a piece, and keeps the beginning of the one that does not. What a former process
// wrote is left out. Where lines are so short that they become much text, they are written before all are formatted.
func (l *logFile) lines(p piece) (failed error) {
	if done := l.ring.h.logged[p.of].Load(); p.at < done {
		skip := min(done-p.at, uint64(len(p.text)))
		p.at, p.text = p.at+skip, p.text[skip:]
	}
	for len(p.text) > 0 {
		rest := l.tail[p.of]
		n := bytes.IndexByte(p.text, '\n')
		ends := n >= 0 && len(rest)+n <= longestLine
		switch {
		case ends && len(rest) == 0:
			l.line(p.of, whole, withoutCR(p.text[:n]))
			n++
		case ends:
			l.line(p.of, whole, withoutCR(append(rest, p.text[:n]...)))
			l.tail[p.of] = rest[:0]
			n++
		default:
			n = min(len(p.text), longestLine-len(rest))
			if len(rest) == 0 {
				l.tailAt[p.of] = p.at
			}
			l.tail[p.of] = append(rest, p.text[:n]...)
			if len(l.tail[p.of]) == longestLine {
				l.line(p.of, part, l.tail[p.of])
				l.tail[p.of] = rest[:0]
			}
		}
		p.at, p.text = p.at+uint64(n), p.text[n:]
		if len(l.text) >= logText {
			if err := l.flush(p.at); err != nil {
				failed = err
			}
		}
	}
	return failed
}

// withoutCR takes off what a terminal puts before the end of a line, as containerd does.
func withoutCR(line []byte) []byte { return bytes.TrimSuffix(line, []byte{'\r'}) }

// What a line in the log can be.
const (
	whole = iota
	part
)

func (l *logFile) line(s stream, what int, text []byte) {
	l.text = append(l.text, l.heads[s][what]...)
	l.text = append(l.text, text...)
	l.text = append(l.text, '\n')
}

// append writes the text to the file, and takes note of it. What cannot be written is lost to the log, not to the
// container, which goes on.
func (l *logFile) append(logged [2]uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() {
		l.commit(logged)
		l.ring.h.intent.valid.Store(0)
	}()
	if l.file == nil || len(l.text) == 0 {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(l.file.Fd()), &st); err != nil {
		return err
	}
	in := &l.ring.h.intent
	in.ino, in.size, in.length, in.logged = st.Ino, uint64(st.Size), uint64(len(l.text)), logged
	in.valid.Store(1)
	_, err := l.file.Write(l.text)
	if err != nil {
		_ = l.file.Truncate(st.Size) // no half lines
	}
	return err
}

func (l *logFile) commit(logged [2]uint64) {
	for s := range logged {
		l.ring.h.logged[s].Store(logged[s])
	}
}
