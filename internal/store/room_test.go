// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// RS-03: how much history goes, and when the file is rewritten and the alarm lifted.
func TestRoom(t *testing.T) {
	now := time.Unix(1e9, 0)
	marks := []mark{{now.Add(-10 * time.Minute), 10}, {now.Add(-5 * time.Minute), 20}, {now.Add(-time.Minute), 30}, {now.Add(-5 * time.Second), 40}}
	base := facts{now: now, rev: 50, quota: 3 << 30, hard: 4 << 30, diskFree: 100 << 30}
	for _, row := range []struct {
		name            string
		change          func(*facts)
		compact         int64
		rewrite, disarm bool
	}{
		{"history of five minutes is kept", func(f *facts) {}, 20, false, false},
		{"it is gone already", func(f *facts) { f.compacted = 20 }, 0, false, false},
		{"half full: less is kept", func(f *facts) { f.inUse, f.size = 2<<30, 2<<30 }, 30, false, false},
		{"full: nothing is kept", func(f *facts) { f.inUse, f.size = 3<<30, 3<<30 }, 50, false, false},
		{"full, and nothing was written since", func(f *facts) { f.inUse, f.size, f.compacted = 3<<30, 3<<30, 50 }, 0, false, false},
		{"an alarm, the file full of objects", func(f *facts) { f.inUse, f.size, f.alarm = 4<<30, 4<<30, true }, 50, false, false},
		{"an alarm, the file mostly empty", func(f *facts) { f.inUse, f.size, f.alarm = 1<<30, 4<<30, true }, 50, true, false},
		{"the same, no disk for a second file", func(f *facts) { f.inUse, f.size, f.alarm, f.diskFree = 1<<30, 4<<30, true, 1<<30 }, 50, false, false},
		{"an alarm, the file full but for a little", func(f *facts) { f.inUse, f.size, f.alarm = 4<<30-1, 5<<30, true }, 50, false, false},
		{"an alarm, room in the file's limit", func(f *facts) { f.inUse, f.size, f.alarm = 1<<30, 1<<30, true }, 50, false, true},
		{"the file has grown near the limit", func(f *facts) { f.inUse, f.size = 1<<30, 4<<30-1<<28 }, 20, true, false},
		{"a large file with room in it", func(f *facts) { f.inUse, f.size = 1<<30, 3<<30 }, 20, false, false},
	} {
		f := base
		row.change(&f)
		if c, r, d := f.compactTo(marks), f.rewrite(), f.disarm(); c != row.compact || r != row.rewrite || d != row.disarm {
			t.Errorf("%s: compact %d, rewrite %t, disarm %t", row.name, c, r, d)
		}
	}
}

// RS-03: as many marks are kept as five minutes need, and what was written before a time without writes goes too.
func TestMarks(t *testing.T) {
	now := time.Unix(1e9, 0)
	var marks []mark
	for i := range int64(3600) { // an hour of writes, looked at every second
		marks = remember(marks, facts{now: now.Add(time.Duration(i) * time.Second), rev: 2 + i})
	}
	if len(marks) > 62 {
		t.Errorf("%d marks", len(marks))
	}
	quiet := facts{now: now.Add(2 * time.Hour), rev: 3601, quota: 1 << 30}
	marks = remember(marks, quiet)
	if rev := quiet.compactTo(marks); rev < 3590 {
		t.Errorf("after an hour without a write history goes up to %d", rev)
	}
}

// small is a store of MinQuota whose keeper does nothing until its round is called.
func small(t *testing.T) (*Etcd, *clientv3.Client) {
	t.Helper()
	e, err := Start(t.Context(), Config{Dir: t.TempDir(), Quota: MinQuota, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	e.rest()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint()}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return e, c
}

// untilRefused puts values of a megabyte at the keys that name makes until etcd refuses them.
func untilRefused(t *testing.T, c *clientv3.Client, name func(int) string) {
	t.Helper()
	value := make([]byte, 1<<20)
	for i := range 100 {
		_, _ = rand.Read(value)
		switch _, err := c.Put(t.Context(), name(i), string(value)); {
		case errors.Is(err, rpctypes.ErrNoSpace):
			return
		case err != nil:
			t.Fatal(err)
		}
	}
	t.Fatal("100 MB in a store of 24 MiB")
}

// RS-03: a store that history has filled takes writes again by itself, with nothing deleted.
func TestFullOfHistory(t *testing.T) {
	e, c := small(t)
	untilRefused(t, c, func(int) string { return "same" })
	if why, _ := e.Full(); why == "" {
		t.Error("not said to be full")
	}
	e.keeper.round(t.Context())
	if _, err := c.Put(t.Context(), "k", "v"); err != nil {
		t.Errorf("after making room: %v", err)
	}
	if why, _ := e.Full(); why != "" {
		t.Error("still said to be full")
	}
}

// RS-03: a store full of objects takes deletions, and, once they are gone, everything. Old code: never again.
// ATTACK B10.
func TestFullOfObjects(t *testing.T) {
	e, c := small(t)
	untilRefused(t, c, func(i int) string { return fmt.Sprint("k/", i) })
	if _, soon := e.Full(); !soon {
		t.Error("nothing was tried, and it is said to be of no use")
	}
	e.keeper.round(t.Context())
	e.keeper.round(t.Context()) // the first drops history, of which there is none
	if why, soon := e.Full(); why == "" || soon {
		t.Errorf("all of it objects: %q, soon %t", why, soon)
	}
	if _, err := c.Delete(t.Context(), "k/", clientv3.WithPrefix()); err != nil {
		t.Fatalf("deletion: %v", err)
	}
	if why, soon := e.Full(); why == "" || !soon {
		t.Errorf("after the deletion: %q, soon %t", why, soon)
	}
	if len(e.keeper.nudge) == 0 {
		t.Error("who asked in vain has not had room made")
	}
	e.keeper.round(t.Context())
	if _, err := c.Put(t.Context(), "k", "v"); err != nil {
		t.Errorf("after the deletion: %v", err)
	}
}

// RS-03: a store whose alarm is from before takes writes as soon as it is started.
func TestAlarmFromBefore(t *testing.T) {
	var log bytes.Buffer
	dir := t.TempDir()
	e, err := Start(t.Context(), Config{Dir: dir, Quota: MinQuota})
	if err != nil {
		t.Fatal(err)
	}
	e.rest()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint()}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	untilRefused(t, c, func(int) string { return "same" })
	c.Close()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e, err = Start(t.Context(), Config{Dir: dir, Quota: MinQuota, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if c, err = clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint()}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()}); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Put(t.Context(), "k", "v"); err != nil {
		t.Errorf("%v\n%s", err, log.String())
	}
}

// RS-02: a store whose disk somebody else has filled asks for less to be written, and goes on taking what is written all the same. Old code:
// etcd gives up at the first write that its file has no room for.
func TestFullDiskTakesWrites(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: mounts a small tmpfs")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=300m"); err != nil {
		t.Skip("cannot mount a tmpfs here: ", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	e, err := Start(t.Context(), Config{Dir: filepath.Join(dir, "etcd"), Failed: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if why, _ := e.Full(); why != "" {
		t.Errorf("before: %s", why)
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint()}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fill, err := os.Create(filepath.Join(dir, "fill"))
	if err != nil {
		t.Fatal(err)
	}
	defer fill.Close()
	if _, err := io.Copy(fill, zeros{}); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	if why, soon := e.Full(); !strings.Contains(why, "disk") || !soon {
		t.Errorf("%q, soon %t", why, soon)
	}
	value := make([]byte, 1<<20)
	for i := range 20 {
		_, _ = rand.Read(value)
		if _, err := c.Put(t.Context(), fmt.Sprint(i), string(value)); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
	}
}

// TestHoldUpTo: RS-02 the store takes disk ahead where there is plenty, what others leave where there is little, and nothing of the last room.
func TestHoldUpTo(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct{ size, holds, free, want int64 }{
		"plenty":                     {10 * mib, 10 * mib, 1000 * mib, 42 * mib},
		"held already":               {10 * mib, 42 * mib, 0, 42 * mib},
		"more is held than is asked": {10 * mib, 60 * mib, 1000 * mib, 42 * mib},
		"just enough":                {10 * mib, 10 * mib, 48 * mib, 42 * mib},
		"little":                     {10 * mib, 10 * mib, 20 * mib, 14 * mib},
		"a disk that does not say":   {10 * mib, 40 * mib, math.MaxInt64, 42 * mib},
		"the last room":              {10 * mib, 10 * mib, 16 * mib, 0},
		"none":                       {10 * mib, 10 * mib, 0, 0},
	} {
		if got := (facts{size: c.size, diskFree: c.free}).holdUpTo(c.holds); got != c.want {
			t.Errorf("%s: %d MiB, want %d", name, got/mib, c.want/mib)
		}
	}
}
