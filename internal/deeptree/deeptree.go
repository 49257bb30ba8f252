// SPDX-License-Identifier: Apache-2.0

package deeptree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// deepest is how many levels are gone down, with a descriptor each. What is nested deeper is moved up first.
const deepest = 32

// Remove removes the named entry of a folder with all below it. One that is not there is a success. Mounts, bind mounts
// too, are left alone: the error names the one that is in the way.
func Remove(parent *os.File, name string) error {
	done, err := plainly(parent, name)
	if done || err != nil {
		return err
	}
	dir, err := open(parent, name)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	err = Empty(dir)
	dir.Close()
	if err != nil {
		return err
	}
	return rmdir(parent, name)
}

// Empty removes everything in a folder, which may be a mount point itself.
func Empty(dir *os.File) error { return (&remover{top: dir}).empty(dir, 0) }

// remover empties a folder.
type remover struct {
	top   *os.File
	moved int
}

func (r *remover) empty(dir *os.File, depth int) error {
	for {
		// Removing while reading may skip entries: start over.
		if _, err := dir.Seek(0, 0); err != nil {
			return err
		}
		names, err := dir.Readdirnames(256)
		if len(names) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := r.remove(dir, name, depth); err != nil {
				return err
			}
		}
	}
}

func (r *remover) remove(dir *os.File, name string, depth int) error {
	done, err := plainly(dir, name)
	if done || err != nil {
		return err
	}
	if depth == deepest {
		return r.moveUp(dir, name)
	}
	sub, err := open(dir, name)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	err = r.empty(sub, depth+1)
	sub.Close()
	if err != nil {
		return err
	}
	return rmdir(dir, name)
}

// moveUp puts a folder into the one that is being emptied, where its turn comes.
func (r *remover) moveUp(dir *os.File, name string) error {
	for {
		r.moved++
		to := fmt.Sprintf(".removing-%d", r.moved)
		err := unix.Renameat2(int(dir.Fd()), name, int(r.top.Fd()), to, unix.RENAME_NOREPLACE)
		switch {
		case errors.Is(err, unix.EEXIST):
			continue // a file of that name, or one that is left from before
		case err != nil && !errors.Is(err, unix.ENOENT):
			return fmt.Errorf("moving %s up to remove it: %w", filepath.Join(dir.Name(), name), err)
		}
		return nil
	}
}

// plainly removes what is no folder, or an empty one. Not done, without an error: a folder that has something in it.
func plainly(parent *os.File, name string) (done bool, err error) {
	err = unix.Unlinkat(int(parent.Fd()), name, 0)
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
		err = unix.Unlinkat(int(parent.Fd()), name, unix.AT_REMOVEDIR)
	}
	switch {
	case err == nil || errors.Is(err, unix.ENOENT):
		return true, nil
	case errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST):
		return false, nil
	case errors.Is(err, unix.EBUSY):
		return false, fmt.Errorf("%s is a mount point, so it was not removed", filepath.Join(parent.Name(), name))
	}
	return false, fmt.Errorf("removing %s: %w", filepath.Join(parent.Name(), name), err)
}

func rmdir(parent *os.File, name string) error {
	if err := unix.Unlinkat(int(parent.Fd()), name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("removing %s: %w", filepath.Join(parent.Name(), name), err)
	}
	return nil
}

// open opens a folder right below parent if it is on the same mount.
func open(parent *os.File, name string) (*os.File, error) {
	full := filepath.Join(parent.Name(), name)
	how := &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH}
	for tries := 64; ; tries-- {
		fd, err := unix.Openat2(int(parent.Fd()), name, how)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), full), nil
		case (errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)) && tries > 0:
			continue // a rename somewhere at the same time
		case errors.Is(err, unix.EXDEV):
			return nil, fmt.Errorf("%s is a mount point, so it was not removed", full)
		}
		return nil, fmt.Errorf("opening %s: %w", full, err)
	}
}
