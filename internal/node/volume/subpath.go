// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"github.com/cyphar/filepath-securejoin/pathrs-lite"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// errOutside is what becomes of a subPath that a link leads out of its volume. It does not say where to: that is the
// node's business.
var errOutside = errors.New("it leads out of the volume")

// bindSubPath resolves sub within the volume, makes folders that are missing, and binds what it found to a place of our
// own, whose path it returns. The container may change the volume at any time, so the runtime must not resolve the path
// again: what was found is held open and bound by its handle. Links are followed as the node sees them, and one that
// leads out of the volume is an error. The bind is not recursive; what is mounted deeper in a hostPath is not to be
// unmounted with ours.
func (m *Manager) bindSubPath(ctx context.Context, uid types.UID, v corev1.Volume, container string, index int,
	sub string) (string, error) {
	podDir, err := m.podDir(uid)
	if err != nil {
		return "", err
	}
	root, err := openTree(m.volumeDir(uid, v))
	if err != nil {
		return "", fmt.Errorf("volume %q: %w", v.Name, err)
	}
	defer root.Close()
	handle, err := root.openOrMake(path.Clean(sub))
	if err != nil {
		return "", fmt.Errorf("failed to create subPath directory for volumeMount %q: subPath %q: %w", v.Name, sub, err)
	}
	defer handle.Close()
	info, err := handle.Stat()
	if err != nil {
		return "", err
	}
	target := filepath.Join(podDir, "volume-subpaths", v.Name, container, strconv.Itoa(index))
	if _, err := os.Lstat(target); err == nil { // of an earlier attempt, or of a crash
		if err := unmountBelow(ctx, target); err != nil {
			return "", err
		}
	}
	if err := mountPoint(target, info.IsDir()); err != nil {
		return "", err
	}
	if err := unix.Mount(procFD(handle), target, "", unix.MS_BIND, ""); err != nil {
		return "", fmt.Errorf("binding subPath %q of volume %q: %w", sub, v.Name, err)
	}
	return target, nil
}

func procFD(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// tree is a volume whose content others may change at any time.
type tree struct {
	*os.File
	path string // without links
}

func openTree(dir string) (*tree, error) {
	root, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		root.Close()
		return nil, err
	}
	return &tree{root, dir}, nil
}

// open opens rel, whatever it is. Where its links lead is looked at first; what is opened then is within the tree also
// if they have been changed meanwhile.
func (t *tree) open(rel string) (*os.File, error) {
	real, err := filepath.EvalSymlinks(filepath.Join(t.path, rel))
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, at.Err // without its path, which is the node's business
	} else if err != nil {
		return nil, err
	}
	within, err := filepath.Rel(t.path, real)
	if err != nil || !filepath.IsLocal(within) {
		return nil, errOutside
	}
	return pathrs.OpenatInRoot(t.File, within)
}

// openOrMake opens rel, whatever it is; what does not exist is made as folders with the permissions of the tree's root.
func (t *tree) openOrMake(rel string) (*os.File, error) {
	handle, err := t.open(rel)
	if !errors.Is(err, fs.ErrNotExist) || rel == "." {
		return handle, err
	}
	parent, err := t.openOrMake(path.Dir(rel))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	info, err := t.Stat()
	if err != nil {
		return nil, err
	}
	name := path.Base(rel)
	switch err := unix.Mkdirat(int(parent.Fd()), name, 0o700); {
	case errors.Is(err, unix.EEXIST): // made by another, or a symlink to nowhere
		return t.open(rel)
	case err != nil:
		return nil, fmt.Errorf("creating folder %s: %w", name, err)
	}
	fd, err := unix.Openat(int(parent.Fd()), name, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the new folder %s: %w", name, err)
	}
	made := os.NewFile(uintptr(fd), rel)
	// The group comes from a setgid parent by itself; Chmod past the umask.
	if err := made.Chmod(info.Mode() & (fs.ModePerm | fs.ModeSetgid | fs.ModeSetuid | fs.ModeSticky)); err != nil {
		made.Close()
		return nil, err
	}
	return made, nil
}

// mountPoint makes an empty folder or file for something to be bound on.
func mountPoint(target string, dir bool) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	if info, err := os.Lstat(target); err == nil && info.IsDir() != dir {
		if err := os.Remove(target); err != nil {
			return err
		}
	}
	if dir {
		err := os.Mkdir(target, 0o750)
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	f, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	return f.Close()
}
