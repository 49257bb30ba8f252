// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// watcher is clientv3.Watcher over an etcd in this process. The library's own (v3client) cannot be used in a bubble: its contexts wait for a
// channel of the whole program, which keeps the bubble's time from going on.
type watcher struct {
	kv   mvcc.WatchableKV
	life *life

	mu      sync.Mutex
	streams map[mvcc.WatchStream]struct{}
}

func newWatcher(kv mvcc.WatchableKV, l *life) *watcher {
	return &watcher{kv: kv, life: l, streams: map[mvcc.WatchStream]struct{}{}}
}

// Watch implements clientv3.Watcher.
func (w *watcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	op := clientv3.OpGet(key, opts...)
	stream := w.kv.NewWatchStream()
	w.mu.Lock()
	w.streams[stream] = struct{}{}
	w.mu.Unlock()
	out := make(chan clientv3.WatchResponse)
	// WithPrevKV is what the API server always asks for; other options of a watch it has no use for.
	_, err := stream.Watch(ctx, clientv3.AutoWatchID, op.KeyBytes(), op.RangeBytes(), op.Rev())
	go func() {
		defer close(out)
		defer w.forget(stream)
		if err != nil {
			return
		}
		for {
			select {
			case <-ctx.Done():
				return
			case r, open := <-stream.Chan():
				if !open || w.life.over.Load() { // of what a ghost does nobody learns
					return
				}
				select {
				case out <- w.response(r):
				case <-ctx.Done():
					return
				}
				if r.CompactRevision != 0 {
					return
				}
			}
		}
	}()
	return out
}

func (w *watcher) response(r mvcc.WatchResponse) clientv3.WatchResponse {
	out := clientv3.WatchResponse{
		Header:          &pb.ResponseHeader{Revision: r.Revision},
		CompactRevision: r.CompactRevision, Canceled: r.CompactRevision != 0,
	}
	for _, e := range r.Events {
		event := &clientv3.Event{Type: e.Type, Kv: e.Kv} // etcd shares e between watchers
		if !v3rpc.IsCreateEvent(e) {
			before, err := w.kv.Range(context.Background(), e.Kv.Key, nil, mvcc.RangeOptions{Rev: e.Kv.ModRevision - 1})
			if err == nil && len(before.KVs) > 0 {
				event.PrevKv = before.KVs[0]
			}
		}
		out.Events = append(out.Events, event)
	}
	return out
}

func (w *watcher) forget(stream mvcc.WatchStream) {
	w.mu.Lock()
	_, open := w.streams[stream]
	delete(w.streams, stream)
	w.mu.Unlock()
	if open {
		stream.Close() // which panics the second time
	}
}

// RequestProgress implements clientv3.Watcher.
func (w *watcher) RequestProgress(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for stream := range w.streams {
		stream.RequestProgressAll()
	}
	return nil
}

// Close implements clientv3.Watcher.
func (w *watcher) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for stream := range w.streams {
		stream.Close()
	}
	clear(w.streams)
	return nil
}
