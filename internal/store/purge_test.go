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

	"go.uber.org/zap"
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
	startPurge(dir, newCore(nil)).stop() // the first round is run in any case
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
	p := &purge{again: 1, done: make(chan struct{})}
	begun := make(chan struct{}, 10)
	round := 0
	p.going.Go(func() {
		p.keepOn(zap.New(newCore(slog.New(slog.NewTextHandler(&out, nil)))), func() (<-chan struct{}, <-chan error) {
			ended, failed := make(chan struct{}), make(chan error, 1)
			if round++; round == 1 {
				failed <- fmt.Errorf("open wal: %w", syscall.EMFILE)
				close(ended)
			} else {
				go func() { <-p.done; close(ended) }()
			}
			begun <- struct{}{}
			return ended, failed
		})
	})
	<-begun
	<-begun // the second round
	p.stop()
	if !strings.Contains(out.String(), errors.New("too many open files").Error()) {
		t.Errorf("logged: %s", out.String())
	}
}
