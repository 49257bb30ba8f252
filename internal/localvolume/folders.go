// SPDX-License-Identifier: Apache-2.0

package localvolume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/deeptree"
)

// Names that are no volume's: volumes have no dot in front.
const (
	half = ".new-"  // not finished
	gone = ".gone-" // being removed
)

// Folders keeps volumes. It is safe for concurrent use.
type Folders struct {
	root   string
	quotas quotas
	mu     sync.Mutex // ids are chosen one at a time
}

// New keeps volumes below a folder, which is made with the first of them.
func New(root string) *Folders { return &Folders{root: root, quotas: kernel{}} }

// Path is where a volume is.
func (f *Folders) Path(name string) string { return filepath.Join(f.root, name) }

// Make makes a volume, or completes one that is there. notHeld says why it is not held to its size, "" if it is.
func (f *Folders) Make(name string, size int64) (notHeld string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := checkName(name); err != nil {
		return "", err
	}
	if err := os.MkdirAll(f.root, 0o711); err != nil {
		return "", fmt.Errorf("the folder of volumes: %w", err)
	}
	if _, err := os.Lstat(f.Path(name)); err == nil {
		return f.hold(f.Path(name), name, size)
	}
	tmp := filepath.Join(f.root, half+name)
	if err := os.Mkdir(tmp, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if notHeld, err = f.hold(tmp, name, size); err != nil {
		return "", err
	}
	if err := os.Chmod(tmp, 0o777); err != nil { // apart from Mkdir: no umask
		return "", err
	}
	if err := os.Rename(tmp, f.Path(name)); err != nil {
		return "", err
	}
	return notHeld, syncFolder(f.root)
}

// Grow has a volume that is there hold more.
func (f *Folders) Grow(name string, size int64) (notHeld string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := checkName(name); err != nil {
		return "", err
	}
	if _, err := os.Lstat(f.Path(name)); err != nil {
		return "", fmt.Errorf("the volume's folder: %w", err)
	}
	return f.hold(f.Path(name), name, size)
}

// Remove removes a volume with all that is in it. One that is not there is a success.
func (f *Folders) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := checkName(name); err != nil {
		return err
	}
	err := os.Rename(f.Path(name), filepath.Join(f.root, gone+name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, left := range []string{half + name, gone + name} {
		if err := f.end(left); err != nil {
			return err
		}
	}
	return nil
}

// Sweep ends what was being removed, and takes away what was never finished.
func (f *Folders) Sweep() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	entries, err := os.ReadDir(f.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), gone) || strings.HasPrefix(e.Name(), half) {
			errs = append(errs, f.end(e.Name()))
		}
	}
	return errors.Join(errs...)
}

// end removes a folder that is no volume any more, and frees its id.
func (f *Folders) end(entry string) error {
	at := filepath.Join(f.root, entry)
	dir, err := os.Open(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	id, _ := f.quotas.project(dir)
	dir.Close()
	root, err := os.Open(f.root)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := deeptree.Remove(root, entry); err != nil {
		return fmt.Errorf("removing the volume %s: %w", strings.TrimPrefix(entry, gone), err)
	}
	if ours(id) && f.quotas.missing(f.root) == "" {
		return f.quotas.limit(root, id, 0)
	}
	return nil
}

// hold gives a folder its size. Without project quotas it is a folder like any other.
func (f *Folders) hold(at, name string, size int64) (notHeld string, err error) {
	if why := f.quotas.missing(f.root); why != "" {
		return why, nil
	}
	dir, err := os.OpenFile(at, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	id, err := f.quotas.project(dir)
	if err != nil {
		return "", fmt.Errorf("project id of %s: %w", at, err)
	}
	if !ours(id) {
		if entries, err := dir.ReadDir(1); err == nil && len(entries) > 0 {
			return "files were in it before its file system had project quotas, and these would not be counted", nil
		}
		if id, err = freeProject(f.quotas, dir, name); err != nil {
			return "", err
		}
		if err := f.quotas.setProject(dir, id); err != nil {
			return "", fmt.Errorf("project id of %s: %w", at, err)
		}
	}
	if err := f.quotas.limit(dir, id, size); err != nil {
		return "", fmt.Errorf("quota of %s: %w", at, err)
	}
	return "", nil
}

func syncFolder(at string) error {
	dir, err := os.Open(at)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// checkName: a name comes from the API; it must not lead anywhere else.
func checkName(name string) error {
	if name == "" || name[0] == '.' || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("volume name %q cannot be used as a folder name", name)
	}
	return nil
}
