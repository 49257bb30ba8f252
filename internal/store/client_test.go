// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// within starts a store and a client in this process.
func within(t *testing.T, dir string) (context.Context, *Etcd, *clientv3.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	e, err := Start(ctx, Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return ctx, e, e.Client()
}

func write(ctx context.Context, t *testing.T, c *clientv3.Client, key, value string) int64 {
	t.Helper()
	r, err := c.Put(ctx, key, value)
	if err != nil {
		t.Fatal(err)
	}
	return r.Header.GetRevision()
}

func next(ctx context.Context, t *testing.T, w clientv3.WatchChan) clientv3.WatchResponse {
	t.Helper()
	select {
	case r, open := <-w:
		if !open {
			t.Fatal("the watch has ended")
		}
		return r
	case <-ctx.Done():
		t.Fatal("the watch says nothing")
	}
	return clientv3.WatchResponse{}
}

// A watch in this process is told of changes with what was there before, from now on or from a revision of the past,
// and of a compaction.
func TestWatchWithin(t *testing.T) {
	ctx, _, c := within(t, t.TempDir())
	first := write(ctx, t, c, "/a/1", "one")
	now := c.Watch(ctx, "/a/", clientv3.WithPrefix(), clientv3.WithPrevKV())
	past := c.Watch(ctx, "/a/", clientv3.WithPrefix(), clientv3.WithRev(first))
	write(ctx, t, c, "/b/1", "another's")
	write(ctx, t, c, "/a/1", "two")
	if _, err := c.Delete(ctx, "/a/1"); err != nil {
		t.Fatal(err)
	}
	var told []string
	for len(told) < 2 {
		for _, e := range next(ctx, t, now).Events {
			told = append(told, fmt.Sprintf("%v %s %s after %s", e.Type, e.Kv.Key, e.Kv.Value, e.PrevKv.Value))
		}
	}
	if want := "[PUT /a/1 two after one DELETE /a/1  after two]"; fmt.Sprint(told) != want {
		t.Errorf("told %v, want %s", told, want)
	}
	told = nil
	for len(told) < 3 {
		for _, e := range next(ctx, t, past).Events {
			told = append(told, fmt.Sprintf("%v %s %v", e.Type, e.Kv.Value, e.PrevKv == nil))
		}
	}
	if want := "[PUT one true PUT two true DELETE  true]"; fmt.Sprint(told) != want {
		t.Errorf("told %v, want %s", told, want)
	}
	if _, err := c.Compact(ctx, write(ctx, t, c, "/a/2", "late")); err != nil {
		t.Fatal(err)
	}
	old := c.Watch(ctx, "/a/", clientv3.WithPrefix(), clientv3.WithRev(first))
	if r := next(ctx, t, old); r.Err() == nil || r.CompactRevision == 0 {
		t.Errorf("a watch from before a compaction is told %+v", r)
	}
	if _, open := <-old; open {
		t.Error("and goes on")
	}
}

// A watch from the past is caught up with at once, although etcd's own clock looks for such watches every two seconds
// only; and what was written is in the database soon, although etcd's clock is at five seconds. So the clocks of etcd
// have nothing to do.
func TestPulse(t *testing.T) {
	ctx, e, c := within(t, t.TempDir())
	if e.pulse.resync == nil {
		t.Fatal("etcd's store is none that is known")
	}
	if watchResyncPeriod != slowResync {
		t.Errorf("etcd looks for watches every %v", watchResyncPeriod)
	}
	first := write(ctx, t, c, "k", "0")
	for i := range 3 {
		write(ctx, t, c, "k", fmt.Sprint(i))
	}
	var took []time.Duration
	for range 11 { // some may be in time by chance, and some late on a busy machine
		began := time.Now()
		one, cancel := context.WithCancel(ctx)
		next(ctx, t, c.Watch(one, "k", clientv3.WithRev(first)))
		cancel()
		took = append(took, time.Since(began))
	}
	if slices.Sort(took); took[5] > slowResync/3 {
		t.Errorf("watches from the past were told after %v", took)
	}
	was := e.server.Server.Backend().SizeInUse()
	began := time.Now()
	write(ctx, t, c, "large", string(make([]byte, 1<<20)))
	for e.server.Server.Backend().SizeInUse() < was+1<<20 {
		if time.Since(began) > slowCommit/2 {
			t.Fatalf("after %v what was written is not in the database", time.Since(began))
		}
		time.Sleep(5 * time.Millisecond) // nobody tells of a commit
	}
}

// A watch that is not read holds up no other and no write, and is told everything when it is read at last.
func TestSlowWatchWithin(t *testing.T) {
	ctx, _, c := within(t, t.TempDir())
	slow := c.Watch(ctx, "k", clientv3.WithPrevKV())
	quick := c.Watch(ctx, "k")
	const many = 1000 // more than etcd keeps for a watch
	last := make(chan int64, 1)
	go func() {
		n := int64(0)
		for n < many {
			n += int64(len((<-quick).Events))
		}
		last <- n
	}()
	for i := range many {
		write(ctx, t, c, "k", fmt.Sprint(i))
	}
	select {
	case <-last:
	case <-ctx.Done():
		t.Fatal("a quick watch waits for a slow one")
	}
	for want := 0; want < many; {
		for _, e := range next(ctx, t, slow).Events {
			if string(e.Kv.Value) != fmt.Sprint(want) {
				t.Fatalf("told %s, want %d", e.Kv.Value, want)
			}
			want++
		}
	}
}

// A watch ends with its context, and all end with the store; one that is begun later does not begin.
func TestWatchesEnd(t *testing.T) {
	dir := t.TempDir()
	e, err := Start(t.Context(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := e.Client()
	ctx, cancel := context.WithCancel(t.Context())
	cancelled, kept := c.Watch(ctx, "k"), c.Watch(t.Context(), "k", clientv3.WithProgressNotify())
	cancel()
	if r, open := <-cancelled; open {
		t.Errorf("told %+v", r)
	}
	if err := c.RequestProgress(t.Context()); err != nil {
		t.Error(err)
	}
	if r := <-kept; !r.IsProgressNotify() {
		t.Errorf("told %+v, want the revision", r)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if r, open := <-kept; open {
		t.Errorf("told %+v", r)
	}
	if r, open := <-c.Watch(t.Context(), "k"); open {
		t.Errorf("told %+v", r)
	}
}

// A lone member is elected at once, whatever its ticks are: the start waits for none.
func TestElectedAtOnce(t *testing.T) {
	dir := t.TempDir()
	quickest := time.Hour
	for range 4 { // the first has members to apply, the others a log; a wait for a tick would make all of them slow
		began := time.Now()
		e, err := Start(t.Context(), Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		quickest = min(quickest, time.Since(began))
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if quickest > 900*time.Millisecond {
		t.Errorf("started in %v, which is as long as a tick", quickest)
	}
}
