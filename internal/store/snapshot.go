// SPDX-License-Identifier: Apache-2.0

package store

import (
	"crypto/rand"
	"errors"
	"fmt"
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

// Snapshot writes the database as it is now to a new file that only its owner may read. Reads and writes go on meanwhile.
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

// revisionBump is by how much a restored store is ahead of its snapshot, so that no client sees a revision again that it had from the
// store before. A thousand changes a second take eleven days to use it up.
const revisionBump = 1_000_000_000

// Restore makes a store in dir, which must not exist, of a database file that is whole. It has an id of its own, its revisions go on far
// beyond those of the file, and all of them count as compacted: every client that watched lists again.
func Restore(database, dir string) error {
	name, peer := memberName, advertisedPeer()
	err := snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: database, Name: name, OutputDataDir: dir, PeerURLs: []string{peer}, InitialCluster: name + "=" + peer,
		InitialClusterToken: "wherry-" + rand.Text(), SkipHashCheck: true, RevisionBump: revisionBump, MarkCompacted: true,
	})
	if err != nil {
		return fmt.Errorf("restore into %s: %w", dir, err)
	}
	return os.Chmod(dir, 0o700)
}
