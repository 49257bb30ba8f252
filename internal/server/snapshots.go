// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/wherryproject/wherry/internal/backup"
	"github.com/wherryproject/wherry/internal/server/hostapi"
)

// SnapshotOptions say which backups of the embedded store a server makes by itself.
type SnapshotOptions struct {
	Interval time.Duration // from one to the next, across restarts; 0: none are made
	Keep     int           // how many stay
	Dir      string        // empty: backup.Folder of the data folder
}

func defaultSnapshots() SnapshotOptions { return SnapshotOptions{Interval: 24 * time.Hour, Keep: 3} }

func (o SnapshotOptions) folder(dataDir string) string {
	if o.Dir != "" {
		return o.Dir
	}
	return backup.Folder(dataDir)
}

// minInterval keeps a typing error from filling the disk.
const minInterval = time.Second

func (o SnapshotOptions) validate() error {
	switch {
	case o.Interval != 0 && o.Interval < minInterval:
		return fmt.Errorf("--etcd-snapshot-interval: %s is too short; use %s or more, or 0 for no snapshots",
			o.Interval, minInterval)
	case o.Keep < 1:
		return fmt.Errorf("--etcd-snapshot-retention: %d; keep at least 1, or turn snapshots off with --etcd-snapshot-interval 0", o.Keep)
	}
	return nil
}

const (
	// snapshotSettle leaves a server that has just started its first minute for its pods.
	snapshotSettle = time.Minute
	// snapshotRetry is when a snapshot that failed is tried again: by then a disk may have room.
	snapshotRetry = time.Hour
)

// startSnapshots makes backups of the store from time to time, counted from the newest that there is.
func (s *Server) startSnapshots(context.Context) error {
	o := s.opts.Snapshots
	if o.Interval == 0 || s.parts.etcd == nil {
		return nil
	}
	s.parts.snapshots = spawn("snapshots", s.failed, func(ctx context.Context) error {
		at := time.Now().Add(min(snapshotSettle, o.Interval))
		for {
			if due := backup.Due(backup.List(s.snapshotFolder()), o.Interval, time.Now()); due.After(at) {
				at = due
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(time.Until(at)):
			}
			at = time.Now()
			if err := s.keepSnapshot(ctx); err != nil && ctx.Err() == nil {
				at = at.Add(min(snapshotRetry, o.Interval))
				s.log.Warn("cannot make a snapshot of the store", "err", err, "next", at.Format(time.RFC3339))
			}
		}
	})
	return nil
}

func (s *Server) stopSnapshots(ctx context.Context) error { return stopAll(ctx, s.parts.snapshots) }

// keepSnapshot makes one, and then removes those that are more than wanted.
func (s *Server) keepSnapshot(ctx context.Context) error {
	folder, began := s.snapshotFolder(), time.Now()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return folderRefusal(s.opts.DataDir, err)
	}
	sweepSnapshots(folder)
	path := filepath.Join(folder, backup.KeptName(began))
	if err := s.writeBackup(ctx, path); err != nil {
		return err
	}
	var errs []error
	for _, old := range backup.Surplus(backup.List(folder), s.opts.Snapshots.Keep) {
		errs = append(errs, os.Remove(old.Path))
	}
	s.log.Info("snapshot of the store made", "file", path, "took", time.Since(began).Round(time.Millisecond))
	return errors.Join(errs...)
}

// writeBackup writes a backup to a file that appears when it is whole.
func (s *Server) writeBackup(ctx context.Context, path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return folderRefusal(s.opts.DataDir, err)
	}
	err = s.backup(ctx, f, hostapi.BackupParts{})
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// sweepSnapshots removes what a server that was killed left half written.
func sweepSnapshots(folder string) {
	for _, pattern := range []string{".new-*", ".*.db"} {
		files, _ := filepath.Glob(filepath.Join(folder, pattern))
		for _, f := range files {
			if info, err := os.Stat(f); err == nil && time.Since(info.ModTime()) > snapshotRetry {
				os.Remove(f)
			}
		}
	}
}
