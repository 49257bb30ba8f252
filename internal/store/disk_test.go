// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"

	"github.com/wherryproject/wherry/test/simulate/disk"
)

// faulty is a disk that fails when it is told to, and a folder on it.
func faulty(t *testing.T) (*disk.Disk, string) {
	t.Helper()
	d, err := disk.Start(t.Output())
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := d.Mount(dir); err != nil {
		t.Fatal(err)
	}
	return d, dir
}

// RS-07: after a sync that failed, the log is what the disk has of it, not what the kernel still has in its memory: what a start took from there
// would be gone with the next loss of power, and with it everything that was written after it.
func TestLogIsReadFromTheDisk(t *testing.T) {
	d, dir := faulty(t)
	if err := os.MkdirAll(filepath.Join(dir, "member", "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "member", "wal", "0.wal")
	if err := os.WriteFile(path, bytes.Repeat([]byte("o"), 32<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := errors.Join(f.Sync(), d.Fail(disk.Faults{SyncFails: ".wal"}, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bytes.Repeat([]byte("n"), 32<<10), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("the sync was to fail: %v", err)
	}
	if seen, err := os.ReadFile(path); err != nil || bytes.Contains(seen, []byte("o")) {
		t.Fatalf("the kernel has dropped it by itself, and the test proves nothing (%v)", err)
	}
	if err := forgetLog(dir); err != nil {
		t.Fatal(err)
	}
	if seen, err := os.ReadFile(path); err != nil || !bytes.Contains(seen, []byte("o")) {
		t.Errorf("the log is read as it never reached the disk (%v)", err)
	}
}

// RS-07: a disk that cannot be read is not taken for a damaged store, of which a backup would have to be restored; when it can be read again,
// everything is there.
func TestUnreadableDisk(t *testing.T) {
	d, dir := faulty(t)
	put := func() error {
		e, c := start(t, dir)
		_, err := c.Put(t.Context(), "/registry/a", "1")
		return errors.Join(err, c.Close(), e.Close())
	}
	if err := put(); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{".wal", "db"} {
		if err := errors.Join(d.Kill(), d.Remount(), d.Fail(disk.Faults{ReadFails: file}, 1)); err != nil {
			t.Fatal(err)
		}
		e, err := Start(t.Context(), Config{Dir: dir, Inspector: inspector(t)})
		var damage *DamageError
		if !errors.Is(err, ErrDiskFailed) || errors.As(err, &damage) || !strings.Contains(err.Error(), "input/output error") {
			t.Errorf("%s cannot be read: %v", file, err)
		}
		if err == nil {
			e.Close()
		}
	}
	if err := errors.Join(d.Kill(), d.Remount()); err != nil {
		t.Fatal(err)
	}
	if err := put(); err != nil {
		t.Error(err)
	}
}

// RS-07: a sync that fails ends etcd with words of the disk; what was acknowledged before is there after a loss of power.
func TestFailedSync(t *testing.T) {
	d, dir := faulty(t)
	failed := make(chan error, 1)
	e, err := Start(t.Context(), Config{Dir: dir, Failed: func(err error) { failed <- err }})
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, e)
	if _, err := c.Put(t.Context(), "/registry/a", "1"); err != nil {
		t.Fatal(err)
	}
	if err := d.Fail(disk.Faults{SyncFails: ".wal"}, 1); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = c.Put(t.Context(), "/registry/a", "2") }() // is never answered
	select {
	case err := <-failed:
		if !errors.Is(err, ErrDiskFailed) || !strings.Contains(err.Error(), dir) {
			t.Errorf("it gave up with: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it did not give up")
	}
	if err := errors.Join(d.PowerOff(disk.LoseSome, 1), c.Close()); err != nil {
		t.Fatal(err)
	}
	_ = e.Close() // says again why it gave up
	if err := d.Remount(); err != nil {
		t.Fatal(err)
	}
	e, c = start(t, dir)
	defer e.Close()
	defer c.Close()
	if r, err := c.Get(t.Context(), "/registry/a"); err != nil || len(r.Kvs) != 1 || string(r.Kvs[0].Value) < "1" {
		t.Errorf("what was acknowledged is %v (%v)", r, err) // the other may be there or not
	}
}

// RS-02: a snapshot that finds no room on a full disk ends nothing, neither under a server that is running nor under one that starts: etcd goes
// on without it, and takes the next when there is room. What was acknowledged meanwhile is there after a start, without the snapshots too.
func TestSnapshotOnAFullDisk(t *testing.T) {
	d, dir := faulty(t)
	const every = 20
	n := 0
	life := func(full bool) {
		i, err := StartInside(t.Context(), Config{Dir: dir, Failed: func(err error) { t.Errorf("the store gave up: %v", err) }}, InsideOptions{SnapshotCount: every})
		if err != nil {
			t.Fatal(err)
		}
		defer i.Stop()
		c := v3client.New(i.Server)
		defer c.Close()
		if r, err := c.Get(t.Context(), "/registry/a"); err != nil || n > 0 && (len(r.Kvs) != 1 || string(r.Kvs[0].Value) != fmt.Sprint(n)) {
			t.Fatalf("after %d writes a start finds %v (%v)", n, r, err)
		}
		if err := d.Fail(disk.Faults{Full: full}, 1); err != nil {
			t.Fatal(err)
		}
		for range 4 * every {
			n++
			if _, err := c.Put(t.Context(), "/registry/a", fmt.Sprint(n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	snapshots := func() int {
		names, err := filepath.Glob(filepath.Join(dir, "member", "snap", "*.snap"))
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	life(true)
	life(true)
	if n := snapshots(); n > 0 {
		t.Fatalf("the disk had room for %d snapshots: the test proves nothing", n)
	}
	life(false)
	if snapshots() == 0 {
		t.Error("with room again, no snapshot was taken")
	}
	life(false)
}

// RS-02: a log whose last write was cut off, and which a full disk leaves no room to mend, is not damaged: the disk is full.
func TestNoRoomToMend(t *testing.T) {
	d, dir := faulty(t)
	e, c := start(t, dir)
	if _, err := c.Put(t.Context(), "/registry/a", "1"); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	if err := errors.Join(cutEnd(logs[0], 1), d.Fail(disk.Faults{Full: true}, 1)); err != nil {
		t.Fatal(err)
	}
	// It goes on after it gave up, on a disk that is not there for others any more: there its log can be mended.
	_, err = StartInside(t.Context(), Config{Dir: dir, Failed: func(error) {
		if err := d.Kill(); err != nil {
			t.Error(err)
		}
	}}, InsideOptions{})
	if !errors.Is(err, ErrDiskFull) {
		t.Errorf("without room to mend: %v", err)
	}
	if err := d.Remount(); err != nil {
		t.Fatal(err)
	}
	if err := d.Fail(disk.Faults{}, 1); err != nil {
		t.Fatal(err)
	}
	e, c = start(t, dir)
	defer e.Close()
	defer c.Close()
	if r, err := c.Get(t.Context(), "/registry/a"); err != nil || len(r.Kvs) != 1 {
		t.Errorf("with room again: %v (%v)", r, err)
	}
}
