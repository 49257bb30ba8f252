// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

// Size is how many bytes the database has, which a snapshot takes too.
func (e *Etcd) Size() int64 { return e.server.Server.Backend().Size() }

// Cluster is the id of the store: a new one has its own, and so has one that was restored.
func (e *Etcd) Cluster() uint64 { return uint64(e.server.Server.Cluster().ID()) }

// Revision is that of the newest change.
func (e *Etcd) Revision() int64 { return e.server.Server.KV().Rev() }

// Snapshot writes the database as it is now to a new file that only its owner may read. Reads and writes go on
// meanwhile.
func (e *Etcd) Snapshot(path string) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return explain(filepath.Dir(path), err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(path)
		}
	}()
	s := e.server.Server.Backend().Snapshot()
	defer s.Close()
	if _, err := s.WriteTo(f); err != nil {
		return explain(filepath.Dir(path), err)
	}
	return f.Sync()
}

// revisionBump is by how much a restored store is ahead of its snapshot, so that no client sees a revision again that
// it had from the store before. A thousand changes a second take eleven days to use it up.
const revisionBump = 1_000_000_000

// Restore makes a store in dir, which must not exist, of a database file that is whole. It has an id of its own, its
// revisions go on far beyond those of the file, and all of them count as compacted: every client that watched lists
// again.
func Restore(database, dir string) error { return restore(database, dir, 0) }

// Begin makes an empty store in dir, where there was one that is lost, and whose revisions have been seen up to the one
// that is given. Those of the new one are far beyond it, so that clients of the lost one list again and see no revision
// twice.
func Begin(ctx context.Context, dir string, seen int64, log *slog.Logger) error {
	work := dir + ".new"
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.Mkdir(work, 0o700); err != nil {
		return explain(work, err)
	}
	e, err := Start(ctx, Config{Dir: filepath.Join(work, "empty"), Logger: log})
	if err != nil {
		return err
	}
	database := filepath.Join(work, "db")
	err = e.Snapshot(database)
	e.Close()
	if err != nil {
		return err
	}
	made := filepath.Join(work, "etcd")
	if err := restore(database, made, seen); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil { // a lock file at most
		return err
	}
	return os.Rename(made, dir)
}

func restore(database, dir string, seen int64) error {
	name, peer := memberName, advertisedPeer()
	err := snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: database, Name: name, OutputDataDir: dir, PeerURLs: []string{peer},
		InitialCluster: name + "=" + peer, InitialClusterToken: "wherry-" + rand.Text(), SkipHashCheck: true,
		RevisionBump: revisionBump + uint64(max(seen, 0)), MarkCompacted: true,
	})
	if err != nil {
		return fmt.Errorf("restore into %s: %w", dir, err)
	}
	return os.Chmod(dir, 0o700)
}
