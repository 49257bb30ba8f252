// SPDX-License-Identifier: Apache-2.0

package pulling

import (
	"fmt"
	"time"
)

// Transfer is a part of an image that a node is fetching, as the host API reports it.
type Transfer struct {
	What  string `json:"ref"` // by which it is known again
	Bytes int64  `json:"bytes"`
	Total int64  `json:"total"` // 0: not known yet
}

// Transfers adds up what a node fetches, as seen again and again. One that is not there any more has come in whole.
type Transfers struct {
	parts map[string]Transfer
	busy  int // parts under way
	last  sample
	rate  float64 // bytes a second, smoothed
}

type sample struct {
	at    time.Time
	bytes int64
}

// smoothing is how much of the rate is the newest stretch's.
const smoothing = 0.3

// See takes in what is being fetched now.
func (t *Transfers) See(at time.Time, now []Transfer) {
	if t.parts == nil {
		t.parts = map[string]Transfer{}
	}
	t.busy = len(now)
	under := map[string]bool{}
	for _, n := range now {
		under[n.What] = true
		t.parts[n.What] = n
	}
	for what, p := range t.parts {
		if !under[what] {
			p.Bytes = max(p.Bytes, p.Total)
			t.parts[what] = p
		}
	}
	bytes, _ := t.sum()
	if seconds := at.Sub(t.last.at).Seconds(); !t.last.at.IsZero() && seconds > 0 {
		rate := float64(max(0, bytes-t.last.bytes)) / seconds
		if t.rate == 0 {
			t.rate = rate
		}
		t.rate += smoothing * (rate - t.rate)
	}
	t.last = sample{at, bytes}
}

func (t *Transfers) sum() (bytes, total int64) {
	for _, p := range t.parts {
		bytes += p.Bytes
		total += max(p.Total, p.Bytes)
	}
	return bytes, total
}

// String is one line of how far it is, empty before anything has come. The total is that of what has begun: a node
// fetches a few parts at a time.
func (t *Transfers) String() string {
	if len(t.parts) == 0 {
		return ""
	}
	if t.busy == 0 {
		return fmt.Sprintf("%d layers downloaded, unpacking", len(t.parts))
	}
	bytes, total := t.sum()
	const mib = 1 << 20
	return fmt.Sprintf("%.1f of %.1f MiB, %.1f MiB/s, %d of %d layers", float64(bytes)/mib, float64(total)/mib,
		t.rate/mib, len(t.parts)-t.busy, len(t.parts))
}
