// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"errors"
	"fmt"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// share makes dir a mount of its own which passes mounts on in both directions. Pods' volumes with mount propagation
// need that, and / may be a private mount.
func share(dir string) error {
	mounted, err := mountinfo.Mounted(dir)
	if err != nil {
		return fmt.Errorf("data folder %s: is it a mount point: %w", dir, err)
	}
	if !mounted {
		if err := unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("data folder %s: bind mount on itself (needs root with CAP_SYS_ADMIN): %w", dir, err)
		}
	}
	if err := unix.Mount("", dir, "", unix.MS_SHARED|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("data folder %s: make its mount shared: %w", dir, err)
	}
	return nil
}

// unmountBelow unmounts everything at and below dir, the newest mount first. It leaves dir itself alone if it is a
// file system of its own and not a bind mount of this package.
func unmountBelow(dir string) error {
	var errs []error
	// A mount may cover others, which show only when it is gone.
	for range 16 {
		mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
		if err != nil {
			return fmt.Errorf("list mounts below %s: %w", dir, err)
		}
		errs = nil
		left := 0
		for i := len(mounts) - 1; i >= 0; i-- {
			m := mounts[i]
			if m.Mountpoint == dir && !boundOnItself(m) {
				continue
			}
			left++
			if err := unmount(m.Mountpoint); err != nil {
				errs = append(errs, fmt.Errorf("unmount %s: %w", m.Mountpoint, err))
			}
		}
		if left == 0 {
			return nil
		}
	}
	return errors.Join(errs...)
}

// boundOnItself reports whether a mount shows a folder of its file system and not its root: what share makes.
func boundOnItself(m *mountinfo.Info) bool {
	return m.Root != "/" && strings.HasSuffix(m.Mountpoint, m.Root)
}

// unmount takes a mount away, from the tree at once if it is busy.
func unmount(path string) error {
	err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EBUSY) {
		err = unix.Unmount(path, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
	}
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil // not a mount any more
	}
	return err
}
