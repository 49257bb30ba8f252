// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"reflect"
	"time"
	"unsafe"

	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// Etcd commits its database ten times a second and looks ten times a second for watches that have fallen behind,
// whether there is anything to be done or not. Here both follow the use of the store: pulse does what etcd's clocks do,
// as often, while there are writes and new watches, and nothing while there are none. Etcd's own clocks go on, slowly,
// for what pulse does not hear of: changes that etcd makes by itself when leases end, and watches that were held up.
//
// Nothing of it is about what is safe: a write is acknowledged when it is in the log, on the disk, and what the
// database lacks after a crash is taken from there.
// (docs/decisions/077-an-idle-server-is-quiet.md)

const (
	// beatPause is how often pulse does its work while the store is in use: as often as etcd would.
	beatPause = 100 * time.Millisecond
	// lastBeats is how many more beats follow the last use.
	lastBeats = 2
	// slowCommit and slowResync are how often etcd does the same by itself.
	slowCommit = 5 * time.Second
	slowResync = 2 * time.Second
)

// pulse is a goroutine that works while the store is in use.
type pulse struct {
	used   chan struct{} // holds one token when the store was used
	commit func()
	resync func() int // nil: etcd does it; returns how many watches are still behind
	cancel context.CancelFunc
	done   chan struct{}
}

// newPulse makes one that does not beat yet, but hears already.
func newPulse() *pulse { return &pulse{used: make(chan struct{}, 1), done: make(chan struct{})} }

// start begins to beat.
func (p *pulse) start(s *etcdserver.EtcdServer, do func(func()) error) {
	p.commit = func() { s.Backend().ForceCommit() }
	if at, err := storeOf(s.Watchable()); err == nil {
		p.resync = func() int { return syncWatchers(at) }
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() {
		defer close(p.done)
		_ = do(func() { p.run(ctx) }) // the verdict has it already
	}()
}

// stop ends it, if it has begun, and waits for it unless the store is dead.
func (p *pulse) stop(dead <-chan struct{}) {
	if p == nil || p.cancel == nil {
		return
	}
	p.cancel()
	select {
	case <-p.done:
	case <-dead:
	}
}

// stir notes that the store is in use. It does not wait. A store without a pulse is left to etcd's own clocks.
func (p *pulse) stir() {
	if p == nil {
		return
	}
	select {
	case p.used <- struct{}{}:
	default: // it is known
	}
}

func (p *pulse) run(ctx context.Context) {
	wait := time.NewTimer(beatPause)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.used:
		}
		for left := lastBeats; left > 0; left-- {
			wait.Reset(beatPause)
			select {
			case <-ctx.Done():
				return
			case <-wait.C:
			}
			if p.beat() {
				left = lastBeats
			}
		}
	}
}

// beat does what is to be done, and reports whether there will be more.
func (p *pulse) beat() (more bool) {
	select {
	case <-p.used:
		more = true
	default:
	}
	p.commit()
	if p.resync != nil && p.resync() > 0 {
		more = true
	}
	return more
}

// storeOf is where etcd's store is, for syncWatchers. An etcd that is made otherwise than the one this was written for
// is left alone.
func storeOf(kv mvcc.WatchableKV) (unsafe.Pointer, error) {
	v := reflect.ValueOf(kv)
	if v.Kind() != reflect.Pointer || v.Type().String() != "*mvcc.watchableStore" {
		return nil, fmt.Errorf("etcd's store is a %T", kv)
	}
	return v.UnsafePointer(), nil
}

// syncWatchers is etcd's own: it brings watches that have fallen behind up to date, some at a time, and returns how
// many are left. It takes etcd's own lock.
//
//go:linkname syncWatchers go.etcd.io/etcd/server/v3/storage/mvcc.(*watchableStore).syncWatchers
func syncWatchers(unsafe.Pointer) int

// watchResyncPeriod is etcd's own: how often it calls syncWatchers by itself.
//
//go:linkname watchResyncPeriod go.etcd.io/etcd/server/v3/storage/mvcc.watchResyncPeriod
var watchResyncPeriod time.Duration

// slowDown has etcd call syncWatchers less often, of all stores of this process that are opened from now on. Another
// store may be reading the same number, which it may find before or after.
//
//go:norace
func slowDown() {
	if watchResyncPeriod != slowResync {
		watchResyncPeriod = slowResync
	}
}
