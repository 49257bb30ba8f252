// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"math"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/wherryproject/wherry/test/simulate/disk"
)

// ending is how a server ends.
type ending int

const (
	processEnds ending = iota
	powerEnds          // the machine's: what was not synced is lost, and nothing runs any more
)

// kill ends the server at this instant, if one runs.
func (w *world) kill(how ending) {
	w.mu.Lock()
	s := w.server
	w.server, w.up = nil, make(chan struct{})
	w.mu.Unlock()
	if s != nil {
		w.end(s, how)
	}
}

// end ends a life: first what the server does to the world and its disk, then its goroutines. Until those have ended they work on a ghost.
func (w *world) end(s *server, how ending) {
	s.life.over.Store(true)
	if w.disk != nil {
		var err error
		switch {
		case how == powerEnds:
			err = w.disk.PowerOff(w.loss(), w.rng.Uint64())
		case s.life.gaveUp.Load() == nil: // it has ended then, and its disk is as it was at that time
			err = w.disk.Kill()
		}
		w.trust(err)
	}
	if s.etcd != nil {
		s.etcd.Stop()
	}
	s.cancel()
	if err := s.loops.Wait(); err != nil {
		w.log.Info("server ended", "err", err)
	}
	if w.disk != nil {
		w.trust(w.disk.Remount())
	}
}

func (w *world) loss() disk.Loss {
	return []disk.Loss{disk.LoseAll, disk.LoseSome, disk.LoseSome, disk.LoseTail}[w.rng.IntN(4)]
}

// trust is for what must not go wrong in the simulation itself.
func (w *world) trust(err error) {
	if err != nil {
		panic(err)
	}
}

// goesOn lets an etcd that gave up go on until it is stopped, as only a simulation has it: its goroutines must end, and in a server wait for the
// end of the process. Its log must not begin another file: after a failure that ends in etcd's own trace.
func goesOn() { wal.SegmentSizeBytes = math.MaxInt64 }

// gaveUp is told, by etcd's own goroutine, that etcd cannot go on. The process would end now.
func (w *world) gaveUp(s *server, err error) {
	goesOn()
	s.life.over.Store(true)
	if w.disk != nil {
		w.trust(w.disk.Kill())
	}
	s.life.gaveUp.Store(&err)
	close(s.life.dead)
	w.log.Info("etcd gave up", "err", err)
}

// dead tells why the server has ended by itself; nil: it has not.
func (w *world) dead() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.server == nil {
		return nil
	}
	if err := w.server.life.gaveUp.Load(); err != nil {
		return *err
	}
	return nil
}

// client calls etcd directly, for as long as the server lives.
func client(s *etcdserver.EtcdServer, l *life) *clientv3.Client {
	c := v3client.New(s)
	c.KV = ledger{c.KV, l}
	c.Watcher = newWatcher(s.Watchable(), l)
	return c
}

// writeBack does what the kernel does: what was written reaches the platter after a while, synced or not.
func (w *world) writeBack(done <-chan struct{}) {
	rng := rand.New(rand.NewPCG(w.seed, 5))
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Duration(5_000+rng.IntN(25_000)) * time.Millisecond):
			w.trust(w.disk.Settle())
		}
	}
}
