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

// bindSubPath resolves sub within the volume, makes folders that are missing, and binds what it found to a place of our
// own, whose path it returns. The container may change the volume at any time, so the runtime must not resolve the path
// again: what was found is held open and bound by its handle. Symlinks are taken as if the volume were the root of all:
// none leads out of it. The bind is not recursive; what is mounted deeper in a hostPath is not to be unmounted with
// ours.
func (m *Manager) bindSubPath(ctx context.Context, uid types.UID, v corev1.Volume, container string, index int,
	sub string) (string, error) {
	podDir, err := m.podDir(uid)
	if err != nil {
		return "", err
	}
	root, err := os.OpenFile(m.volumeDir(uid, v), os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return "", fmt.Errorf("volume %q: %w", v.Name, err)
	}
	defer root.Close()
	handle, err := openOrMake(root, path.Clean(sub))
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

// openOrMake opens rel within root, whatever it is; what does not exist is made as folders with the permissions of
// root.
func openOrMake(root *os.File, rel string) (*os.File, error) {
	handle, err := pathrs.OpenatInRoot(root, rel)
	if !errors.Is(err, fs.ErrNotExist) || rel == "." {
		return handle, err
	}
	parent, err := openOrMake(root, path.Dir(rel))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	info, err := root.Stat()
	if err != nil {
		return nil, err
	}
	name := path.Base(rel)
	switch err := unix.Mkdirat(int(parent.Fd()), name, 0o700); {
	case errors.Is(err, unix.EEXIST): // made by another, or a symlink to nowhere
		return pathrs.OpenatInRoot(root, rel)
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
