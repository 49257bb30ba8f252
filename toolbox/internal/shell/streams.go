// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// stream is standard output with something to be done at its end.
type stream struct {
	mu      sync.Mutex
	to      io.Writer
	table   string // of the subshell whose output it is
	end     func()
	last    atomic.Bool     // its command, before which no trap is run, has not been called yet
	gathers context.Context // of a substitution, which it is the output of; nil otherwise
	pipe    *os.File        // once a program of it was to write
	copied  chan struct{}
	cut     func()
}

func (s *stream) Read([]byte) (int, error) { return 0, io.EOF }

func (s *stream) Write(p []byte) (int, error) { return plain(s).Write(p) }

// Fd is for test -t.
func (s *stream) Fd() uintptr {
	if f, ok := plain(s).(*os.File); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// Close is the end of the command. A substitution's is that of all that have its output, as in other shells, or that of
// the line it is in.
func (s *stream) Close() error {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pipe == nil {
		return nil
	}
	err := s.pipe.Close()
	defer context.AfterFunc(s.gathers, s.cut)()
	<-s.copied
	return err
}

// writer is where a substitution's parts write that run at the same time.
type writer struct {
	mu sync.Mutex
	to io.Writer
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

// plain is where output goes in the end.
func plain(w io.Writer) io.Writer {
	for {
		if t, ok := w.(traceless); ok {
			return t.File
		}
		s, ok := w.(*stream)
		if !ok {
			return w
		}
		s.mu.Lock()
		if w = s.to; s.pipe != nil {
			w = s.pipe
		}
		s.mu.Unlock()
	}
}

// output is where a program writes to: a file, if that can be, since it may outlive whoever would copy for it.
func output(w io.Writer) io.Writer {
	if f := fileOf(w); f != nil {
		return f
	}
	return plain(w)
}

// fileOf is output as a file. That of a substitution is none: its programs get a pipe instead.
func fileOf(w io.Writer) *os.File {
	if f, ok := plain(w).(*os.File); ok {
		return f
	}
	if s := gathered(w); s != nil {
		return s.makePipe()
	}
	return nil
}

// gathered is the substitution whose output it is, or nil.
func gathered(w io.Writer) *stream {
	for {
		s, ok := w.(*stream)
		if !ok || s.gathers != nil {
			return s
		}
		s.mu.Lock()
		w = s.to
		s.mu.Unlock()
	}
}

func (s *stream) makePipe() *os.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pipe != nil {
		return s.pipe
	}
	from, to, err := os.Pipe()
	if err != nil {
		return nil
	}
	s.pipe, s.copied, s.cut = to, make(chan struct{}), func() { from.Close() }
	go func() {
		defer close(s.copied)
		_, _ = io.Copy(s.to, from)
		from.Close()
	}()
	return to
}
