// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/wherryproject/wherry/internal/datadir"
	"github.com/wherryproject/wherry/internal/filelock"
)

// stampName is the file in a data folder that says whose folder it is, and which program wrote it last.
const stampName = "version"

// format is the version of the data folder's layout. Raise it when an older program can no longer use the folder.
const format = 1

// makeFolder creates the data folder. It is open for passing through, not for listing: files inside have modes of their
// own.
func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return folderRefusal(dir, err)
	}
	return nil
}

func folderRefusal(dir string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return &Refusal{Code: ExitDiskFull, What: fmt.Sprintf("no space left for the data folder %s", dir),
			Do: "free some space or choose another --data-dir", Err: err}
	case errors.Is(err, os.ErrPermission):
		return &Refusal{Code: ExitFolder, What: fmt.Sprintf("the data folder %s cannot be written", dir),
			Do: "run it with sudo, or choose another --data-dir", Err: err}
	}
	return &Refusal{Code: ExitFolder, What: fmt.Sprintf("the data folder %s cannot be used", dir),
		Do: "choose another --data-dir", Err: err}
}

// lock is the hold of one server on its data folder. The kernel lets go of it when the process dies, however it dies.
type lock struct{ file *os.File }

func lockFolder(dir string) (*lock, error) {
	f, err := os.OpenFile(datadir.Lock(dir), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, folderRefusal(dir, err)
	}
	if err := filelock.Take(f, filelock.Patience, func() bool { return holderLives(dir) }); err != nil {
		f.Close()
		if !errors.Is(err, filelock.ErrHeld) {
			return nil, folderRefusal(dir, err)
		}
		return nil, inUse(dir)
	}
	// Who holds it is for words to users. What could make room must not fail for want of it: a purge, a start that
	// evicts.
	if err := writeHolder(f, strconv.Itoa(os.Getpid())); err != nil && !errors.Is(err, syscall.ENOSPC) {
		f.Close()
		return nil, folderRefusal(dir, err)
	}
	return &lock{f}, nil
}

// inUse is the refusal of a folder that another process holds.
func inUse(dir string) *Refusal {
	holder := "another process"
	if pid, ok := LockHolder(dir); ok {
		holder = fmt.Sprintf("a wherry server (pid %d)", pid)
	}
	return &Refusal{Code: ExitFolderLocked,
		What: fmt.Sprintf("the data folder %s is in use by %s", dir, holder),
		Do:   "stop that one first, or start this one with a different --data-dir, --secure-port and --kubelet-port"}
}

// holderLives reports whether the process that the lock file names lives. It does not after a kill, when the lock may
// be held for a moment by a child that has not yet executed its program.
func holderLives(dir string) bool {
	pid, ok := LockHolder(dir)
	return ok && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// writeHolder writes who holds the lock, or "" for nobody, over what was there. The file keeps its size, and with it
// the room that it has: on a full disk it would not get any again.
func writeHolder(f *os.File, pid string) error {
	_, err := f.WriteAt(fmt.Appendf(nil, "%-20s\n", pid), 0)
	return err
}

// release keeps the file: removing it would let two servers lock two files of the same name.
func (l *lock) release() error {
	err := writeHolder(l.file, "")
	if errors.Is(err, syscall.ENOSPC) { // nobody was written either
		err = nil
	}
	return errors.Join(err, l.file.Close())
}

// LockHolder returns the pid that the folder's lock file names. It says nothing about whether that process lives.
func LockHolder(dir string) (pid int, ok bool) {
	text, err := os.ReadFile(datadir.Lock(dir))
	if err != nil {
		return 0, false
	}
	pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 0 {
		return 0, false
	}
	return pid, true
}

// Locked reports whether a server holds the folder now.
func Locked(dir string) bool { return filelock.Held(datadir.Lock(dir)) }

// stamp is the content of the folder's version file.
type stamp struct {
	Format     int    `json:"format"`     // of the folder's layout
	Wherry     string `json:"wherry"`     // program that wrote last
	Kubernetes string `json:"kubernetes"` // API version it spoke
}

// checkVersion refuses a folder that a newer program has written, and stamps it with this one's.
func checkVersion(dir string, now stamp) error {
	path := filepath.Join(dir, stampName)
	old, err := readStamp(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return &Refusal{Code: ExitFolder, What: fmt.Sprintf("the version file %s cannot be read", path),
			Do: "restore it or, if you are certain that this version of wherry wrote the folder, remove it", Err: err}
	case old.Format > now.Format:
		return &Refusal{Code: ExitNewerVersion,
			What: fmt.Sprintf("the data folder %s was written by wherry %s (format %d); this is wherry %s (format %d)",
				dir, old.Wherry, old.Format, now.Wherry, now.Format),
			Do: "use that version or a newer one, or choose another --data-dir"}
	}
	if err == nil && old == now {
		return nil
	}
	text, err := json.Marshal(now)
	if err != nil {
		return err
	}
	if err := writeFile(path, append(text, '\n'), 0o644); err != nil {
		return folderRefusal(dir, err)
	}
	return nil
}

func readStamp(path string) (stamp, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return stamp{}, err
	}
	var s stamp
	if err := json.Unmarshal(text, &s); err != nil {
		return stamp{}, err
	}
	if s.Format < 1 {
		return stamp{}, fmt.Errorf("it contains no format: %q", bytes.TrimSpace(text))
	}
	return s, nil
}

// writeFile replaces a file in one step: a reader sees the old text or the new, also after a crash.
func writeFile(path string, text []byte, mode os.FileMode) error {
	return writeFileFor(path, text, access{mode, -1})
}

// writeFileFor is writeFile for a file that a group may have.
func writeFileFor(path string, text []byte, who access) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if who.gid >= 0 {
		err = errors.Join(err, f.Chown(-1, who.gid))
	}
	err = errors.Join(err, f.Chmod(who.mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
