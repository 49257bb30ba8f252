// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	_ "unsafe" // for go:linkname

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/store/inspect"
)

// DamageError says that the files of a store are damaged, and which. Nothing was changed.
type DamageError struct {
	Dir string // etcd's own folder
	*inspect.Damage
}

func (e *DamageError) Error() string { return "the store is damaged: " + e.Damage.Error() }

func (e *DamageError) Unwrap() error { return e.Damage }

// sound refuses a store that is damaged, with which etcd itself would panic, wait for ever, or go on without what it
// has acknowledged; one that was killed while it was made is made anew.
func sound(ctx context.Context, cfg Config) error {
	if err := forgetLog(cfg.Dir); err != nil {
		return explain(cfg.Dir, err)
	}
	facts, err := inspect.LookApart(ctx, cfg.Inspector, cfg.Dir)
	if err != nil {
		return explain(cfg.Dir, err)
	}
	if inspect.Unborn(facts) && !cfg.Had {
		if err := unmake(cfg.Dir); err != nil {
			return explain(cfg.Dir, err)
		}
		return nil
	}
	d := inspect.Judge(facts)
	if d == nil {
		return nil
	}
	if err := readable(cfg.Dir); err != nil { // the files may be whole
		return explain(cfg.Dir, err)
	}
	return &DamageError{cfg.Dir, d}
}

// readable reads the store's files from end to end, and returns why the disk does not let it. What is missing is no
// matter of the disk's.
func readable(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil {
		return err
	}
	for _, file := range append(files, inspect.DatabaseFile(dir)) {
		f, err := os.Open(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			_, err = io.Copy(io.Discard, f)
			f.Close()
		}
		if err != nil && failedDisk(err) {
			return err
		}
	}
	return nil
}

// forgetLog has the kernel read the log from the disk again. A sync that failed leaves pages in the kernel's cache that
// are not on the disk and are never written: who reads them takes for safe what the next loss of power takes away, and
// everything after it.
func forgetLog(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := forget(file); err != nil {
			return err
		}
	}
	return nil
}

// forget drops a file from the kernel's cache. What is still to be written is written first; it could not be dropped
// otherwise.
func forget(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return err
	}
	// Best effort: a file system without a cache has nothing to drop.
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	return nil
}

// unmake removes the files of a store that never held anything. The log goes first: a database without one is that of a
// first start.
func unmake(dir string) error {
	return errors.Join(os.RemoveAll(filepath.Join(dir, "member", "wal")), os.RemoveAll(filepath.Join(dir, "member")))
}

// open starts etcd and returns when it answers, when it gives up, or when ctx ends, whatever etcd is doing.
func (e *Etcd) open(ctx context.Context, dir string, c *embed.Config) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout,
		fmt.Errorf("store %s: etcd was not ready within %v; if the disk is only slow, start the server again", dir,
			startTimeout))
	defer cancel()
	type result struct {
		server *embed.Etcd
		err    error
	}
	begun := make(chan result, 1)
	go func() {
		server, err := embed.StartEtcd(c)
		begun <- result{server, err}
	}()
	select {
	case r := <-begun:
		if r.err != nil {
			return unopened(dir, r.err)
		}
		e.server = r.server
	case <-e.verdict.dead:
		return unopened(dir, e.verdict.err)
	case <-ctx.Done(): // StartEtcd knows no context: it is left to the end of the process
		return context.Cause(ctx)
	}
	go elect(ctx, e.server.Server)
	select {
	case <-e.server.Server.ReadyNotify():
		e.ready = true
		return nil
	case <-e.verdict.dead:
		return unopened(dir, e.verdict.err)
	case err := <-e.server.Err():
		return explain(dir, err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// electPause is how long a lone member is given to apply what its log says of members, before which it cannot be
// elected.
const electPause = 2 * time.Millisecond

// elect has a lone member begin its election now, and again until it is elected: by itself it would after some of its
// ticks, which are long. It is asked to as a member is that is to take over from a leader, and not before raft knows
// that all is applied: it would look for members in what is not, and give up if etcd has dropped some of that already.
func elect(ctx context.Context, s *etcdserver.EtcdServer) {
	self := uint64(s.MemberID())
	for s.Lead() == 0 {
		if now := raftStatus(s); now.Applied >= now.GetCommit() {
			m := &raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), To: &self, From: &self}
			if err := s.Process(ctx, m); err != nil {
				return // it ends, or ctx does
			}
		}
		select {
		case <-time.After(electPause):
		case <-s.StopNotify():
			return
		case <-ctx.Done():
			return
		}
	}
}

// raftStatus is etcd's own: what raft knows, which is later than what etcd does.
//
//go:linkname raftStatus go.etcd.io/etcd/server/v3/etcdserver.(*EtcdServer).raftStatus
func raftStatus(*etcdserver.EtcdServer) raft.Status

// unopened words why etcd could not open its files. What is not the machine's doing is the files'.
func unopened(dir string, err error) error {
	var machine syscall.Errno
	if errors.As(err, &machine) {
		return explain(dir, err)
	}
	if strings.Contains(err.Error(), "failed to repair WAL") && freeBytes(dir) < repairBytes {
		return fmt.Errorf("store %s: %w: the last write to its log was cut off, and etcd mends that only with room for a copy of the log's last file: %w", dir, ErrDiskFull, err)
	}
	return &DamageError{dir, &inspect.Damage{File: dir, What: "cannot be opened: " + err.Error()}}
}

// repairBytes is the size of a file of etcd's log.
const repairBytes = 64 << 20

// endPatience is how long an etcd may take to end that was never ready. One whose log is damaged waits for itself.
const endPatience = 3 * time.Second

// end stops etcd and returns the last error of its listeners.
func (e *Etcd) end() error {
	ended := make(chan struct{})
	go func() {
		e.server.Close()
		close(ended)
	}()
	if e.ready {
		<-ended
	} else {
		select {
		case <-ended:
		case <-time.After(endPatience):
			return errors.New("etcd did not end its start in time")
		}
	}
	var errs []error
	for {
		select {
		case err, more := <-e.server.Err():
			if more {
				errs = append(errs, err)
				continue
			}
		default:
		}
		return errors.Join(errs...)
	}
}
