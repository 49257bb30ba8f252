// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/store/inspect"
)

const (
	// rewritePause is how long a rewriting of the file that failed is not tried again.
	rewritePause = time.Minute
	// breath is how long the store is left in peace between two rounds, however many writes it refuses: each round
	// syncs the disk twice and holds up all writes, the deletions too that are waited for. Whoever was refused tries
	// again after a second.
	breath = 250 * time.Millisecond
)

// keeper makes room in the store: it drops history by time, and earlier when the store fills up; rewrites a file that
// is mostly empty when etcd runs into its limit; and lifts etcd's alarm, which etcd itself never does.
type keeper struct {
	etcd  *etcdserver.EtcdServer
	dir   string
	quota int64
	hard  int64
	log   *slog.Logger
	now   func() time.Time

	lockable int64 // the size of file up to which it is kept in memory

	stuck     atomic.Bool   // the store is full, and there was nothing to be done about it
	compacted atomic.Int64  // history up to this revision is gone
	nudge     chan struct{} // holds one token when a write was refused

	// What follows belongs to the goroutine in run.
	marks     []mark
	rewritten time.Time // last tried, in vain
	held      int64     // size of the file for which disk was last taken ahead
	locked    int64     // size of the file for which memory was last considered
	warned    bool      // that the store is full was logged
}

func newKeeper(server *etcdserver.EtcdServer, dir string, quota, hard int64, log *slog.Logger) *keeper {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &keeper{etcd: server, dir: dir, quota: quota, hard: hard, log: log.With(component, "store"), now: time.Now,
		lockable: lockable(), nudge: make(chan struct{}, 1)}
}

// run goes on until ctx ends.
func (k *keeper) run(ctx context.Context) {
	for {
		wait := k.round(ctx)
		if !sleep(ctx, breath, nil) || !sleep(ctx, wait-breath, k.nudge) {
			return
		}
	}
}

// sleep waits, for less if it is nudged. It returns false if ctx ended.
func sleep(ctx context.Context, d time.Duration, nudge <-chan struct{}) bool {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-nudge:
	case <-wait.C:
	}
	return true
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
			k.held, k.locked = 0, 0
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
	k.takeAhead(f)
	k.keepInMemory(f)
	k.stuck.Store(f.full() && rev == 0)
	k.warn(f)
	return f.pause()
}

// look measures.
func (k *keeper) look() facts {
	be := k.etcd.Backend()
	f := facts{now: k.now(), rev: k.etcd.KV().Rev(), compacted: k.compacted.Load(), inUse: be.SizeInUse(),
		size: be.Size(), quota: k.quota, hard: k.hard, alarm: k.alarmed()}
	f.diskFree = k.disk()
	return f
}

// disk is how many bytes of it are free. One that does not say has room.
func (k *keeper) disk() int64 { return freeBytes(k.dir) }

func freeBytes(dir string) int64 {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return math.MaxInt64
	}
	return int64(fs.Bavail) * fs.Bsize
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

// recount has etcd count again what is in use. What one commit frees is free by the next, if nobody reads any more, and
// counted by the one after that; without writes etcd commits nothing. What a reader holds longer is counted in a later
// round.
func (k *keeper) recount() {
	for range 2 {
		k.etcd.Backend().ForceCommit()
	}
}

func (k *keeper) disarm(ctx context.Context) error {
	_, err := k.etcd.Alarm(ctx, &pb.AlarmRequest{MemberID: uint64(k.etcd.MemberID()),
		Action: pb.AlarmRequest_DEACTIVATE, Alarm: pb.AlarmType_NOSPACE})
	if err == nil {
		k.log.Info("the store takes writes again")
	}
	return err
}

// warn logs once that the store is full, and once that it no longer is.
func (k *keeper) warn(f facts) {
	if f.full() == k.warned {
		return
	}
	k.warned = f.full()
	if k.warned {
		k.log.Warn("the store is full: until objects are deleted, users cannot create any nor make them larger",
			"bytes", f.inUse, "quota", f.quota, "file", k.file())
		return
	}
	k.log.Info("the store has room again", "bytes", f.inUse, "quota", f.quota)
}

// takeAhead has the file hold disk beyond its end. Where that cannot be had, the file does without, and is given more
// when there is more.
func (k *keeper) takeAhead(f facts) {
	if f.size == k.held {
		return
	}
	file, err := os.OpenFile(k.file(), os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer file.Close()
	var has unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &has); err != nil {
		return
	}
	upTo := f.holdUpTo(has.Blocks * 512)
	if upTo == 0 {
		return
	}
	if err := unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, upTo); err != nil {
		k.log.Debug("no disk can be taken ahead for the store", "err", err)
		return
	}
	if upTo == f.size+ahead {
		k.held = f.size
	}
}

func (k *keeper) file() string { return inspect.DatabaseFile(k.dir) }

// Full says in words for a user why only what must be written should be: objects have taken what they may, or the disk
// is full. Soon says that it is worth trying again in a second: room is being made, or something was written since,
// which may be a deletion.
func (e *Etcd) Full() (why string, soon bool) {
	k := e.keeper
	if k == nil {
		return "", false
	}
	if k.etcd.Backend().SizeInUse() >= k.quota || k.alarmed() {
		e.MakeRoom()
		return "the store is full: delete objects that are no longer needed, in any namespace (deletions always work), or start the " +
			"server with a larger --etcd-quota-backend-bytes", !k.stuck.Load() || k.etcd.KV().Rev() > k.compacted.Load()
	}
	if f := k.disk(); f < lowDisk {
		return fmt.Sprintf("the disk of the data folder is full: %d MiB are free; the node makes room as soon as it can, by removing "+
			"images that are not used and evicting pods", f>>20), true
	}
	return "", false
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
