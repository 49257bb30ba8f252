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

	"github.com/wherryproject/wherry/internal/deeptree"
	"github.com/wherryproject/wherry/internal/detach"
)

// CleanUp unmounts everything below the pod's folder and removes it. No container of the pod may run any more. It can
// be repeated; a folder that is not there is a success. It never removes anything through a mount: if one stays or
// comes back, the error names it and what is left is left.
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
	if m.cfg.CSI != nil { // whose record goes with the folder
		if err := m.cfg.CSI.Unpublish(ctx, uid); err != nil {
			return err
		}
	}
	root, err := os.Open(m.cfg.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := deeptree.Remove(root, filepath.Base(dir)); err != nil {
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

// unmountBelow unmounts the last first. Each mount is made private before: a bind of a host folder shares its mounts
// with the host, and unmounting something below ours would otherwise unmount the host's too.
func unmountBelow(ctx context.Context, dir string) error {
	if err := detach.Remote(dir); err != nil {
		return err
	}
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

// gone: the path is no mount point (any more), or is not there at all. Without root, nothing can be mounted by us
// either.
func gone(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) ||
		(errors.Is(err, unix.EPERM) && os.Geteuid() != 0)
}
