// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/wherryproject/wherry/internal/store/inspect"
)

// cutEnd takes the last n bytes off what a log holds. Etcd writes its files with zeros to their full size before.
func cutEnd(path string, n int) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, int64(max(0, len(bytes.TrimRight(text, "\x00"))-n)))
}

// RS-07: a log that has lost its end is told by everything that shows it: the database, and what the log itself says was acknowledged. Only
// when nothing does the start goes on, and then with all that was written before.
// ATTACK C7.
func TestLogLosesItsEnd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	e, c := start(t, dir)
	const n = 200
	put := func(i int) {
		if _, err := c.Put(t.Context(), fmt.Sprintf("k%03d", i), strings.Repeat("v", 1000)); err != nil {
			t.Fatal(err)
		}
	}
	killed := filepath.Join(t.TempDir(), "etcd") // as after kill -9: a database that is some writes behind the log
	for i := range n {
		if i == n-20 {
			if err := os.MkdirAll(filepath.Join(killed, "member", "snap"), 0o700); err != nil {
				t.Fatal(err)
			}
			copyDatabase(t, e, inspect.DatabaseFile(killed))
		}
		put(i)
	}
	if err := os.CopyFS(filepath.Join(killed, "member", "wal"), os.DirFS(filepath.Join(dir, "member", "wal"))); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{"killed": killed, "ended in order": dir} {
		for _, cut := range []int{0, 1, 100, 700, 5000} {
			t.Run(fmt.Sprintf("%s, %d bytes", name, cut), func(t *testing.T) {
				at := filepath.Join(t.TempDir(), "etcd")
				if err := os.CopyFS(at, files{os.DirFS(from)}); err != nil {
					t.Fatal(err)
				}
				logs, err := filepath.Glob(filepath.Join(at, "member", "wal", "*.wal"))
				if err != nil || len(logs) != 1 {
					t.Fatal(logs, err)
				}
				if cut > 0 {
					if err := cutEnd(logs[0], cut); err != nil {
						t.Fatal(err)
					}
				}
				judgeCut(t, at, n, cut, name == "killed")
			})
		}
	}
}

// copyDatabase writes the database as it is now.
func copyDatabase(t *testing.T, e *Etcd, to string) {
	t.Helper()
	s := e.server.Server.Backend().Snapshot()
	defer s.Close()
	f, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.WriteTo(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// judgeCut starts a store of n keys whose log has lost so many bytes.
func judgeCut(t *testing.T, dir string, n, cut int, killed bool) {
	e, err := Start(t.Context(), Config{Dir: dir, Inspector: inspector(t)})
	var damage *DamageError
	switch {
	case errors.As(err, &damage):
		if cut == 0 || damage.Usable == "" || !strings.Contains(err.Error(), "has lost its end") && !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("%v (usable: %q)", err, damage.Usable)
		}
		t.Log(err)
		return
	case err != nil:
		t.Fatal(err)
	case cut > 700 && !killed: // several records that the database has
		t.Error("nobody says that the log has lost its end")
	}
	defer e.Close()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := c.Get(t.Context(), "k", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d keys", len(got.Kvs), n)
	for i, kv := range got.Kvs {
		if string(kv.Key) != fmt.Sprintf("k%03d", i) {
			t.Fatalf("key %d is %s: one before the cut is missing", i, kv.Key)
		}
	}
	if lost := n - len(got.Kvs); lost > 1+cut/1000 {
		t.Errorf("%d bytes were cut, and %d writes of 1000 bytes are lost", cut, lost)
	}
}

// RS-07: raft's snapshots, which only other members would need, are removed: the store starts and has everything.
// ATTACK C13.
func TestSnapshotsRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	e, c := start(t, dir)
	const writers, each = 16, 350 // more than etcd counts from one snapshot to the next
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				if _, err := c.Put(t.Context(), fmt.Sprintf("k%02d-%03d", w, i), "v"); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	c.Close()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	snapshots, err := filepath.Glob(filepath.Join(dir, "member", "snap", "*.snap"))
	if err != nil || len(snapshots) == 0 {
		t.Fatalf("no snapshots to remove: %v", err)
	}
	for _, s := range snapshots {
		if err := os.Remove(s); err != nil {
			t.Fatal(err)
		}
	}
	e, err = Start(t.Context(), Config{Dir: dir, Inspector: inspector(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if c, err = clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint()}}); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := c.Get(t.Context(), "k", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || got.Count != writers*each {
		t.Errorf("%d of %d keys: %v", got.Count, writers*each, err)
	}
}
