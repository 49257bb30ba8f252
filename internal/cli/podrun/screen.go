// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/wherryproject/wherry/internal/cli/progress"
	"github.com/wherryproject/wherry/internal/timeline"
)

// Screen is where a run writes: progress with the time since the run's start to Err, the containers' own output to Out,
// so that output can be piped. Lines are written whole and one at a time.
type Screen struct {
	Out, Err io.Writer
	Colour   bool
	Quiet    bool // no progress
	Start    time.Time
	Rows     timeline.Options // how timelines are drawn; a width of 0: not at all

	mu      sync.Mutex
	colours map[string]int
}

// palette are readable on dark and on light grounds.
var palette = []string{"\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[35m", "\x1b[34m"}

const (
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	normal = "\x1b[0m"
)

// Say writes a line of progress about the run itself.
func (s *Screen) Say(format string, args ...any) {
	s.Tell("", progress.Line{Text: fmt.Sprintf(format, args...)}, false)
}

// Tell writes a line of progress about a pod or its container. The pod is named when there are several.
func (s *Screen) Tell(pod string, l progress.Line, several bool) {
	if s.Quiet && !l.Trouble {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := label(pod, l.Container, several)
	if name != "" {
		name = s.paint(s.colour(name), name) + " "
	}
	text := l.Text
	if l.Trouble {
		text = s.paint(red, text)
	}
	fmt.Fprintf(s.Err, "%s %s%s\n", s.paint(dim, fmt.Sprintf("%6.2fs", time.Since(s.Start).Seconds())), name, text)
}

// Draw writes a pod's timeline.
func (s *Screen) Draw(h timeline.History) {
	text := timeline.Text(h, s.Rows)
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.Err, "\n%s\n", text)
}

func label(pod, container string, several bool) string {
	switch {
	case !several:
		return container
	case container == "":
		return pod
	}
	return pod + "/" + container
}

func (s *Screen) paint(colour, text string) string {
	if !s.Colour || colour == "" {
		return text
	}
	return colour + text + normal
}

// colour gives each name one of the palette, in the order of appearance.
func (s *Screen) colour(name string) string {
	if s.colours == nil {
		s.colours = map[string]int{}
	}
	n, ok := s.colours[name]
	if !ok {
		n = len(s.colours)
		s.colours[name] = n
	}
	return palette[n%len(palette)]
}

// Log returns a writer for one container's output. Close writes what is left of a last line without an end.
func (s *Screen) Log(pod, container string, several bool) io.WriteCloser {
	return &logLines{screen: s, name: label(pod, container, several)}
}

// maxLine is the longest line kept together; a longer one is cut.
const maxLine = 64 << 10

type logLines struct {
	screen *Screen
	name   string
	rest   []byte
}

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
	fmt.Fprintf(s.Out, "%s %s\n", s.paint(s.colour(w.name), w.name+" |"), w.rest)
	w.rest = w.rest[:0]
}

func (w *logLines) Close() error {
	if len(w.rest) > 0 {
		w.flush()
	}
	return nil
}
