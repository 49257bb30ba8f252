// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/backup"
)

// stagedClaims are the volumes of claims of a backup, on the file system that they go to.
type stagedClaims struct {
	from   string   // folder that has them
	names  []string // those that are to be put in place
	stayed []string // paths of those that are there already
	folder string   // where they go
	extra  string   // folder that was made for them, to be removed; "": none
}

// stageClaims makes ready what installing the volumes of claims only has to rename, before anything is changed: the
// folder of volumes may be a file system of its own, to which nothing can be moved. A volume that is there stays: it
// has what was written since the backup, and only its owner can say which of the two is wanted.
func stageClaims(work, folder string) (s *stagedClaims, err error) {
	s = &stagedClaims{from: filepath.Join(work, backup.ClaimsDir), folder: folder}
	entries, err := os.ReadDir(s.from)
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o711); err != nil {
		return nil, err
	}
	for _, e := range entries {
		at := filepath.Join(folder, e.Name())
		if _, err := os.Lstat(at); err == nil {
			s.stayed = append(s.stayed, at)
		} else {
			s.names = append(s.names, e.Name())
		}
	}
	if len(s.names) == 0 || sameFileSystem(work, folder) {
		return s, nil
	}
	if err := s.copy(); err != nil {
		s.discard()
		return nil, err
	}
	return s, nil
}

// copy brings them to the file system of the folder, as they are brought from one machine to another. The name is that
// of a volume which is not finished: the next server removes it if this is cut off.
func (s *stagedClaims) copy() (err error) {
	if s.extra, err = os.MkdirTemp(s.folder, ".new-restore-"); err != nil {
		return err
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(s.pack(w)) }()
	_, err = backup.Unpack(r, s.extra)
	r.CloseWithError(err) // ends the other side, if it has not ended
	s.from = filepath.Join(s.extra, backup.ClaimsDir)
	return err
}

func (s *stagedClaims) pack(to io.Writer) error {
	w, err := backup.NewWriter(to, backup.Header{Volumes: true})
	if err != nil {
		return err
	}
	for _, name := range s.names {
		if err := w.AddTree(path.Join(backup.ClaimsDir, name), filepath.Join(s.from, name)); err != nil {
			return err
		}
	}
	return w.Close()
}

// install puts them in place.
func (s *stagedClaims) install(r *Restored) error {
	r.Stayed = s.stayed
	for _, name := range s.names {
		if err := os.Rename(filepath.Join(s.from, name), filepath.Join(s.folder, name)); err != nil {
			return fmt.Errorf("volume %s: %w", name, err)
		}
		r.Volumes++
	}
	return nil
}

// discard removes what was made for them only.
func (s *stagedClaims) discard() {
	if s.extra != "" {
		os.RemoveAll(s.extra)
	}
}

func sameFileSystem(a, b string) bool {
	var x, y unix.Stat_t
	return unix.Stat(a, &x) == nil && unix.Stat(b, &y) == nil && x.Dev == y.Dev
}
