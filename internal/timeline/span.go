// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"slices"
	"strings"
	"time"
)

// span is an operation from its beginning to its end.
type span struct {
	what      What
	container string
	attempt   uint32
	from, to  time.Time
	open      bool // it goes on
	cut       bool // the agent died over it
	failed    bool
	text      string
}

func (s *span) took() time.Duration { return s.to.Sub(s.from) }

// life is one attempt of a container.
type life struct {
	attempt   uint32
	spans     []span
	created   time.Time
	running   time.Time
	exited    time.Time
	code      int32
	reason    string
	switches  []Moment // started, ready, unready
	probes    []Moment
	waits     []Moment
	folded    int       // moments that were dropped
	beganWith time.Time // the first of all this
}

// track is one container's, or, with an empty name, the pod's own.
type track struct {
	Container
	lives []life // by attempt; the pod has one
}

// follow sorts a history into tracks, the pod's first.
func (h *History) follow() []track {
	out := []track{{}}
	place := map[string]int{"": 0}
	for _, c := range h.containers() {
		if _, twice := place[c.Name]; !twice {
			place[c.Name] = len(out)
			out = append(out, track{Container: c})
		}
	}
	moments := h.sorted()
	for i := range moments {
		m := &moments[i]
		t := &out[place[m.Container]]
		l := t.life(m)
		if l.beganWith.IsZero() {
			l.beganWith = m.At
		}
		switch {
		case m.Edge == Begin:
			l.spans = append(l.spans, h.spanFrom(moments, i))
		case m.Edge == End:
		default:
			l.note(m)
		}
	}
	for i := range out {
		slices.SortFunc(out[i].lives, func(a, b life) int { return int(a.attempt) - int(b.attempt) })
	}
	return out
}

// life finds the life that a moment belongs to. What carries no attempt of its own goes to the newest.
func (t *track) life(m *Moment) *life {
	n := m.Attempt
	switch m.What {
	case Started, Ready, Unready, Waiting, Folded:
		if len(t.lives) > 0 {
			n = t.lives[0].attempt
			for i := range t.lives {
				n = max(n, t.lives[i].attempt)
			}
		}
	}
	if t.Name == "" {
		n = 0
	}
	for i := range t.lives {
		if t.lives[i].attempt == n {
			return &t.lives[i]
		}
	}
	t.lives = append(t.lives, life{attempt: n})
	return &t.lives[len(t.lives)-1]
}

func (l *life) note(m *Moment) {
	switch m.What {
	case Created:
		l.created = m.At
	case Running:
		l.running = m.At
	case Exited:
		l.exited, l.code, l.reason = m.At, m.Code, m.Text
	case Started, Ready, Unready:
		l.switches = append(l.switches, *m)
	case Probed:
		l.probes = append(l.probes, *m)
	case Waiting:
		l.waits = append(l.waits, *m)
	case Folded:
		l.folded += m.Times
	}
}

// spanFrom finds the end of the operation that begins at moment i.
func (h *History) spanFrom(moments []Moment, i int) span {
	b := &moments[i]
	s := span{what: b.What, container: b.Container, attempt: b.Attempt, from: b.At, text: b.Text}
	for j := i + 1; j < len(moments); j++ {
		m := &moments[j]
		same := m.What == b.What && m.Container == b.Container && m.Attempt == b.Attempt &&
			(m.What != CleanUp || strings.HasPrefix(m.Text, b.Text))
		switch {
		case same && m.Edge == End:
			s.to, s.failed, s.text = m.At, m.Failed, m.Text
			return s
		case m.What == Agent, same && m.Edge == Begin:
			s.to, s.cut = m.At, true
			return s
		}
	}
	s.to, s.open = h.end(), !h.Gone
	return s
}

// end is where the picture ends: now, or, for a pod that is gone, its last moment.
func (h *History) end() time.Time {
	last := time.Time{}
	for i := range h.Moments {
		if m := &h.Moments[i]; m.What != Scheduled { // by another clock
			last = later(later(last, m.At), m.Last)
		}
	}
	if !h.Gone {
		return later(last, h.Now)
	}
	return last
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
