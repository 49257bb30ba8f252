// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"slices"
)

// keepFirst of a history's moments show how the pod began; they are dropped last.
const keepFirst = 100

// Fold shortens a list of moments, which is in the order of Seq, to at most max. What repeats goes first, from the
// oldest on; how the pod began, what happened only once and the newest half stay as long as possible. What was dropped
// of a container is shown by one moment, which takes the number of the first one dropped. It returns the numbers that
// are no more, too.
func Fold(moments []Moment, max int) (kept []Moment, dropped []int) {
	if len(moments) <= max || max < 2 {
		return moments, nil
	}
	excess := len(moments) - max
	head, tail := min(keepFirst, max/4), len(moments)-max/2
	drop, folded := make([]bool, len(moments)), map[string]bool{}
	take := func(i int) {
		drop[i] = true
		if c := moments[i].Container; folded[c] {
			excess--
		} else {
			folded[c] = true // the moment that stands for it takes its place
		}
	}
	seen := map[repeat]bool{}
	for i := range moments {
		m := &moments[i]
		switch {
		case m.What == Folded && folded[m.Container]:
			drop[i] = true // two that show the same
			excess--
		case m.What == Folded:
			folded[m.Container] = true
		case i >= head && i < tail && excess > 0 && seen[m.repeat()]:
			take(i)
		}
		seen[m.repeat()] = true
	}
	for i := head; i < tail && excess > 0; i++ {
		if !drop[i] && moments[i].What != Folded {
			take(i)
		}
	}
	return without(moments, drop)
}

// repeat is what makes one moment look like another.
type repeat struct {
	what             What
	edge             Edge
	container, probe string
	failed           bool
}

func (m *Moment) repeat() repeat { return repeat{m.What, m.Edge, m.Container, m.Probe, m.Failed} }

func without(moments []Moment, drop []bool) (kept []Moment, dropped []int) {
	folds := map[string]int{} // container -> place in kept
	for i := range moments {
		m := moments[i]
		_, told := folds[m.Container]
		if !drop[i] && (m.What != Folded || !told) {
			if m.What == Folded {
				folds[m.Container] = len(kept)
			}
			kept = append(kept, m)
			continue
		}
		at, ok := folds[m.Container]
		if !ok {
			folds[m.Container] = len(kept)
			kept = append(kept, Moment{Seq: m.Seq, At: m.At, Last: m.At, Times: 1, What: Folded,
				Container: m.Container})
			continue
		}
		f := &kept[at]
		if m.What == Folded {
			f.Times += m.Times
		} else {
			f.Times++
		}
		if m.At.Before(f.At) {
			f.At = m.At
		}
		f.Last = later(later(f.Last, m.At), m.Last)
		dropped = append(dropped, m.Seq)
	}
	slices.SortStableFunc(kept, func(a, b Moment) int { return cmp.Compare(a.Seq, b.Seq) })
	return kept, dropped
}
