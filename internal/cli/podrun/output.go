// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"bytes"
	"io"
)

// Log returns a writer for what one container writes to its standard output or, with asError, to its standard error: line by line with
// the container's name in front if several write, else byte by byte as it is. Close writes what is left of a last line without an end.
func (s *Screen) Log(pod, container string, asError bool) io.WriteCloser {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.Out
	if asError {
		to = s.Err
	}
	if !s.prefixed {
		return &plainLog{s, to}
	}
	return &logLines{screen: s, to: to, name: s.label(pod, container)}
}

// plainLog hands on what one container writes.
type plainLog struct {
	screen *Screen
	to     io.Writer
}

// Write implements io.Writer. What nobody reads is no error: the log is read to its end all the same.
func (w *plainLog) Write(p []byte) (int, error) {
	s := w.screen
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	s.write(w.to, p)
	if len(p) > 0 {
		s.open = p[len(p)-1] != '\n'
	}
	return len(p), nil
}

// Close implements io.Closer.
func (w *plainLog) Close() error { return nil }

// maxLine is the longest line kept together; a longer one is cut.
const maxLine = 64 << 10

// logLines puts a name in front of each line.
type logLines struct {
	screen *Screen
	to     io.Writer
	name   string
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
				w.flush()
			}
			break
		}
		w.rest = append(w.rest, p[:i]...)
		w.flush()
		p = p[i+1:]
	}
	return n, nil
}

func (w *logLines) flush() {
	s := w.screen
	s.mu.Lock()
	defer s.mu.Unlock()
	line := append([]byte(s.paint(s.colour(w.name), w.name+" |")+" "), w.rest...)
	s.clear()
	s.write(w.to, append(line, '\n'))
	w.rest = w.rest[:0]
}

// Close implements io.Closer.
func (w *logLines) Close() error {
	if len(w.rest) > 0 {
		w.flush()
	}
	return nil
}
