// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// Writer writes to another writer through a Filter. It may be used by several goroutines at once. A character that is
// cut off by the end of a Write waits for the next one; Flush shows what is left.
type Writer struct {
	to io.Writer

	mu     sync.Mutex
	filter Filter
	buf    []byte
}

// New returns a Writer that escapes everything a terminal would obey. One that is a Writer already is returned as it
// is, and so is nil.
func New(to io.Writer) io.Writer {
	if _, ok := to.(*Writer); ok || to == nil {
		return to
	}
	return &Writer{to: to}
}

// Output returns a writer for what a container has written. On a terminal it is a Writer that lets colours through;
// elsewhere it is the writer below, byte for byte: a file or a program gets what the container wrote.
func Output(to io.Writer) io.Writer {
	own := Own(to)
	if !IsTerminal(own) {
		return own
	}
	return &Writer{to: own, filter: Filter{Colours: true}}
}

// Own returns the writer below a Writer, for wherry's own control sequences and for sessions with a terminal of their
// own. Whoever writes there answers for every byte.
func Own(w io.Writer) io.Writer {
	if f, ok := w.(*Writer); ok {
		return f.to
	}
	return w
}

// Flush shows what a writer still holds back. Other writers have nothing to flush.
func Flush(w io.Writer) {
	if f, ok := w.(*Writer); ok {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.flush()
	}
}

func (w *Writer) flush() {
	if w.buf = w.filter.Flush(w.buf[:0]); len(w.buf) > 0 {
		_, _ = w.to.Write(w.buf) // at the end of a stream; whoever wrote it has seen the error before
	}
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = w.filter.Append(w.buf[:0], p)
	if len(w.buf) > 0 {
		if _, err := w.to.Write(w.buf); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// IsTerminal reports whether a stream, or the one below a Writer, is a terminal.
func IsTerminal(stream any) bool {
	file, ok := File(stream)
	return ok && term.IsTerminal(int(file.Fd()))
}

// File is the file that a stream is, also below a Writer.
func File(stream any) (*os.File, bool) {
	switch w := stream.(type) {
	case *Writer:
		stream = w.to
	case *Watched:
		stream = w.to
	}
	file, ok := stream.(*os.File)
	return file, ok
}

// Watched hands everything on to another writer, and keeps the first error of that one: what was not written is known
// at the end, whoever wrote it.
type Watched struct {
	to io.Writer

	mu  sync.Mutex
	err error
}

// Watch returns a Watched for to.
func Watch(to io.Writer) *Watched { return &Watched{to: to} }

// Write implements io.Writer.
func (w *Watched) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.err == nil {
			w.err = err
		}
	}
	return n, err
}

// Err is the first error of writing; nil if there was none.
func (w *Watched) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
