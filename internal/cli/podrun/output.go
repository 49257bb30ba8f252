// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"bytes"
	"io"

	"github.com/wherryproject/wherry/internal/cli/plain"
)

// Log returns a writer for what one container writes to its standard output or, with asError, to its standard error:
// line by line with the container's name in front if several write, else as it comes. To a terminal it goes through a
// filter that lets nothing but colours through; else every byte is handed on. Close writes what is left of a last line
// without an end.
func (s *Screen) Log(pod, container string, asError bool) io.WriteCloser {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.Out
	if asError {
		to = s.Err
	}
	var f *plain.Filter
	if plain.IsTerminal(to) {
		f = &plain.Filter{Colours: true}
	}
	if !s.prefixed {
		return &plainLog{s, to, f}
	}
	return &logLines{screen: s, to: to, name: s.label(pod, container), filter: f}
}

// plainLog hands on what one container writes.
type plainLog struct {
	screen *Screen
	to     io.Writer
	filter *plain.Filter // nil: none is needed
}

// Write implements io.Writer. What nobody reads is no error: the log is read to its end all the same.
func (w *plainLog) Write(p []byte) (int, error) {
	if w.filter == nil {
		w.hand(p)
	} else {
		w.hand(w.filter.Append(nil, p))
	}
	return len(p), nil
}

func (w *plainLog) hand(p []byte) {
	if len(p) == 0 {
		return
	}
	s := w.screen
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	s.write(w.to, p)
	s.open = p[len(p)-1] != '\n'
}

// Close implements io.Closer.
func (w *plainLog) Close() error {
	if w.filter != nil {
		w.hand(w.filter.Flush(nil))
	}
	return nil
}

// maxLine is the longest line kept together; a longer one is cut.
const maxLine = 64 << 10

// logLines puts a name in front of each line.
type logLines struct {
	screen *Screen
	to     io.Writer
	name   string
	filter *plain.Filter // nil: none is needed
	rest   []byte
}

// Write implements io.Writer.
func (w *logLines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			w.rest = append(w.rest, p...)
			if len(w.rest) > maxLine {
				w.flush(false)
			}
			break
		}
		w.rest = append(w.rest, p[:i]...)
		w.flush(true)
		p = p[i+1:]
	}
	return n, nil
}

// flush writes a line. One that is cut in the middle may be cut in a character: the filter keeps its beginning for the
// next.
func (w *logLines) flush(whole bool) {
	text := w.rest
	switch {
	case w.filter != nil && whole:
		text = w.filter.Flush(w.filter.Append(nil, bytes.TrimSuffix(text, []byte("\r"))))
	case w.filter != nil:
		text = w.filter.Append(nil, text)
	}
	s := w.screen
	s.mu.Lock()
	defer s.mu.Unlock()
	line := append([]byte(s.paint(s.colour(w.name), w.name+" |")+" "), text...)
	s.clear()
	s.write(w.to, append(line, '\n'))
	w.rest = w.rest[:0]
}

// Close implements io.Closer.
func (w *logLines) Close() error {
	if len(w.rest) > 0 {
		w.flush(true)
	}
	return nil
}
