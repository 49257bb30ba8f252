// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"math/rand/v2"
	"strings"
	"syscall"
	"time"
)

// Faults are what is wrong with a disk from now on. The zero value is a disk that works.
type Faults struct {
	// Full: nothing that needs more room can be written. What is allocated already can be written over.
	Full bool `json:"full,omitempty"`
	// SyncFails names the file whose next fsync fails with EIO, by the end of its name (".wal"). Once.
	SyncFails string `json:"syncFails,omitempty"`
	// ReadFails names the files that cannot be read, with EIO, in the same way. Bytes that the kernel has in its cache can.
	ReadFails string `json:"readFails,omitempty"`
	// SyncTakes is how long every fsync takes.
	SyncTakes time.Duration `json:"syncTakes,omitempty"`
}

// trouble is what becomes of one operation.
type trouble struct {
	Faults
	rng *rand.Rand
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

// room tells whether a page may be taken.
func (t *trouble) room() syscall.Errno {
	if t.Full {
		return syscall.ENOSPC
	}
	return 0
}
