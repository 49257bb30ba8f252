// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"slices"
	"time"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Shade is what a bar is painted as.
type Shade uint8

// The shades. Those of a running container get darker as it gets more useful.
const (
	NoShade   Shade = iota
	Quiet           // runs, has not started yet
	Up              // runs, has started, is not ready; an init container that runs
	Serving         // ready
	Pause           // waits for its back-off
	Mounting        // volumes
	Boxing          // sandbox
	Pulling         // image
	Creating        //
	Starting        // from created to running
	HookStart       // postStart
	HookStop        // preStop
	Stopping        // from the stop signal to the exit
	Leaving         // the sandbox is taken down, folders are removed
)

// Bar is a stretch of time in a row.
type Bar struct {
	From, To time.Time
	Shade    Shade
	Attempt  uint32
	Open     bool   // it goes on
	Failed   bool   // it ended in failure
	Text     string // of a failure
}

// Sign is what a mark is drawn as.
type Sign uint8

// The signs. Where two fall on one place the later one of this list is drawn.
const (
	NoSign Sign = iota
	Passed      // a probe, for the first time
	Died        // exit other than 0
	Done        // exit 0
	Failed      // a probe, a hook, an operation
)

// Mark is a point of time in a row.
type Mark struct {
	At   time.Time
	Sign Sign
	Text string
}

// Row is one container's, or the pod's own.
type Row struct {
	Container
	Label string
	Bars  []Bar
	Marks []Mark
	State string   // how it is now
	Notes []string // how long things took, how attempts ended, what went wrong
}

// Picture is a history ready to be drawn.
type Picture struct {
	From, To time.Time
	Rows     []Row // the pod's own first
	History  *History
}

// Draw lays a history out.
func Draw(h History) Picture {
	p := Picture{From: h.Begin(), To: h.end(), History: &h}
	tracks := h.follow()
	p.Rows = append(p.Rows, h.podRow(&tracks[0], p.To))
	for i := range tracks[1:] {
		p.Rows = append(p.Rows, h.containerRow(&tracks[i+1], p.To))
	}
	for _, r := range p.Rows {
		for _, b := range r.Bars {
			if b.From.Before(p.From) {
				p.From = b.From
			}
		}
	}
	return p
}

var shades = map[What]Shade{Volumes: Mounting, Sandbox: Boxing, Pull: Pulling, Start: Creating, PostStart: HookStart,
	PreStop: HookStop, Stop: Stopping, TakeDown: Leaving, CleanUp: Leaving}

// podRow is the row of what concerns the whole pod.
func (h *History) podRow(t *track, end time.Time) Row {
	r := Row{Label: "pod"}
	if len(t.lives) == 0 {
		return r
	}
	l := &t.lives[0]
	for i := range l.spans {
		r.span(&l.spans[i], l.spans[i].to)
	}
	if up := h.sandboxUp(l); !up.IsZero() {
		over := h.firstOf(Left, end)
		for i := range l.spans {
			if s := &l.spans[i]; s.what == TakeDown && s.from.Before(over) && s.from.After(up) {
				over = s.from
			}
		}
		r.running(l.switches, true, up, over, over.Equal(end) && !h.Gone)
	}
	r.State = h.podState(l)
	r.Notes = h.podNotes(l)
	return r
}

// sandboxUp is when the first sandbox was there.
func (h *History) sandboxUp(l *life) time.Time {
	for i := range l.spans {
		if s := &l.spans[i]; s.what == Sandbox && !s.failed && !s.open && !s.cut {
			return s.to
		}
	}
	return time.Time{}
}

func (h *History) firstOf(w What, otherwise time.Time) time.Time {
	for _, m := range h.sorted() {
		if m.What == w && m.Container == "" {
			return m.At
		}
	}
	return otherwise
}

// containerRow is the row of a container with all its attempts.
func (h *History) containerRow(t *track, end time.Time) Row {
	r := Row{Container: t.Container, Label: t.Label()}
	for i := range t.lives {
		l := &t.lives[i]
		until := end
		if i+1 < len(t.lives) {
			until = t.lives[i+1].beganWith
		}
		r.attempt(l, until, i+1 == len(t.lives) && !h.Gone)
	}
	if t.Kind == podspec.Ephemeral {
		// Each run is one of its own: after an exit nothing waits to start it again.
		for i := range t.lives {
			newest := i+1 == len(t.lives)
			r.pauses(&track{t.Container, t.lives[i : i+1]}, end, newest && !h.Gone && !h.ended())
		}
	} else {
		r.pauses(t, end, !h.Gone && !h.ended())
	}
	r.State = containerState(t, h)
	r.Notes = containerNotes(t)
	return r
}

// attempt draws one attempt, which is over at until at the latest.
func (r *Row) attempt(l *life, until time.Time, newest bool) {
	stopped := time.Time{}
	for i := range l.spans {
		s := &l.spans[i]
		to := s.to
		switch s.what {
		case Start:
			r.start(s, l)
			continue
		case Stop:
			if stopped.IsZero() {
				stopped = s.from
			}
			if !l.exited.IsZero() && l.exited.Before(to) && l.exited.After(s.from) {
				to = l.exited
			}
		}
		r.span(s, to)
	}
	if !l.running.IsZero() {
		over, open := until, newest
		if !l.exited.IsZero() {
			over, open = l.exited, false
		}
		if !stopped.IsZero() && stopped.Before(over) {
			over, open = stopped, false
		}
		r.running(l.switches, r.Kind == podspec.Main || r.Kind == podspec.Sidecar, l.running, over, open)
	}
	if !l.exited.IsZero() {
		sign := Done
		if l.code != 0 {
			sign = Died
		}
		r.Marks = append(r.Marks, Mark{At: l.exited, Sign: sign, Text: exitWords(l)})
	}
	for i := range l.probes {
		p := &l.probes[i]
		sign := Passed
		if p.Failed {
			sign = Failed
		}
		r.Marks = append(r.Marks, Mark{At: p.At, Sign: sign, Text: Describe(*p)})
		if p.Times > 1 && !p.Last.IsZero() {
			r.Marks = append(r.Marks, Mark{At: p.Last, Sign: sign, Text: Describe(*p)})
		}
	}
}

// start splits the op that creates and starts a container where the runtime says it was created.
func (r *Row) start(s *span, l *life) {
	to := s.to
	if !l.running.IsZero() && !l.running.Before(s.from) && l.running.Before(to) {
		to = l.running
	}
	middle := to
	if !l.created.Before(s.from) && l.created.Before(to) {
		middle = l.created
	} else if !l.created.IsZero() && l.created.Before(s.from) {
		middle = s.from // an earlier try had created it
	}
	first := *s
	first.open, first.failed = s.open && middle.Equal(to), s.failed && middle.Equal(to)
	if middle.After(s.from) {
		r.span(&first, middle)
	}
	if to.After(middle) {
		r.Bars = append(r.Bars, Bar{From: middle, To: to, Shade: Starting, Attempt: s.attempt, Open: s.open,
			Failed: s.failed, Text: s.text})
		if s.failed {
			r.Marks = append(r.Marks, Mark{At: to, Sign: Failed, Text: s.text})
		}
	}
}

func (r *Row) span(s *span, to time.Time) {
	r.Bars = append(r.Bars, Bar{From: s.from, To: to, Shade: shades[s.what], Attempt: s.attempt, Open: s.open,
		Failed: s.failed, Text: s.text})
	if s.failed {
		r.Marks = append(r.Marks, Mark{At: to, Sign: Failed, Text: s.text})
	}
}

// running shades the time in which something runs by how useful it is. What knows no readiness is always Up.
func (r *Row) running(switches []Moment, readiness bool, from, to time.Time, open bool) {
	shade := Up
	if readiness && r.Name != "" {
		shade = Quiet
	}
	at := from
	paint := func(until time.Time, last bool) {
		if until.After(at) {
			r.Bars = append(r.Bars, Bar{From: at, To: until, Shade: shade, Open: last && open})
			at = until
		}
	}
	for i := range switches {
		m := &switches[i]
		if !readiness || m.At.After(to) {
			break
		}
		paint(m.At, false)
		switch {
		case m.What == Ready:
			shade = Serving
		case m.What == Unready:
			shade = Up
		case m.What == Started && shade == Quiet:
			shade = Up
		}
	}
	paint(to, true)
}

// pauses fills the time between a failure and the next try.
func (r *Row) pauses(t *track, end time.Time, waits bool) {
	type stretch struct {
		from time.Time
		bad  bool // a try comes after its end
	}
	var ends []stretch
	var begins []time.Time
	for i := range t.lives {
		l := &t.lives[i]
		if !l.exited.IsZero() && t.Kind != podspec.Ephemeral {
			ends = append(ends, stretch{l.exited, l.code != 0 || t.Kind != podspec.Init})
		}
		for j := range l.spans {
			s := &l.spans[j]
			if s.what == Pull || s.what == Start {
				begins = append(begins, s.from)
				if s.failed {
					ends = append(ends, stretch{s.to, true})
				}
			}
		}
		if waits && i+1 == len(t.lives) && len(l.waits) > 0 {
			begins = append(begins, end)
		}
	}
	slices.SortFunc(begins, time.Time.Compare)
	for _, e := range ends {
		next := slices.IndexFunc(begins, func(b time.Time) bool { return !b.Before(e.from) })
		if e.bad && next >= 0 && begins[next].After(e.from) {
			r.Bars = append(r.Bars, Bar{From: e.from, To: begins[next], Shade: Pause, Open: begins[next].Equal(end)})
		}
	}
}
