// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"
	"time"
)

// span is a time with a beginning and an end.
type span struct{ from, to time.Time }

// covered returns how much of the time between two moments any of the spans covers. Spans may overlap.
func covered(spans []span, from, to time.Time) (sum time.Duration) {
	slices.SortFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	for _, s := range spans {
		if s.from.Before(from) {
			s.from = from
		}
		if s.to.After(to) {
			s.to = to
		}
		if s.to.After(s.from) {
			sum += s.to.Sub(s.from)
			from = s.to
		}
	}
	return sum
}
