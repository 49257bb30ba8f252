// SPDX-License-Identifier: Apache-2.0

package store

import (
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// purgeInterval is how often old files of etcd's log are looked for, as etcd does it.
const purgeInterval = 30 * time.Second

// purge removes old write-ahead logs and snapshots beside a running etcd, as etcd would by itself. But etcd ends the
// process if it cannot read a folder once, as when file descriptors run out for a moment; here that is logged and tried
// again.
//
// It also keeps the log while a snapshot is missing, which etcd takes for written and gives up its locks for.
type purge struct {
	member string // etcd's folder with both
	log    *zap.Logger
	again  time.Duration // between two rounds
	done   chan struct{}
	going  sync.WaitGroup

	mu      sync.Mutex // held by a round over the log
	missing string     // name of the last snapshot that could not be written; empty: all were
}

func newPurge(dir string, log *core) *purge {
	return &purge{member: filepath.Join(dir, "member"), log: zap.New(log), again: purgeInterval,
		done: make(chan struct{})}
}

// start begins with a round at once.
func (p *purge) start() {
	p.going.Go(func() { p.keepOn(p.logs) })
	p.going.Go(func() { p.keepOn(p.snapshots) })
}

// keepOn does rounds until the store is closed.
func (p *purge) keepOn(round func() error) {
	for {
		if err := round(); err != nil {
			p.log.Warn("cannot remove old files of the store; will try again", zap.Error(err))
		}
		select {
		case <-p.done:
			return
		case <-time.After(p.again):
		}
	}
}

// logs removes old files of the log but those that etcd holds locks on, or needs since a snapshot is missing.
func (p *purge) logs() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if caught, err := p.caughtUp(); !caught {
		return err
	}
	return p.remove(fileutil.PurgeFileWithDoneNotify, "wal", "wal", embed.DefaultMaxWALs)
}

func (p *purge) snapshots() error {
	for _, suffix := range []string{"snap.db", "snap"} {
		if err := p.remove(fileutil.PurgeFileWithoutFlock, "snap", suffix, embed.DefaultMaxSnapshots); err != nil {
			return err
		}
	}
	return nil
}

// purger is one of etcd's functions that go on until a channel is closed, after one round at least.
type purger func(lg *zap.Logger, dir, suffix string, keep uint, interval time.Duration,
	stop <-chan struct{}) (<-chan struct{}, <-chan error)

func (p *purge) remove(with purger, folder, suffix string, keep uint) error {
	once := make(chan struct{})
	close(once)
	ended, failed := with(p.log, filepath.Join(p.member, folder), suffix, keep, purgeInterval, once)
	<-ended
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// missed keeps the log from now on: a start needs it back to the snapshot before the one that could not be written.
func (p *purge) missed(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.missing = filepath.Base(path)
}

// caughtUp reports whether a snapshot was taken since one was missing. The newest may be half written, and unknown to
// the log; with a second one the first is whole, since etcd takes one after the other. Their names are in their order.
func (p *purge) caughtUp() (bool, error) {
	if p.missing == "" {
		return true, nil
	}
	names, err := fileutil.ReadDir(filepath.Join(p.member, "snap"), fileutil.WithExt(".snap"))
	newer := 0
	for _, name := range names {
		if name > p.missing {
			newer++
		}
	}
	if newer < 2 {
		return false, err
	}
	p.missing = ""
	return true, nil
}

// stop ends it, begun or not. A nil purge was never made.
func (p *purge) stop() {
	if p == nil {
		return
	}
	close(p.done)
	p.going.Wait()
}
