// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/component-base/version"

	"github.com/wherryproject/wherry/internal/backup"
	"github.com/wherryproject/wherry/internal/release"
	"github.com/wherryproject/wherry/internal/server/hostapi"
	"github.com/wherryproject/wherry/internal/store/inspect"
)

// emptyDirs is where the emptyDir volumes of a pod lie below its folder.
const emptyDirs = "volumes/kubernetes.io~empty-dir"

// keyFiles are what of a data folder lets somebody be this server or act for it: its CA, keys, tokens and the logins at
// registries.
func keyFiles() []string { return []string{"pki", "config.json"} }

// backup writes a backup of this server, which goes on meanwhile.
func (s *Server) backup(ctx context.Context, to io.Writer, what hostapi.BackupParts) error {
	if s.opts.agentOnly() {
		return errors.New("this is an agent, which keeps no objects: back up the server that it belongs to")
	}
	if s.parts.etcd == nil {
		return errors.New("the store is an external etcd: back it up with its own tool (etcdctl snapshot save)")
	}
	folder := s.snapshotFolder()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return folderRefusal(s.opts.DataDir, err)
	}
	file := filepath.Join(folder, fmt.Sprintf(".%d.db", time.Now().UnixNano()))
	found, err := s.snapshot(ctx, file)
	if err != nil {
		return err
	}
	defer os.Remove(file)
	w, err := backup.NewWriter(to, backup.Header{Created: time.Now().UTC().Truncate(time.Second),
		Wherry: release.Version(), Kubernetes: version.Get().GitVersion, Node: s.opts.NodeName,
		Revision: found.Revision, Keys: what.Keys, Volumes: what.Volumes})
	if err != nil {
		return err
	}
	if err := w.Add(backup.StoreName, file); err != nil {
		return err
	}
	if what.Keys {
		if err := addKeys(w, s.opts.DataDir); err != nil {
			return err
		}
	}
	if what.Volumes {
		if err := addVolumes(ctx, w, filepath.Join(s.opts.DataDir, "pods")); err != nil {
			return err
		}
		if err := addClaims(ctx, w, claimsFolder(s.opts.DataDir)); err != nil {
			return err
		}
	}
	return w.Close()
}

// snapshot writes the store's database to a file and looks whether it is whole: a backup that cannot be restored is
// none.
func (s *Server) snapshot(ctx context.Context, file string) (inspect.Database, error) {
	folder := filepath.Dir(file)
	var fs syscall.Statfs_t
	if err := syscall.Statfs(folder, &fs); err != nil {
		return inspect.Database{}, folderRefusal(s.opts.DataDir, err)
	}
	if why := noRoom(fs.Bavail*uint64(fs.Bsize), fs.Blocks*uint64(fs.Bsize), uint64(s.parts.etcd.Size())); why != "" {
		return inspect.Database{}, fmt.Errorf("no room for a backup in %s: %s", folder, why)
	}
	if err := s.parts.etcd.Snapshot(file); err != nil {
		return inspect.Database{}, err
	}
	found, err := lookAt(ctx, s.opts.Inspector, file)
	if err == nil && found.Err != "" {
		err = fmt.Errorf("the store's database is damaged: %s: stop the server and restore a backup made before",
			found.Err)
	}
	if err != nil {
		os.Remove(file)
	}
	return found, err
}

// noRoom says why a disk has no room for a snapshot of a database of so many bytes and for packing it: a disk that is
// nearly full is for those who run on it. Empty: it has. (Pure.)
func noRoom(free, total, size uint64) string {
	need := 2*size + min(total/20, minFree)
	if free >= need {
		return ""
	}
	return fmt.Sprintf("%d MiB are free, %d MiB are needed", free>>20, need>>20)
}

// addKeys adds what of keyFiles there is.
func addKeys(w *backup.Writer, dataDir string) error {
	for _, name := range keyFiles() {
		err := w.AddTree(filepath.Join(backup.KeysDir, name), filepath.Join(dataDir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// addVolumes adds the pods' emptyDir volumes, but for those in memory.
func addVolumes(ctx context.Context, w *backup.Writer, pods string) error {
	volumes, err := filepath.Glob(filepath.Join(pods, "*", emptyDirs, "*"))
	if err != nil {
		return err
	}
	for _, v := range volumes {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if mounted(v, filepath.Dir(v)) {
			continue
		}
		uid, err := filepath.Rel(pods, filepath.Dir(filepath.Dir(filepath.Dir(v))))
		if err != nil {
			return err
		}
		if err := w.AddTree(filepath.Join(backup.VolumesDir, uid, filepath.Base(v)), v); err != nil &&
			!errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// claimsFolder is where the volumes are that claims of class wherry-local have.
func claimsFolder(dataDir string) string { return filepath.Join(dataDir, "volumes") }

// addClaims adds the volumes of claims. One that is removed meanwhile is left out, as is what begins with a dot: it is
// not finished yet, or on its way out.
func addClaims(ctx context.Context, w *backup.Writer, folder string) error {
	volumes, err := filepath.Glob(filepath.Join(folder, "[^.]*"))
	if err != nil {
		return err
	}
	for _, v := range volumes {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := w.AddTree(path.Join(backup.ClaimsDir, filepath.Base(v)), v); err != nil &&
			!errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// mounted reports whether another file system begins at path, below parent.
func mounted(path, parent string) bool {
	var a, b syscall.Stat_t
	return syscall.Lstat(path, &a) == nil && syscall.Lstat(parent, &b) == nil && a.Dev != b.Dev
}

func (s *Server) snapshotFolder() string { return s.opts.Snapshots.folder(s.opts.DataDir) }
