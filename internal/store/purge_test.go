// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPurge (RS-01): old files go, the newest stay.
func TestPurge(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{"wal", "snap"} {
		if err := os.MkdirAll(filepath.Join(dir, "member", folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 8 {
		for _, name := range []string{"wal/%016d.wal", "snap/%016d.snap"} {
			if err := os.WriteFile(filepath.Join(dir, "member", fmt.Sprintf(name, i)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := newPurge(dir, newCore(nil))
	p.start()
	p.stop() // the first round is run in any case
	for _, folder := range []string{"wal", "snap"} {
		left, err := os.ReadDir(filepath.Join(dir, "member", folder))
		if err != nil {
			t.Fatal(err)
		}
		if len(left) != 5 || !strings.Contains(left[0].Name(), "3.") {
			t.Errorf("%s: %v", folder, left)
		}
	}
}

// TestPurgeGoesOn (RS-01): want of file descriptors ends neither the purge nor etcd, which is not left to do it by itself.
func TestPurgeGoesOn(t *testing.T) {
	if c := configure(t.TempDir(), hardQuota(defaultQuota), newCore(nil), nil, url.URL{}, url.URL{}); c.MaxWalFiles != 0 || c.MaxSnapFiles != 0 {
		t.Errorf("etcd removes files by itself (%d, %d) and ends the process when it cannot", c.MaxWalFiles, c.MaxSnapFiles)
	}
	var out strings.Builder
	p := newPurge(t.TempDir(), newCore(slog.New(slog.NewTextHandler(&out, nil))))
	p.again = 1
	begun, round := make(chan struct{}, 2), 0
	p.going.Go(func() {
		p.keepOn(func() error {
			if round++; round <= 2 {
				begun <- struct{}{}
			}
			if round == 1 {
				return fmt.Errorf("open wal: %w", syscall.EMFILE)
			}
			return nil
		})
	})
	<-begun
	<-begun // the second round
	p.stop()
	if !strings.Contains(out.String(), errors.New("too many open files").Error()) {
		t.Errorf("logged: %s", out.String())
	}
}

// TestPurgeKeepsTheLog (RS-02, RS-07): while a snapshot is missing, nothing of the log goes; etcd holds no locks on what a start then needs.
// The next snapshot may be half written: only with the one after it is it known to be whole.
func TestPurgeKeepsTheLog(t *testing.T) {
	p := newPurge(t.TempDir(), newCore(nil))
	put := func(name string) {
		path := filepath.Join(p.member, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 8 {
		put(fmt.Sprintf("wal/%016x-%016x.wal", i, 100*i))
	}
	snapshot := func(term, index int) string { return fmt.Sprintf("snap/%016x-%016x.snap", term, index) }
	put(snapshot(2, 100)) // the last that was written
	p.missed(filepath.Join(p.member, snapshot(2, 600)))
	for _, step := range []struct {
		file string
		left int
	}{{snapshot(2, 500), 8}, {snapshot(2, 601), 8}, {"snap/db", 8}, {snapshot(3, 10), 5}} {
		put(step.file)
		if err := p.logs(); err != nil {
			t.Fatal(err)
		}
		left, err := os.ReadDir(filepath.Join(p.member, "wal"))
		if err != nil || len(left) != step.left {
			t.Errorf("with %s %d files of the log are left, want %d (%v)", step.file, len(left), step.left, err)
		}
	}
}
