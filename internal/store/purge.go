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

// purge removes old write-ahead logs and snapshots beside a running etcd, as etcd would by itself. But etcd ends the process if it cannot
// read a folder once, as when file descriptors run out for a moment; here that is told and tried again.
type purge struct {
	again time.Duration // after a failure
	done  chan struct{}
	going sync.WaitGroup
}

func startPurge(dir string, log *core) *purge {
	p := &purge{again: purgeInterval, done: make(chan struct{})}
	logger := zap.New(log)
	member := filepath.Join(dir, "member")
	for _, files := range []struct {
		folder, suffix string
		keep           uint
		lock           bool // etcd holds locks on those it needs
	}{
		{"wal", "wal", embed.DefaultMaxWALs, true},
		{"snap", "snap.db", embed.DefaultMaxSnapshots, false},
		{"snap", "snap", embed.DefaultMaxSnapshots, false},
	} {
		begin := fileutil.PurgeFileWithoutFlock
		if files.lock {
			begin = fileutil.PurgeFileWithDoneNotify
		}
		p.going.Go(func() {
			p.keepOn(logger, func() (<-chan struct{}, <-chan error) {
				return begin(logger, filepath.Join(member, files.folder), files.suffix, files.keep, purgeInterval, p.done)
			})
		})
	}
	return p
}

// keepOn begins again after a failure, until the store is closed.
func (p *purge) keepOn(logger *zap.Logger, begin func() (<-chan struct{}, <-chan error)) {
	for {
		ended, failed := begin()
		<-ended
		select {
		case <-p.done:
			return
		case err := <-failed:
			logger.Warn("cannot remove old files of the store; will try again", zap.Error(err))
		}
		select {
		case <-p.done:
			return
		case <-time.After(p.again):
		}
	}
}

// stop ends it. A nil purge was never begun.
func (p *purge) stop() {
	if p == nil {
		return
	}
	close(p.done)
	p.going.Wait()
}
