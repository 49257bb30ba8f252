// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/wherryproject/wherry/internal/store/inspect"
)

// RS-14: a snapshot taken while the store runs has what was written before it and nothing that came after; what it restores to has an id
// of its own and higher revisions, and a watch from a revision of the former store is told to begin anew.
func TestSnapshotAndRestore(t *testing.T) {
	ctx := t.Context()
	e, c := start(t, filepath.Join(t.TempDir(), "etcd"))
	defer e.Close()
	defer c.Close()
	put := func(c *clientv3.Client, key string) int64 {
		t.Helper()
		r, err := c.Put(ctx, key, "v")
		if err != nil {
			t.Fatal(err)
		}
		return r.Header.Revision
	}
	put(c, "before")
	file := filepath.Join(t.TempDir(), "db")
	if err := e.Snapshot(file); err != nil {
		t.Fatal(err)
	}
	after := put(c, "after")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the snapshot's mode: %v, %v", info.Mode(), err)
	}
	if err := e.Snapshot(file); err == nil {
		t.Error("a snapshot replaced another file")
	}
	found := inspect.LookAtDatabase(file)
	if found.Err != "" || found.Revision == 0 || found.Revision >= after {
		t.Fatalf("the snapshot: %+v, written before revision %d", found, after)
	}

	dir := filepath.Join(t.TempDir(), "etcd")
	if err := Restore(file, dir); err != nil {
		t.Fatal(err)
	}
	if d := inspect.Judge(inspect.Look(dir)); d != nil {
		t.Errorf("a restored store is taken for damaged: %v", d)
	}
	e2, c2 := start(t, dir)
	defer e2.Close()
	defer c2.Close()
	for key, want := range map[string]int64{"before": 1, "after": 0} {
		if got, err := c2.Get(ctx, key); err != nil || got.Count != want {
			t.Errorf("%s: %d of it, want %d, %v", key, got.Count, want, err)
		}
	}
	if e2.Cluster() == e.Cluster() {
		t.Error("a restored store has the id of the one before")
	}
	if now := put(c2, "new"); now <= after {
		t.Errorf("revisions went back: %d after %d", now, after)
	}
	if r := <-c2.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(after)); r.CompactRevision == 0 {
		t.Errorf("a watch from the former store's revision %d goes on: %+v", after, r)
	}
}

// RS-07: a store that begins where another one was lost goes on above the revisions that clients have seen, and those list again.
func TestBegin(t *testing.T) {
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "etcd")
	const seen = 3_000_000_000 // as after a restore or two
	for range 2 {              // also after a crash in the middle of it, which leaves what it has made
		if err := Begin(ctx, dir, seen, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := filepath.Glob(dir + ".*"); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
	if d := inspect.Judge(inspect.Look(dir)); d != nil {
		t.Errorf("the store is taken for damaged: %v", d)
	}
	e, c := start(t, dir)
	defer e.Close()
	defer c.Close()
	got, err := c.Get(ctx, "", clientv3.WithPrefix())
	if err != nil || len(got.Kvs) > 0 {
		t.Fatalf("it is not empty: %v, %v", got, err)
	}
	put, err := c.Put(ctx, "key", "v")
	if err != nil || put.Header.Revision <= seen {
		t.Fatalf("revision %v, %v", put, err)
	}
	w := <-c.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(seen))
	if !errors.Is(w.Err(), rpctypes.ErrCompacted) {
		t.Errorf("a watch from what was seen: %v", w.Err())
	}
}
