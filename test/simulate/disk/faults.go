// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"math/rand/v2"
	"strings"
	"time"
)

// Faults are what is wrong with a disk from now on. The zero value is a disk that works.
type Faults struct {
	// Full: nothing that needs more room can be written but into what is freed. What is allocated already can be
	// written over.
	Full bool `json:"full,omitempty"`
	// SyncFails names the file whose next fsync fails with EIO, by the end of its name (".wal"). Once.
	SyncFails string `json:"syncFails,omitempty"`
	// ReadFails names the files that cannot be read, with EIO, in the same way. Bytes that the kernel has in its cache
	// can.
	ReadFails string `json:"readFails,omitempty"`
	// SyncTakes is how long every fsync takes.
	SyncTakes time.Duration `json:"syncTakes,omitempty"`
	// PowerEnds is after how many more changes the power does, in the middle of a write perhaps; 0: it does not. What
	// then goes on sees all writing and syncing fail, so that nothing is taken for safe.
	PowerEnds int  `json:"powerEnds,omitempty"`
	Loss      Loss `json:"loss,omitempty"` // of the end of power
}

// trouble is what becomes of one operation.
type trouble struct {
	Faults
	rng   *rand.Rand
	dark  bool  // the power has ended
	freed int64 // pages, since the disk is full
}

// last counts a change, and tells whether it is the last before the power ends.
func (t *trouble) last() bool {
	if t.PowerEnds == 0 {
		return false
	}
	t.PowerEnds--
	return t.PowerEnds == 0
}

func concerns(end, name string) bool { return end != "" && strings.HasSuffix(name, end) }

// sync tells whether this fsync fails, for which it is the last time.
func (t *trouble) sync(name string) bool {
	if !concerns(t.SyncFails, name) {
		return false
	}
	t.SyncFails = ""
	return true
}

// take takes pages, if there are that many.
func (t *trouble) take(pages int64) bool {
	if !t.Full {
		return true
	}
	if pages > t.freed {
		return false
	}
	t.freed -= pages
	return true
}
