// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Reading is what was measured of one signal.
type Reading struct{ Available, Capacity int64 }

// Readings are by signal. What could not be measured is not in it, and no pod goes for it.
type Readings map[Signal]Reading

// State is what has to be remembered from one measurement to the next. It may be lost: grace and transition then begin
// anew.
type State struct {
	// Since says of every threshold that is met, by its place in the list, since when it is.
	Since map[int]time.Time
	// Pressed says of every condition that holds when its threshold was met last.
	Pressed map[corev1.NodeConditionType]time.Time
}

// Under reports whether the node has a condition.
func (s State) Under(c corev1.NodeConditionType) bool {
	_, ok := s.Pressed[c]
	return ok
}

// Judge holds readings against thresholds. It returns the new state, and those thresholds for which a pod has to go
// now, the most urgent first. A condition holds on for transition after its last threshold was met, so that it does not
// flap.
func Judge(list []Threshold, r Readings, was State, transition time.Duration, now time.Time) (State, []Threshold) {
	out := State{Since: map[int]time.Time{}, Pressed: map[corev1.NodeConditionType]time.Time{}}
	var due []Threshold
	for c, at := range was.Pressed {
		if now.Sub(at) < transition {
			out.Pressed[c] = at
		}
	}
	for i, t := range list {
		seen, known := r[t.Signal]
		since, before := was.Since[i]
		if !known || !met(t, seen, before) {
			continue
		}
		if !before {
			since = now
		}
		out.Since[i], out.Pressed[t.Signal.Condition()] = since, now
		if now.Sub(since) >= t.Grace {
			due = append(due, t)
		}
	}
	return out, due
}

// met reports whether there is too little. Once there is, there has to be some more before it is over.
func met(t Threshold, r Reading, before bool) bool {
	least := t.Least.Of(r.Capacity)
	if before {
		least += t.Reclaim.Of(r.Capacity)
	}
	return r.Available < least
}

// Wake is how long until a soft threshold's grace is over, if one runs.
func Wake(list []Threshold, s State, now time.Time) (time.Duration, bool) {
	var next time.Duration
	found := false
	for i, since := range s.Since {
		if left := list[i].Grace - now.Sub(since); left > 0 && (!found || left < next) {
			next, found = left, true
		}
	}
	return next, found
}

// NearlyFull reports whether a disk has less than twice what a threshold wants, or next to nothing whatever the
// thresholds are.
func NearlyFull(list []Threshold, r Readings) bool {
	for _, t := range list {
		got, ok := r[t.Signal]
		if ok && t.Signal.Disk() && got.Available < 2*t.Least.Of(got.Capacity) {
			return true
		}
	}
	got, ok := r[NodeFsAvailable]
	return ok && got.Available < nextToNothing
}

// nextToNothing is what a program writes to a disk in a moment.
const nextToNothing = 256 << 20
