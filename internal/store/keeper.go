// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"golang.org/x/sys/unix"
)

// rewritePause is how long a rewriting of the file that failed is not tried again.
const rewritePause = time.Minute

// keeper makes room in the store: it drops history by time, and earlier when the store fills up; rewrites a file that is mostly empty
// when etcd runs into its limit; and lifts etcd's alarm, which etcd itself never does.
type keeper struct {
	etcd  *etcdserver.EtcdServer
	dir   string
	quota int64
	hard  int64
	log   *slog.Logger
	now   func() time.Time

	stuck     atomic.Bool   // the store is full, and there was nothing to be done about it
	compacted atomic.Int64  // history up to this revision is gone
	nudge     chan struct{} // holds one token when a write was refused

	// What follows belongs to the goroutine in run.
	marks     []mark
	rewritten time.Time // last tried, in vain
	told      bool      // that the store is full
}

func newKeeper(server *etcdserver.EtcdServer, dir string, quota, hard int64, log *slog.Logger) *keeper {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &keeper{etcd: server, dir: dir, quota: quota, hard: hard, log: log.With(component, "store"), now: time.Now,
		nudge: make(chan struct{}, 1)}
}

// run goes on until ctx ends.
func (k *keeper) run(ctx context.Context) {
	for {
		wait := time.NewTimer(k.round(ctx))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-k.nudge:
			wait.Stop()
		case <-wait.C:
		}
	}
}

// round looks once, does what is to be done, and says when to look again.
func (k *keeper) round(ctx context.Context) time.Duration {
	f := k.look()
	k.marks = remember(k.marks, f)
	rev := f.compactTo(k.marks)
	if rev > 0 {
		if err := k.compact(ctx, rev); err != nil && ctx.Err() == nil {
			k.log.Warn("cannot drop old versions of objects", "err", err)
		}
	}
	if rev > 0 || f.full() {
		k.recount()
		f = k.look()
	}
	if f.rewrite() && f.now.Sub(k.rewritten) >= rewritePause {
		if err := k.etcd.Backend().Defrag(); err != nil {
			k.rewritten = f.now
			k.log.Warn("cannot rewrite the store's file to make it smaller", "err", err)
		} else {
			k.log.Info("rewrote the store's file", "bytes_before", f.size, "bytes", k.etcd.Backend().Size())
		}
		f = k.look()
	}
	if f.disarm() {
		if err := k.disarm(ctx); err != nil && ctx.Err() == nil {
			k.log.Warn("cannot lift the store's alarm", "err", err)
		}
		f = k.look()
	}
	k.stuck.Store(f.full() && rev == 0)
	k.tell(f)
	return f.pause()
}

// look measures.
func (k *keeper) look() facts {
	be := k.etcd.Backend()
	f := facts{now: k.now(), rev: k.etcd.KV().Rev(), compacted: k.compacted.Load(), inUse: be.SizeInUse(), size: be.Size(),
		quota: k.quota, hard: k.hard, alarm: k.alarmed()}
	var fs unix.Statfs_t
	if unix.Statfs(k.dir, &fs) == nil {
		f.diskFree = int64(fs.Bavail) * int64(fs.Bsize)
	}
	return f
}

func (k *keeper) alarmed() bool {
	for _, a := range k.etcd.Alarms() {
		if a.GetAlarm() == pb.AlarmType_NOSPACE {
			return true
		}
	}
	return false
}

// compact drops the history up to rev.
func (k *keeper) compact(ctx context.Context, rev int64) error {
	_, err := k.etcd.Compact(ctx, &pb.CompactionRequest{Revision: rev, Physical: true})
	if err != nil && !errors.Is(err, mvcc.ErrCompacted) {
		return fmt.Errorf("compact to revision %d: %w", rev, err)
	}
	k.compacted.Store(rev)
	return nil
}

// recount has etcd count again what is in use. What one commit frees is free by the next, if nobody reads any more, and counted by
// the one after that; without writes etcd commits nothing. What a reader holds longer is counted in a later round.
func (k *keeper) recount() {
	for range 2 {
		k.etcd.Backend().ForceCommit()
	}
}

func (k *keeper) disarm(ctx context.Context) error {
	_, err := k.etcd.Alarm(ctx, &pb.AlarmRequest{MemberID: uint64(k.etcd.MemberID()), Action: pb.AlarmRequest_DEACTIVATE, Alarm: pb.AlarmType_NOSPACE})
	if err == nil {
		k.log.Info("the store takes writes again")
	}
	return err
}

// tell says once that the store is full, and once that it no longer is.
func (k *keeper) tell(f facts) {
	if f.full() == k.told {
		return
	}
	k.told = f.full()
	if k.told {
		k.log.Warn("the store is full: until objects are deleted, users cannot create any nor make them larger",
			"bytes", f.inUse, "quota", f.quota, "file", filepath.Join(k.dir, "member", "snap", "db"))
		return
	}
	k.log.Info("the store has room again", "bytes", f.inUse, "quota", f.quota)
}

// Full reports whether ordinary writes should not be tried now: what objects take has reached the quota. Soon says that room is being
// made, or may be: something was written since, which may be a deletion. Then it is worth trying again in a second.
func (e *Etcd) Full() (full, soon bool) {
	k := e.keeper
	if k == nil || k.etcd.Backend().SizeInUse() < k.quota && !k.alarmed() {
		return false, false
	}
	e.MakeRoom()
	return true, !k.stuck.Load() || k.etcd.KV().Rev() > k.compacted.Load()
}

// MakeRoom has room made now; a write that was refused is a reason to call it. It does not wait.
func (e *Etcd) MakeRoom() {
	if e.keeper == nil {
		return
	}
	select {
	case e.keeper.nudge <- struct{}{}:
	default: // asked for already
	}
}
