// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/wherryproject/wherry/internal/store/inspect"
	"github.com/wherryproject/wherry/test/simulate/disk"
)

// childWord makes the test program read a database file instead of running tests.
const childWord = "look-at-database"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == disk.ChildWord {
		if err := disk.Child(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 3 && os.Args[1] == childWord {
		if err := inspect.Child(os.Stdout, os.Args[2]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func inspector(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, childWord}
}

// written makes a store with objects in it that ended in order.
func written(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "etcd")
	e, c := start(t, dir)
	for i := range 300 {
		if _, err := c.Put(t.Context(), fmt.Sprintf("/registry/configmaps/default/c%03d", i), strings.Repeat("v", 2000)); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// RS-07, RS-08: every damage to a store's files ends its start with words that name the file, say what is lost and, where the objects
// are still there, which file has them; in time, and without ending the process.
// ATTACK C8, C9, C10, C11, C12.
func TestDamage(t *testing.T) {
	whole := written(t)
	db, wals := inspect.DatabaseFile(""), filepath.Join("member", "wal")
	firstWAL := func(t *testing.T, dir string) string {
		files, err := filepath.Glob(filepath.Join(dir, wals, "*.wal"))
		if err != nil || len(files) == 0 {
			t.Fatal("no log: ", err)
		}
		return files[0]
	}
	for name, tc := range map[string]struct {
		harm   func(t *testing.T, dir string) error
		want   []string // in the words
		usable bool     // the database
	}{
		"log removed": {func(t *testing.T, dir string) error { return os.Remove(firstWAL(t, dir)) },
			[]string{wals, "holds no log", "last moments"}, true},
		"log's folder removed": {func(_ *testing.T, dir string) error { return os.RemoveAll(filepath.Join(dir, wals)) },
			[]string{wals, "holds no log"}, true},
		"log emptied": {func(t *testing.T, dir string) error { return os.Truncate(firstWAL(t, dir), 0) },
			[]string{".wal is empty"}, true},
		"log cut at its beginning": {func(t *testing.T, dir string) error { return os.Truncate(firstWAL(t, dir), 100) },
			[]string{wals}, true},
		"log cut in the middle": {func(t *testing.T, dir string) error { return os.Truncate(firstWAL(t, dir), 300_000) },
			[]string{wals, "has lost its end", "last moments"}, true},
		"log corrupt in the middle": {func(t *testing.T, dir string) error { return overwrite(firstWAL(t, dir), 300_000, 64) },
			[]string{wals}, true},
		"log corrupt at its beginning": {func(t *testing.T, dir string) error { return overwrite(firstWAL(t, dir), 0, 64) },
			[]string{wals}, true},
		"log overwritten by zeros from the middle": {func(t *testing.T, dir string) error { return zero(firstWAL(t, dir), 300_000) },
			[]string{wals, "has lost its end"}, true},
		"database removed": {func(_ *testing.T, dir string) error { return os.Remove(filepath.Join(dir, db)) },
			[]string{db, "is missing", "all objects"}, false},
		"database emptied": {func(_ *testing.T, dir string) error { return os.Truncate(filepath.Join(dir, db), 0) },
			[]string{db, "is empty", "all objects"}, false},
		"database cut": {func(_ *testing.T, dir string) error { return os.Truncate(filepath.Join(dir, db), 64<<10) },
			[]string{db, "is damaged", "objects"}, false},
		"database cut to one page": {func(_ *testing.T, dir string) error { return os.Truncate(filepath.Join(dir, db), 4096) },
			[]string{db, "is damaged"}, false},
		"database's pages overwritten": {func(_ *testing.T, dir string) error { return garblePages(filepath.Join(dir, db)) },
			[]string{db, "is damaged"}, false},
		"database's beginning overwritten": {func(_ *testing.T, dir string) error { return overwrite(filepath.Join(dir, db), 0, 8192) },
			[]string{db, "is damaged"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "etcd")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			if err := tc.harm(t, dir); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
			defer cancel()
			_, err := Start(ctx, Config{Dir: dir, Inspector: inspector(t)})
			var damage *DamageError
			if !errors.As(err, &damage) {
				t.Fatalf("got %v, want words about damage", err)
			}
			t.Log(err)
			for _, w := range append(tc.want, dir) {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not in: %v", w, err)
				}
			}
			if usable := damage.Usable != ""; usable != tc.usable {
				t.Errorf("usable: %q, want %v", damage.Usable, tc.usable)
			}
		})
	}
}

// RS-07: a store that ended in the middle of anything is no damage: it starts, and has what was acknowledged.
func TestNoDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	e, c := start(t, dir)
	if _, err := c.Put(t.Context(), "k", "v"); err != nil {
		t.Fatal(err)
	}
	killed := filepath.Join(t.TempDir(), "etcd") // as after kill -9: what is on the disk now
	if err := os.CopyFS(killed, files{os.DirFS(dir)}); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e, c = start(t, killed)
	defer e.Close()
	defer c.Close()
	got, err := c.Get(t.Context(), "k")
	if err != nil || len(got.Kvs) != 1 {
		t.Errorf("after a kill: %v, %v", got, err)
	}
}

// RS-07: a first start that was killed when etcd had made its log, and had not written anything into it, is no damage either. Etcd would wait
// for the members that the log does not name, for ever. So is one whose files were being removed for that reason when it was killed.
func TestKilledWhileItWasMade(t *testing.T) {
	whole := written(t)
	metadata, err := proto.Marshal(&etcdserverpb.Metadata{NodeID: new(uint64(7)), ClusterID: new(uint64(8))})
	if err != nil {
		t.Fatal(err)
	}
	for _, database := range []bool{true, false} {
		dir := filepath.Join(t.TempDir(), "etcd")
		logs := filepath.Join(dir, "member", "wal")
		if err := os.MkdirAll(filepath.Dir(inspect.DatabaseFile(dir)), 0o700); err != nil {
			t.Fatal(err)
		}
		if database {
			db, err := bolt.Open(inspect.DatabaseFile(dir), 0o600, nil)
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
		}
		w, err := wal.Create(zap.NewNop(), logs, metadata)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var damage *DamageError
		if _, err := Start(t.Context(), Config{Dir: dir, Inspector: inspector(t), Had: true}); !errors.As(err, &damage) {
			t.Errorf("where there was a store: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		e, err := Start(ctx, Config{Dir: dir, Inspector: inspector(t)})
		cancel()
		if err != nil {
			t.Fatalf("with a database: %v: %v", database, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	if inspect.Unborn(inspect.Look(whole)) {
		t.Error("a store with objects would be removed")
	}
}

// RS-08: a start that is given up ends, whatever etcd is waiting for. Here a log that etcd never ends by itself: the check before is left out.
func TestStartIsGivenUp(t *testing.T) {
	dir := written(t)
	if err := os.RemoveAll(filepath.Join(dir, "member", "wal")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	e := &Etcd{log: newCore(nil), verdict: &verdict{dead: make(chan struct{}), fail: func(error) {}}}
	client, peer, err := e.sockets(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.open(ctx, dir, configure(dir, hardQuota(defaultQuota), e.log, e.verdict, client, peer)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	e.Close() // which hung
}
