// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// Look reads the files of a store in etcd's folder dir. A damaged database may end the process: see [Apart].
func Look(dir string) Facts {
	f := Facts{Dir: dir, Log: lookAtLog(dir)}
	f.DB = LookAtDatabase(DatabaseFile(dir))
	return f
}

// lookAtLog reads the log as etcd would. It does not need to be apart: etcd's readers return errors, or panic in this
// goroutine.
func lookAtLog(dir string) (l Log) {
	defer func() {
		if r := recover(); r != nil {
			l.Err = fmt.Sprint(r)
		}
	}()
	files, err := filepath.Glob(filepath.Join(logDir(dir), "*.wal"))
	if err != nil || len(files) == 0 {
		return l
	}
	l.Files = len(files)
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.Size() == 0 {
			l.Empty = file
			return l
		}
	}
	if err := l.read(logDir(dir)); err != nil {
		l.Err = err.Error()
	}
	return l
}

func (l *Log) read(dir string) error {
	quiet := zap.NewNop()
	snaps, err := wal.ValidSnapshotEntries(quiet, dir)
	if err != nil {
		return err
	}
	newest := &walpb.Snapshot{}
	if len(snaps) > 0 {
		newest = snaps[len(snaps)-1]
	}
	w, err := wal.OpenForRead(quiet, dir, newest)
	if err != nil {
		return err
	}
	defer w.Close()
	metadata, state, entries, err := w.ReadAll()
	if err != nil {
		return err
	}
	if metadata == nil { // etcd would follow the nil
		return errors.New("its beginning is missing")
	}
	var who etcdserverpb.Metadata
	if err := proto.Unmarshal(metadata, &who); err != nil {
		return fmt.Errorf("its beginning cannot be read: %w", err)
	}
	l.Cluster, l.Snapshot, l.Last, l.Commit = who.GetClusterID(), newest.GetIndex(), newest.GetIndex(),
		state.GetCommit()
	if n := len(entries); n > 0 {
		l.Last = entries[n-1].GetIndex()
	}
	return nil
}

// lockPatience is how long another process may keep the database from being looked at.
const lockPatience = 2 * time.Second

// LookAtDatabase reads a database file: every page, every key. A damaged one may end the process: see [Apart].
func LookAtDatabase(path string) (d Database) {
	defer func() {
		if r := recover(); r != nil {
			d.Err = fmt.Sprint(r)
		}
	}()
	info, err := os.Stat(path)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			d.Exists, d.Err = true, err.Error()
		}
		return d
	}
	d.Exists, d.Size = true, info.Size()
	if d.Size == 0 {
		return d
	}
	// Etcd's database has no list of its free pages: loading it walks the whole tree, pages, their types and the order
	// of their keys.
	db, err := bolt.Open(path, 0o400, &bolt.Options{ReadOnly: true, PreLoadFreelist: true, Timeout: lockPatience})
	if errors.Is(err, bolterrors.ErrTimeout) {
		d.Busy = true
		return d
	}
	if err == nil {
		defer db.Close()
		err = db.View(d.read)
	}
	if err != nil {
		d.Err = err.Error()
	}
	return d
}

func (d *Database) read(tx *bolt.Tx) error {
	meta := tx.Bucket(schema.Meta.Name())
	if meta == nil {
		return nil // nothing was ever written
	}
	if v := meta.Get(schema.MetaConsistentIndexKeyName); len(v) == 8 {
		d.Applied = binary.BigEndian.Uint64(v)
	}
	d.Cluster = member(tx)
	keys := tx.Bucket(schema.Key.Name())
	if keys == nil {
		return nil
	}
	return keys.ForEach(func(k, v []byte) error {
		if len(k) < len(mvcc.NewRevBytes()) {
			return fmt.Errorf("revision %x cannot be read", k)
		}
		revision := mvcc.BytesToBucketKey(k)
		var kv mvccpb.KeyValue
		if err := proto.Unmarshal(v, &kv); err != nil {
			return fmt.Errorf("the object of revision %d cannot be read: %w", revision.Main, err)
		}
		d.Revision = max(d.Revision, revision.Main)
		d.Keys++
		return nil
	})
}

// member is the id of the only member, which etcd derives from the cluster's token and keeps for ever. 0: none yet.
func member(tx *bolt.Tx) (id uint64) {
	bucket := tx.Bucket(schema.Members.Name())
	if bucket == nil {
		return 0
	}
	_ = bucket.ForEach(func(_, v []byte) error {
		var m struct {
			ID uint64 `json:"id"`
		}
		if json.Unmarshal(v, &m) == nil {
			id = m.ID
		}
		return nil
	})
	return id
}

// oneLine is the first line of what a dying process printed that means something to a reader.
func oneLine(words string) string {
	for line := range strings.Lines(words) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "panic: "); ok {
			return rest
		}
		if strings.HasPrefix(line, "fatal error: ") || strings.Contains(line, "SIGBUS") ||
			strings.Contains(line, "SIGSEGV") || strings.HasPrefix(line, "unexpected fault") {
			return "it is shorter than it says, or the disk cannot read it"
		}
	}
	return ""
}
