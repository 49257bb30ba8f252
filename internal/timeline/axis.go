// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"slices"
	"time"
)

// Axis places times on a line. Quiet stretches far longer than all else are cut short.
type Axis struct {
	from  time.Time
	parts []part // in order, without gaps
	width float64
}

// part is a stretch of time on the axis.
type part struct {
	from, to   time.Time
	left, size float64
	cut        bool
}

// Tick is a labelled place on an axis.
type Tick struct {
	At    float64
	Label string
}

const (
	cutOver  = 2 // a stretch is cut when it is so many times as long as all others together
	cutShare = 5 // and gets one part in so many of the axis
	mostCuts = 4
	// mostTicks ends what would not end by itself: clocks may be wrong by centuries, which no duration can hold.
	mostTicks = 200
)

// NewAxis makes an axis of some width for a picture.
func NewAxis(p Picture, width float64) *Axis {
	a := &Axis{from: p.From, width: width}
	edges := []time.Time{p.From, p.To}
	for _, r := range p.Rows {
		for _, b := range r.Bars {
			edges = append(edges, b.From, b.To)
		}
		for _, m := range r.Marks {
			edges = append(edges, m.At)
		}
	}
	edges = slices.DeleteFunc(edges, func(t time.Time) bool { return t.Before(p.From) || t.After(p.To) })
	slices.SortFunc(edges, time.Time.Compare)
	edges = slices.CompactFunc(edges, time.Time.Equal)
	whole := p.To.Sub(p.From)
	for i := 1; i < len(edges); i++ {
		a.parts = append(a.parts, part{from: edges[i-1], to: edges[i]})
	}
	cuts := 0
	for cuts < mostCuts && len(a.parts) > 1 {
		longest := -1
		for i := range a.parts {
			if s := &a.parts[i]; !s.cut && (longest < 0 || s.took() > a.parts[longest].took()) {
				longest = i
			}
		}
		if longest < 0 || a.parts[longest].took() <= cutOver*(whole-a.parts[longest].took()) ||
			whole == a.parts[longest].took() {
			break
		}
		a.parts[longest].cut = true
		whole -= a.parts[longest].took()
		cuts++
	}
	a.place(whole, cuts)
	return a
}

func (s *part) took() time.Duration { return s.to.Sub(s.from) }

// place gives each part its place; whole is the time in parts that are not cut.
func (a *Axis) place(whole time.Duration, cuts int) {
	short := a.width / float64(cutShare+cuts)
	free := a.width - short*float64(cuts)
	left := 0.0
	for i := range a.parts {
		s := &a.parts[i]
		s.left = left
		s.size = short
		if !s.cut {
			s.size = free * float64(s.took()) / float64(max(whole, 1))
		}
		left += s.size
	}
}

// At is the place of a time.
func (a *Axis) At(t time.Time) float64 {
	for i := range a.parts {
		if s := &a.parts[i]; t.Before(s.to) {
			if !t.After(s.from) {
				return s.left
			}
			return s.left + s.size*float64(t.Sub(s.from))/float64(s.took())
		}
	}
	return a.width
}

// Cuts are the middles of the stretches that are cut short.
func (a *Axis) Cuts() (out []float64) {
	for i := range a.parts {
		if s := &a.parts[i]; s.cut {
			out = append(out, s.left+s.size/2)
		}
	}
	return out
}

// steps between ticks.
var steps = []time.Duration{time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond,
	20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond,
	500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second,
	30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute,
	30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour,
	30 * 24 * time.Hour, 365 * 24 * time.Hour}

// Ticks are round times since the axis' beginning, about apart from one another.
func (a *Axis) Ticks(apart float64) (out []Tick) {
	step, ok := a.step(apart)
	if !ok {
		return []Tick{{0, "0s"}}
	}
	for i := 0; i < len(a.parts); {
		s := a.parts[i]
		if s.cut {
			i++
			continue
		}
		j := i
		for j < len(a.parts) && !a.parts[j].cut {
			j++
		}
		end := a.parts[j-1].to
		first := (s.from.Sub(a.from) + step - 1) / step * step
		if i > 0 { // after a cut the reader has to be shown where he is
			out = append(out, Tick{s.left, Since(s.from.Sub(a.from))})
			for d := step; !s.from.Add(d).After(end) && len(out) < mostTicks; d += step {
				out = append(out, Tick{a.At(s.from.Add(d)), "+" + Since(d)})
			}
			i = j
			continue
		}
		for d := first; !a.from.Add(d).After(end) && len(out) < mostTicks; d += step {
			out = append(out, Tick{a.At(a.from.Add(d)), Since(d)})
		}
		i = j
	}
	if n := len(a.parts); n > 0 && a.parts[n-1].cut {
		out = append(out, Tick{a.width, Since(a.parts[n-1].to.Sub(a.from))})
	}
	return out
}

func (a *Axis) step(apart float64) (time.Duration, bool) {
	for i := range a.parts {
		s := &a.parts[i]
		if s.cut || s.size <= 0 {
			continue
		}
		want := time.Duration(float64(s.took()) * apart / s.size)
		for _, step := range steps {
			if step >= want {
				return step, true
			}
		}
		return want, want > 0
	}
	return 0, false
}

// Since words a round distance from the beginning: "0s", "20ms", "0.3s", "1m30s".
func Since(d time.Duration) string {
	switch {
	case d == 0:
		return "0s"
	case d < time.Minute && d%time.Second == 0:
		return d.String()
	case d < 100*time.Millisecond || d >= 10*time.Second:
		return Took(d)
	case d%(100*time.Millisecond) == 0:
		return Took(d)[:len(Took(d))-2] + "s"
	}
	return Took(d)
}
