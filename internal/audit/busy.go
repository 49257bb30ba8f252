// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"sync"

	internal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"

	"github.com/wherryproject/wherry/internal/audit/trail"
)

// busy keeps the events of those who are over their share: the first ones to be get a log each, which nobody else's
// events go to, and those for whom there is none left share the last one.
type busy struct {
	logs []audit.Backend // the last one is shared

	mu   sync.Mutex
	slot map[string]int // by owner
	free []int          // slots
}

// openBusy opens the logs beside the one at path. Who has which is read from what they hold.
func (r *Recorder) openBusy(path string, o LogOptions) *busy {
	paths := trail.Busy(path)
	o.MaxSize, o.MaxBackups = part(o.MaxSize, o.MaxBackups, len(paths))
	b := &busy{slot: map[string]int{}}
	for i, p := range paths {
		shared := i == len(paths)-1
		if who := ownerOf(p); shared {
			// anybody's
		} else if _, twice := b.slot[who]; who == "" || twice {
			b.free = append(b.free, i)
		} else {
			b.slot[who] = i
		}
		b.logs = append(b.logs, r.file(p, o))
	}
	return b
}

// part divides the room of a log among n: the size of a file, in MiB, and how many files are kept beside the current
// one.
func part(size, backups, n int) (int, int) {
	if size >= n {
		return size / n, backups
	}
	return 1, max(1, size*backups/n)
}

// ownerOf returns whose events a log holds; "": nobody's, or it is not known.
func ownerOf(path string) (who string) {
	files, err := trail.Files(path)
	if err != nil {
		return ""
	}
	found := errors.New("found")
	_, _ = trail.Read(files, trail.Filter{}, func(e trail.Event) error {
		who = owner(e.User.Username)
		return found
	})
	return who
}

// of returns the log of an owner.
func (b *busy) of(who string) audit.Backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, has := b.slot[who]
	switch {
	case !has && len(b.free) == 0:
		i = len(b.logs) - 1
	case !has:
		i = b.free[0]
		b.free, b.slot[who] = b.free[1:], i
	}
	return b.logs[i]
}

// ProcessEvents implements audit.Sink.
func (b *busy) ProcessEvents(events ...*internal.Event) bool {
	ok := true
	for _, ev := range events {
		ok = b.of(owner(ev.User.Username)).ProcessEvents(ev) && ok
	}
	return ok
}

// Run implements audit.Backend.
func (b *busy) Run(stop <-chan struct{}) error {
	for _, log := range b.logs {
		if err := log.Run(stop); err != nil {
			return err
		}
	}
	return nil
}

// Shutdown implements audit.Backend.
func (b *busy) Shutdown() {
	for _, log := range b.logs {
		log.Shutdown()
	}
}

// String implements audit.Backend.
func (b *busy) String() string { return "busy" }
