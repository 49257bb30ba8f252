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

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/wherryproject/wherry/test/simulate/disk"
)

// RS-07: of a database of an ordinary size no page is asked for while a server runs: it goes on when the disk cannot read them any more.
func TestDatabaseIsKeptInMemory(t *testing.T) {
	d, dir := faulty(t)
	e, c := start(t, dir)
	for range 20 {
		if _, err := c.Put(t.Context(), "/registry/a", strings.Repeat("1", 100<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(c.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(e.database)
	if err != nil {
		t.Fatal(err)
	}
	e, c = start(t, dir)
	defer e.Close()
	defer c.Close()
	if err := d.Fail(disk.Faults{ReadFails: "db"}, 1); err != nil {
		t.Fatal(err)
	}
	m := mappingOf(e.database)
	if m == (mapping{}) {
		t.Fatal("the database is not found in this process's memory")
	}
	evict(mapping{m.from, m.from + uintptr(info.Size())})
	if r, err := c.Get(t.Context(), "/registry/a", clientv3.WithRev(10)); err != nil || len(r.Kvs) != 1 {
		t.Errorf("read with %v", err)
	}
}

// RS-07: a page of a larger database that the disk cannot read ends the store in words of the disk, and one that was cut off in words of that,
// where a request is answered.
func TestUnreadablePage(t *testing.T) {
	d, dir := faulty(t)
	failed := make(chan error, 2)
	newStore := func(name string) (*Etcd, []byte) {
		e := &Etcd{database: filepath.Join(dir, name), verdict: &verdict{dead: make(chan struct{}), fail: func(err error) { failed <- explain(dir, err) }}}
		if err := os.WriteFile(e.database, make([]byte, 64<<10), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(e.database)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		pages, err := unix.Mmap(int(f.Fd()), 0, 64<<10, unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Munmap(pages) })
		if err := forget(e.database); err != nil {
			t.Fatal(err)
		}
		return e, pages
	}
	e, pages := newStore("db")
	if err := d.Fail(disk.Faults{ReadFails: "db"}, 1); err != nil {
		t.Fatal(err)
	}
	var seen byte
	if _, err := e.answer(t.Context(), nil, nil, func(context.Context, any) (any, error) { seen = pages[40<<10]; return nil, nil }); err == nil {
		t.Fatal("it is read all the same: the test proves nothing", seen)
	}
	if err := <-failed; !errors.Is(err, ErrDiskFailed) || !strings.Contains(err.Error(), "read at 40960 of "+e.database+": input/output error") {
		t.Errorf("it gave up with: %v", err)
	}
	e, pages = newStore("cut")
	if err := os.Truncate(e.database, 8<<10); err != nil {
		t.Fatal(err)
	}
	if err := e.serve(nil, nil, nil, func(any, grpc.ServerStream) error { seen = pages[40<<10]; return nil }); err == nil {
		t.Fatal("it is read all the same: the test proves nothing", seen)
	}
	if err := <-failed; !strings.Contains(err.Error(), e.database+" was cut to 8192 bytes") {
		t.Errorf("it gave up with: %v", err)
	}
}

// What is not the database's is a fault as any other.
func TestOtherFaults(t *testing.T) {
	e := &Etcd{database: filepath.Join(t.TempDir(), "db"), verdict: &verdict{}}
	defer func() {
		if fmt.Sprint(recover()) != "another" {
			t.Error("a panic was swallowed")
		}
	}()
	_ = e.reading(func() { panic("another") })
}

// evict drops the pages of a mapping from memory, but those that are locked: the kernel refuses that with EINVAL, part by part.
func evict(m mapping) {
	for at := m.from; at < m.to; at += 4096 {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, at, 4096, unix.MADV_PAGEOUT)
	}
}

func TestFindMapping(t *testing.T) {
	const other = "00400000-00500000 r-xp 00000000 08:01 12  /usr/bin/wherry\n"
	for name, tc := range map[string]struct {
		maps string
		want mapping
	}{
		"none":           {other, mapping{}},
		"one":            {other + "7f0000000000-7f0000100000 r--s 00000000 00:2a 7  /data/a b/db\n7f0000100000-7f0000200000 rw-p 00000000 00:00 0\n", mapping{0x7f0000000000, 0x7f0000100000}},
		"locked in part": {"7f0000000000-7f0000001000 r--s 00000000 00:2a 7 /db\n7f0000001000-7f0000003000 r--s 00001000 00:2a 7 /db\n", mapping{0x7f0000000000, 0x7f0000003000}},
		"two":            {"7f0000000000-7f0000001000 r--s 00000000 00:2a 7 /db\n7f0000002000-7f0000003000 r--s 00000000 00:2b 7 /x\n", mapping{}},
		"two, one of the path": {"7f0000000000-7f0000001000 r--s 00000000 00:2a 7 /db\n7f0000002000-7f0000003000 r--s 00000000 00:2b 7      /data/a b/db\n" +
			"7f0000004000-7f0000005000 r--s 00000000 00:2c 7 /x\n", mapping{0x7f0000002000, 0x7f0000003000}},
		"not side by side":  {"7f0000000000-7f0000001000 r--s 00000000 00:2a 7 /db\n7f0000002000-7f0000003000 r--s 00002000 00:2a 7 /db\n", mapping{}},
		"not its beginning": {"7f0000001000-7f0000003000 r--s 00001000 00:2a 7 /db\n", mapping{}},
	} {
		if got := findMapping([]byte(tc.maps), 7, "/data/a b/db"); got != tc.want {
			t.Errorf("%s: %x, want %x", name, got, tc.want)
		}
	}
}
