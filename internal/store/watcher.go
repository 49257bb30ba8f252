// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// watcher is [clientv3.Watcher] for an etcd in the same process. A watch that is slow is held up by nobody but itself,
// and holds up no other: etcd keeps 128 answers for it and reads later ones from its database.
//
// Of the options of a watch it knows those that the API server uses: keys and prefixes, a revision to begin with, what
// was there before a change, notices of progress.
type watcher struct {
	kv   mvcc.WatchableKV
	do   func(func()) error // what reads the database is called by it
	used func()             // called when a watch begins or goes on

	mu     sync.Mutex
	open   map[*watching]struct{}
	closed bool
	ticks  *time.Ticker // nil: nobody wants progress notifications
	done   chan struct{}
}

// watching is one watch.
type watching struct {
	stream    mvcc.WatchStream
	id        mvcc.WatchID
	before    bool // it gets the previous value with each change
	progress  bool // it gets progress notifications
	mu        sync.Mutex
	heard     bool // since the last notice of progress
	isClosing bool
}

// progressPause is after how long a watch without events is sent the revision, so that it can resume after a
// compaction.
const progressPause = time.Minute

func newWatcher(kv mvcc.WatchableKV, do func(func()) error, used func()) *watcher {
	return &watcher{kv: kv, do: do, used: used, open: map[*watching]struct{}{}, done: make(chan struct{})}
}

// Watch implements clientv3.Watcher.
func (w *watcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	out := make(chan clientv3.WatchResponse)
	op := clientv3.OpGet(key, opts...)
	one := &watching{stream: w.kv.NewWatchStream(), before: op.IsPrevKV(), progress: op.IsProgressNotify()}
	var err error
	one.id, err = one.stream.Watch(ctx, clientv3.AutoWatchID, op.KeyBytes(), op.RangeBytes(), op.Rev())
	if err != nil || !w.add(one) {
		one.close()
		close(out)
		return out
	}
	w.used()
	go func() {
		defer close(out)
		defer w.forget(one)
		_ = w.do(func() { w.pass(ctx, one, out) }) // the verdict has it already
	}()
	return out
}

// pass hands on what a watch is sent until it ends.
func (w *watcher) pass(ctx context.Context, one *watching, out chan<- clientv3.WatchResponse) {
	for {
		select {
		case <-ctx.Done():
			return
		case r, open := <-one.stream.Chan():
			if !open {
				return
			}
			mvcc.ReportEventReceived(len(r.Events))
			if len(r.Events) > 0 {
				one.hear(true)
				w.used() // one that had fallen behind is to be caught up with
			}
			select {
			case out <- w.response(one, r):
			case <-ctx.Done():
				return
			}
			if r.CompactRevision != 0 {
				return
			}
		}
	}
}

func (w *watcher) response(one *watching, r mvcc.WatchResponse) clientv3.WatchResponse {
	out := clientv3.WatchResponse{Header: &pb.ResponseHeader{Revision: r.Revision}, CompactRevision: r.CompactRevision,
		Canceled: r.CompactRevision != 0}
	if len(r.Events) > 0 {
		out.Events = make([]*clientv3.Event, len(r.Events))
	}
	for i, e := range r.Events {
		event := &clientv3.Event{Type: e.Type, Kv: e.Kv} // etcd shares e between watches
		if one.before && !v3rpc.IsCreateEvent(e) {
			event.PrevKv = w.previous(e)
		}
		out.Events[i] = event
	}
	return out
}

// previous is what a change has replaced; nil if that was compacted away meanwhile.
func (w *watcher) previous(e *mvccpb.Event) *mvccpb.KeyValue {
	r, err := w.kv.Range(context.Background(), e.Kv.Key, nil, mvcc.RangeOptions{Rev: e.Kv.ModRevision - 1})
	if err != nil || len(r.KVs) == 0 {
		return nil
	}
	return r.KVs[0]
}

// hear notes whether the watch has been sent anything, and returns whether it had been.
func (one *watching) hear(now bool) (had bool) {
	one.mu.Lock()
	defer one.mu.Unlock()
	had, one.heard = one.heard, now
	return had
}

// close may be called more than once, which the stream's own may not.
func (one *watching) close() {
	one.mu.Lock()
	defer one.mu.Unlock()
	if !one.isClosing {
		one.isClosing = true
		one.stream.Close()
	}
}

func (w *watcher) add(one *watching) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.open[one] = struct{}{}
	if one.progress && w.ticks == nil {
		w.ticks = time.NewTicker(progressPause)
		go w.notify(w.ticks)
	}
	return true
}

func (w *watcher) forget(one *watching) {
	w.mu.Lock()
	delete(w.open, one)
	w.mu.Unlock()
	one.close()
}

// notify sends progress to watches that have heard nothing for a while, all at one time.
func (w *watcher) notify(ticks *time.Ticker) {
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-w.done:
			return
		}
		for _, one := range w.all() {
			if one.progress && !one.hear(false) {
				one.stream.RequestProgress(one.id)
			}
		}
	}
}

func (w *watcher) all() (all []*watching) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.open {
		all = append(all, one)
	}
	return all
}

// RequestProgress implements clientv3.Watcher.
func (w *watcher) RequestProgress(context.Context) error {
	for _, one := range w.all() {
		one.stream.RequestProgressAll()
	}
	return nil
}

// Close implements clientv3.Watcher: it ends all watches.
func (w *watcher) Close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	close(w.done)
	w.mu.Unlock()
	for _, one := range w.all() {
		one.close()
	}
	return nil
}
