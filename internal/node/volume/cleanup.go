// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// CleanUp unmounts everything below the pod's folder and removes it. No container of the pod may run any more. It can be
// repeated; a folder that is not there is a success. It never removes anything through a mount: if one stays or comes back,
// the error names it and what is left is left.
func (m *Manager) CleanUp(ctx context.Context, uid types.UID) error {
	dir, err := m.podDir(uid)
	if err != nil {
		return err
	}
	defer m.locks.take(uid)()
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := unmountBelow(ctx, dir); err != nil {
		return fmt.Errorf("cleaning up after pod %s: %w", uid, err)
	}
	root, err := os.Open(m.cfg.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := removeTree(root, filepath.Base(dir)); err != nil {
		return fmt.Errorf("cleaning up after pod %s: %w", uid, err)
	}
	return nil
}

// mountsBelow lists the mount points at or below dir, in the order they were mounted.
func mountsBelow(dir string) ([]string, error) {
	infos, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		return nil, fmt.Errorf("reading the list of mounts: %w", err)
	}
	var out []string
	for _, i := range infos {
		out = append(out, i.Mountpoint)
	}
	return out, nil
}

// unmountBelow unmounts the last first. Each mount is made private before: a bind of a host folder shares its mounts with the
// host, and unmounting something below ours would otherwise unmount the host's too.
func unmountBelow(ctx context.Context, dir string) error {
	// Unmounting can uncover a mount below; a few rounds are plenty.
	for range 8 {
		mounts, err := mountsBelow(dir)
		if err != nil || len(mounts) == 0 {
			return err
		}
		for _, at := range mounts {
			if err := unix.Mount("", at, "", unix.MS_PRIVATE, ""); err != nil && !gone(err) {
				return fmt.Errorf("making %s private: %w", at, err)
			}
		}
		for _, at := range slices.Backward(mounts) {
			if err := unmount(at); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	mounts, err := mountsBelow(dir)
	if err == nil && len(mounts) > 0 {
		err = fmt.Errorf("%s is mounted again each time it is unmounted: find the process that does this", mounts[0])
	}
	return err
}

// unmount takes away what is mounted at the path, if anything; what is still in use goes when its last user does.
func unmount(at string) error {
	for {
		err := unix.Unmount(at, unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EBUSY) {
			err = unix.Unmount(at, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
		}
		switch {
		case err == nil:
			continue // mounts stack
		case gone(err):
			return nil
		}
		return fmt.Errorf("unmounting %s: %w", at, err)
	}
}

// gone: the path is no mount point (any more), or is not there at all. Without root, nothing can be mounted by us either.
func gone(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) ||
		(errors.Is(err, unix.EPERM) && os.Geteuid() != 0)
}

// removeTree removes the named entry of a folder with all below it, like os.RemoveAll, but the kernel stops it at the first
// mount, bind mounts too, and at the first symlink.
func removeTree(parent *os.File, name string) error {
	err := unix.Unlinkat(int(parent.Fd()), name, 0)
	switch {
	case err == nil || errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%s is a mount point, so it was not removed", filepath.Join(parent.Name(), name))
	case !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM):
		return fmt.Errorf("removing %s: %w", filepath.Join(parent.Name(), name), err)
	}
	dir, err := openWithin(parent, name)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(256)
		for _, n := range names {
			if err := removeTree(dir, n); err != nil {
				return err
			}
		}
		if len(names) == 0 || err != nil {
			break
		}
		// Removing while reading may skip entries: start over.
		if _, err := dir.Seek(0, 0); err != nil {
			return err
		}
	}
	if err := unix.Unlinkat(int(parent.Fd()), name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("removing %s: %w", dir.Name(), err)
	}
	return nil
}

// openWithin opens a folder right below parent if it is on the same mount.
func openWithin(parent *os.File, name string) (*os.File, error) {
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
