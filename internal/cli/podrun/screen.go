// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/cli/progress"
	"github.com/wherryproject/wherry/internal/timeline"
)

// Screen is where a run writes: progress with the time since the run's start to Err, and of each container's output
// what it wrote to its standard output to Out, the rest to Err. Lines of progress are written whole, and so are lines
// that have a name in front.
type Screen struct {
	Out, Err io.Writer
	Colour   bool
	// Out and Err are a person's screen: a line that a container left open is ended before a line of progress
	OneLine bool
	Quiet   bool // no progress
	Brief   bool // of progress only what takes its time
	Start   time.Time
	Rows    timeline.Options // how timelines are drawn; a width of 0: not at all
	// Lost is called once when nobody reads what is written any more; nil: nobody needs to know.
	Lost func()

	mu       sync.Mutex
	pods     bool // there are several: each line says which
	prefixed bool // containers' lines have the container's name in front
	open     bool // the last thing written was a part of a line
	lost     bool
	passing  bool // a line stands there that the next one replaces
	lent     bool // a program in a container has the terminal
	colours  map[string]int
}

// palette are readable on dark and on light grounds.
var palette = []string{"\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[35m", "\x1b[34m"}

const (
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	normal = "\x1b[0m"
)

// expect decides which names stand in front of lines: the pod's if there are several, and the container's before its
// output if several containers write, unless prefix says otherwise. Who makes pods may make several.
func (s *Screen) expect(pods []*corev1.Pod, workloads int, prefix *bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	containers := 0
	for _, p := range pods {
		containers += len(p.Spec.InitContainers) + len(p.Spec.Containers)
	}
	s.pods, s.prefixed = len(pods) > 1 || workloads > 0, containers > 1 || workloads > 0
	if prefix != nil {
		s.prefixed = *prefix
	}
}

// Say writes a line of progress about the run itself.
func (s *Screen) Say(format string, args ...any) {
	s.Show("", progress.Line{Text: fmt.Sprintf(format, args...)})
}

// Announce is Say for what takes its time.
func (s *Screen) Announce(format string, args ...any) {
	s.Show("", progress.Line{Text: fmt.Sprintf(format, args...), Slow: true})
}

// Show writes a line of progress about a pod or its container. The pod is named when there are several.
func (s *Screen) Show(pod string, l progress.Line) {
	if s.Quiet && !l.Trouble || s.Brief && !l.Trouble && !l.Slow {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lent {
		return
	}
	name := s.label(pod, l.Container)
	if name != "" {
		name = s.paint(s.colour(name), name) + " "
	}
	text := plain.Text(l.Text)
	if l.Trouble {
		text = s.paint(red, text)
	}
	s.endLine()
	s.write(s.Err, fmt.Appendf(nil, "%s %s%s\n", s.paint(dim, fmt.Sprintf("%5.1fs", time.Since(s.Start).Seconds())),
		name, text))
}

// lend gives the terminal to a program in a container, or takes it back. Meanwhile nothing of ours is written there.
func (s *Screen) lend(lent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	s.lent = lent
}

// Draw writes a pod's timeline.
func (s *Screen) Draw(h timeline.History) {
	text := timeline.Text(h, s.Rows)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLine()
	s.write(s.Err, fmt.Appendf(nil, "\n%s\n", plain.Coloured(text)))
}

// Pass shows a line that the next one replaces, on a person's screen; an empty one takes it away.
func (s *Screen) Pass(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Rows.Width == 0 || s.Quiet || s.lent || s.open {
		return
	}
	s.clear()
	if text != "" {
		line := []rune("        " + plain.Text(text))
		s.write(s.Err, []byte(string(line[:min(len(line), s.Rows.Width-1)])))
		s.passing = true
	}
}

// clear takes away the line that is to be replaced.
func (s *Screen) clear() {
	if s.passing {
		s.passing = false
		s.write(s.Err, []byte("\r\x1b[K"))
	}
}

// endLine ends on a person's screen the line that a container left open.
func (s *Screen) endLine() {
	s.clear()
	if s.open && s.OneLine {
		s.write(s.Err, []byte("\n"))
	}
	s.open = false
}

// write writes what is harmless by now, unless nobody reads any more. That nobody does is reported once and is no error
// of the writer's.
func (s *Screen) write(w io.Writer, p []byte) {
	if s.lost {
		return
	}
	if _, err := plain.Own(w).Write(p); errors.Is(err, syscall.EPIPE) {
		s.lost = true
		if s.Lost != nil {
			s.Lost()
		}
	}
}

func (s *Screen) label(pod, container string) string {
	switch {
	case !s.pods || pod == "":
		return plain.Text(container)
	case container == "":
		return plain.Text(pod)
	}
	return plain.Text(pod + "/" + container)
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
