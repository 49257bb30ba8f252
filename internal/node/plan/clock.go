// SPDX-License-Identifier: Apache-2.0

package plan

import "time"

// Times in Seen and in the stored status were read from the node's clock, which people and time servers set. What Heard
// and Now hold goes on evenly while an agent lives (Go's monotonic time). When the clock is set forward, more time
// seems to have passed than has: back-offs end early. When it is set back, what has happened seems to be still to come,
// and nobody knows any more how long ago it was. The rule then: nothing waits for the clock to come back there.

// clockSlack is how far ahead of Now a time of the past may be, for clocks that are slewed and times that are rounded.
const clockSlack = time.Second

// setBack tells whether the clock was set back since t, a time of the past, was read from it.
func (v *view) setBack(t time.Time) bool { return t.After(v.Now.Add(clockSlack)) }

// past is t, or now if the clock was set back since.
func (v *view) past(t time.Time) time.Time {
	if v.setBack(t) {
		return v.Now
	}
	return t
}
