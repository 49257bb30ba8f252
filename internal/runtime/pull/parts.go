// SPDX-License-Identifier: Apache-2.0

package pull

import (
	"context"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/core/remotes"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// parts are the parts of images that are being fetched, by what containerd's content store calls them: it lists also
// those that wait for another pull.
type parts struct {
	mu    sync.Mutex
	count map[string]int
}

// of returns a handler of images that takes in the parts of a pull, and what is to be called at its end.
func (p *parts) of() (begin func(context.Context, ocispec.Descriptor) ([]ocispec.Descriptor, error), end func()) {
	var mine []string
	begin = func(ctx context.Context, d ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		ref := remotes.MakeRefKey(ctx, d)
		p.count[ref]++
		mine = append(mine, ref)
		return nil, nil
	}
	end = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, ref := range mine {
			if p.count[ref]--; p.count[ref] == 0 {
				delete(p.count, ref)
			}
		}
		mine = nil
	}
	return begin, end
}

// Fetching reports whether a part of an image is that of a pull under way.
func (p *Puller) Fetching(ref string) bool {
	p.parts.mu.Lock()
	defer p.parts.mu.Unlock()
	return p.parts.count[ref] > 0
}

// keyed are locks by name.
type keyed struct {
	patience time.Duration // how long the lock is waited for; 0: until it is given
	mu       sync.Mutex
	locks    map[string]*keyedLock
}

type keyedLock struct {
	held    chan struct{} // holds a token while somebody has the lock
	used    int           // who has it or waits for it
	without int           // how many go on without it
}

func newKeyed(patience time.Duration) *keyed {
	return &keyed{patience: patience, locks: map[string]*keyedLock{}}
}

// Lock waits for a name's lock. Who has been patient for long enough goes on without it, and unlocks it all the same.
func (k *keyed) Lock(ctx context.Context, key string) error {
	k.mu.Lock()
	l := k.locks[key]
	if l == nil {
		l = &keyedLock{held: make(chan struct{}, 1)}
		k.locks[key] = l
	}
	l.used++
	k.mu.Unlock()
	var enough <-chan time.Time
	if k.patience > 0 {
		timer := time.NewTimer(k.patience)
		defer timer.Stop()
		enough = timer.C
	}
	select {
	case l.held <- struct{}{}:
		return nil
	case <-enough:
		k.mu.Lock()
		l.without++
		k.mu.Unlock()
		return nil
	case <-ctx.Done():
		k.leave(key, l)
		return ctx.Err()
	}
}

// tryLock takes a name's lock if nobody has it or waits for it.
func (k *keyed) tryLock(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.locks[key] != nil {
		return false
	}
	l := &keyedLock{held: make(chan struct{}, 1), used: 1}
	l.held <- struct{}{}
	k.locks[key] = l
	return true
}

// Unlock gives it to the next.
func (k *keyed) Unlock(key string) {
	k.mu.Lock()
	l := k.locks[key]
	gives := l.without == 0
	if !gives {
		l.without-- // the lock itself is given back by the last of them
	}
	k.mu.Unlock()
	if gives {
		<-l.held
	}
	k.leave(key, l)
}

func (k *keyed) leave(key string, l *keyedLock) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.used--; l.used == 0 {
		delete(k.locks, key)
	}
}
