// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"slices"
	"time"
)

// Image is one on the node.
type Image struct {
	ID       string
	Size     int64
	InUse    bool      // by a container or sandbox, also one that has exited
	Kept     bool      // pinned, or nowhere to be had again
	LastUsed time.Time // when somebody was last seen to use it; zero: never
	Found    time.Time // when it was first seen
}

// ImagePolicy bounds what images take on their file system, by its use in percent.
type ImagePolicy struct {
	High, Low int           // collection begins above High and aims at Low; High 100: never
	MinAge    time.Duration // younger images stay
	MaxAge    time.Duration // images that nobody has used for longer go, whatever room there is; 0: none
}

// Old lists the images that nobody has used for too long. What was before the agent began is not known, so that it
// counts from then.
func Old(p ImagePolicy, images []Image, now time.Time) (out []Image) {
	if p.MaxAge <= 0 {
		return nil
	}
	for _, i := range images {
		last := i.LastUsed
		if last.IsZero() {
			last = i.Found
		}
		if !i.InUse && !i.Kept && now.Sub(last) > p.MaxAge {
			out = append(out, i)
		}
	}
	return out
}

// Images lists the images to remove, in order, and how many bytes must come free until it is enough. Nothing is listed
// below the high mark. With all set, everything unused goes whatever its age: the node is under disk pressure.
func Images(p ImagePolicy, fs Reading, all bool, images []Image, now time.Time) (out []Image, enough int64) {
	if fs.Capacity <= 0 {
		return nil, 0
	}
	used := fs.Capacity - fs.Available
	enough = fs.Capacity
	if !all {
		if p.High >= 100 || used*100 < int64(p.High)*fs.Capacity {
			return nil, 0
		}
		enough = used - fs.Capacity*int64(p.Low)/100
	}
	for _, i := range images {
		if !i.InUse && !i.Kept && (all || now.Sub(i.Found) >= p.MinAge) {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b Image) int {
		if n := a.LastUsed.Compare(b.LastUsed); n != 0 {
			return n
		}
		return a.Found.Compare(b.Found)
	})
	return out, enough
}
