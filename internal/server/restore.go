// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/backup"
	"github.com/wherryproject/wherry/internal/store"
	"github.com/wherryproject/wherry/internal/store/inspect"
)

// RestoreOptions say what is restored, and into which data folder.
type RestoreOptions struct {
	DataDir   string
	File      string   // a backup, or the database file of a store
	Force     bool     // a store that is there may be replaced; it is kept under another name
	Keys      bool     // keys that are there may be replaced; they are kept under another name
	Inspector []string // as in Options
}

// Restored says what came of a restore.
type Restored struct {
	Header  *backup.Header // nil: a database file was restored
	Keys    bool           // the keys were restored
	Volumes int            // so many
	Stayed  []string       // volumes of claims that are here already, and stay as they are
	Kept    []string       // what was replaced, under its new name
}

// Restore puts a backup in the place of a server's store. No server may run on the data folder; its pods may, and the
// next server takes over those that the backup knows. Until everything is unpacked and verified nothing is changed.
func Restore(ctx context.Context, o RestoreOptions) (r Restored, err error) {
	if err := checkRoot(os.Geteuid(), "only root may restore a server's store"); err != nil {
		return r, err
	}
	if err := makeFolder(o.DataDir); err != nil {
		return r, err
	}
	held, err := lockFolder(o.DataDir)
	if err != nil {
		if refusal, ok := errors.AsType[*Refusal](err); ok && refusal.Code == ExitFolderLocked {
			refusal.Do = "stop it first, then restore; its pods keep running"
		}
		return r, err
	}
	defer held.release()
	if err := mayReplace(o); err != nil {
		return r, err
	}
	work, err := os.MkdirTemp(o.DataDir, ".restore-")
	if err != nil {
		return r, folderRefusal(o.DataDir, err)
	}
	defer os.RemoveAll(work)
	if r.Header, err = unpack(o.File, work); err != nil {
		return r, err
	}
	database := filepath.Join(work, backup.StoreName)
	found, err := lookAt(ctx, o.Inspector, database)
	if err != nil {
		return r, err
	}
	if !found.Exists || found.Err != "" || found.Revision == 0 {
		return r,
			fmt.Errorf("%s cannot be restored: its database is damaged or empty (%s): nothing was changed; choose another backup", o.File, found.Err)
	}
	fresh := filepath.Join(work, "etcd")
	if err := store.Restore(database, fresh); err != nil {
		return r, err
	}
	if err := markRestored(fresh, o.File); err != nil {
		return r, err
	}
	return r, o.install(work, &r)
}

func lookAt(ctx context.Context, inspector []string, file string) (inspect.Database, error) {
	if len(inspector) == 0 {
		return inspect.LookAtDatabase(file), nil
	}
	return inspect.Apart(ctx, inspector, file)
}

// mayReplace refuses to take a store away that nobody has given up.
func mayReplace(o RestoreOptions) error {
	dir := filepath.Join(o.DataDir, "etcd")
	if _, err := os.Stat(filepath.Join(dir, "member")); err != nil || o.Force {
		return nil
	}
	return &Refusal{Code: ExitStore, What: fmt.Sprintf("there is a store in %s already", dir),
		Do: "to replace it, give --force: it is kept beside it under another name; nothing was changed"}
}

// unpack fills a folder from a backup, or from a database file, which any etcd snapshot is.
func unpack(file, into string) (*backup.Header, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h, err := backup.Unpack(f, into)
	switch {
	case err == nil:
		return &h, nil
	case !errors.Is(err, backup.ErrNot):
		return nil, fmt.Errorf("%s %w: nothing was changed; choose another backup", file, err)
	}
	if !isDatabase(f) {
		return nil, fmt.Errorf("%s %w, nor an etcd database or snapshot: nothing was changed", file, err)
	}
	to, err := os.OpenFile(filepath.Join(into, backup.StoreName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(to, io.NewSectionReader(f, 0, 1<<62))
	return nil, errors.Join(err, to.Close())
}

// isDatabase recognizes a bbolt file by its magic number, in either of the pages that say where the rest is.
func isDatabase(f io.ReaderAt) bool {
	for _, at := range []int64{16, 4096 + 16} {
		magic := make([]byte, 4)
		if _, err := f.ReadAt(magic, at); err == nil && string(magic) == "\xed\xda\x0c\xed" {
			return true
		}
	}
	return false
}

// install moves what was unpacked to its place. What was there is kept.
func (o RestoreOptions) install(work string, r *Restored) error {
	claims, err := stageClaims(work, claimsFolder(o.DataDir))
	if err != nil {
		return fmt.Errorf("volumes of claims: %w: nothing was changed", err)
	}
	defer claims.discard()
	place := placing{work: work, stamp: ".before-" + time.Now().UTC().Format("20060102T150405Z"), restored: r}
	errs := []error{claims.install(r)}
	for _, name := range keyFiles() {
		done, err := place.put(filepath.Join(backup.KeysDir, name), filepath.Join(o.DataDir, name), o.Keys)
		errs = append(errs, err)
		r.Keys = r.Keys || done
	}
	volumes, err := filepath.Glob(filepath.Join(work, backup.VolumesDir, "*", "*"))
	errs = append(errs, err)
	for _, v := range volumes {
		name, err := filepath.Rel(work, v)
		if err != nil {
			return err
		}
		to := filepath.Join(o.DataDir, "pods", filepath.Base(filepath.Dir(v)), emptyDirs)
		if err := os.MkdirAll(to, 0o750); err != nil {
			return err
		}
		done, err := place.put(name, filepath.Join(to, filepath.Base(v)), false) // a pod that is there has newer ones
		errs = append(errs, err)
		if done {
			r.Volumes++
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(o.DataDir, "etcd", "member")); err != nil {
		if err := os.RemoveAll(filepath.Join(o.DataDir, "etcd")); err != nil { // a lock file at most
			return err
		}
	}
	_, err = place.put("etcd", filepath.Join(o.DataDir, "etcd"), true) // last: with it, the restore is done
	return err
}

// placing puts what was unpacked where it belongs.
type placing struct {
	work     string // where it was unpacked
	stamp    string // ends the name of what was there before
	restored *Restored
}

// put moves one of the backup's names to its place, if it is in the backup. What is there stays, or is replaced and
// kept under another name.
func (p placing) put(name, to string, replace bool) (done bool, err error) {
	from := filepath.Join(p.work, name)
	if _, err := os.Lstat(from); err != nil {
		return false, nil // not in this backup
	}
	if _, err := os.Lstat(to); err == nil {
		if !replace {
			return false, nil
		}
		was := unused(to + p.stamp)
		if err := exchange(from, to); err != nil {
			return false, fmt.Errorf("putting %s in its place: %w", to, err)
		}
		if err := os.Rename(from, was); err != nil { // what was there must not go with the working folder
			return false, errors.Join(err, exchange(from, to))
		}
		p.restored.Kept = append(p.restored.Kept, was)
		return true, nil
	}
	return true, os.Rename(from, to)
}

// exchange swaps two paths in one step, so that a power cut leaves one or the other.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// unused is a path that nothing has: a second restore within a second keeps what it replaces, too.
func unused(path string) string {
	name := path
	for i := 2; ; i++ {
		if _, err := os.Lstat(name); err != nil {
			return name
		}
		name = fmt.Sprintf("%s-%d", path, i)
	}
}
