// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/detach"
)

// share makes dir a mount of its own which passes mounts on in both directions. Pods' volumes with mount propagation
// need that, and / may be a private mount.
func share(dir string) error {
	mounted, err := mountinfo.Mounted(dir)
	if err != nil {
		return fmt.Errorf("data folder %s: check whether it is a mount point: %w", dir, err)
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
// mount that share found and did not make.
func unmountBelow(dir string) error {
	if err := detach.Remote(dir); err != nil {
		return err
	}
	var errs []error
	// A mount may cover others, which show only when it is gone.
	for range 16 {
		mounts, err := mountinfo.GetMounts(nil)
		if err != nil {
			return fmt.Errorf("list mounts below %s: %w", dir, err)
		}
		targets := below(mounts, dir)
		if len(targets) == 0 {
			return nil
		}
		errs = nil
		for _, t := range targets {
			if err := unmount(t); err != nil {
				errs = append(errs, fmt.Errorf("unmount %s: %w", t, err))
			}
		}
	}
	return errors.Join(errs...)
}

// below picks the mount points to unmount, in that order.
func below(mounts []*mountinfo.Info, dir string) []string {
	byID := map[int]*mountinfo.Info{}
	for _, m := range mounts {
		byID[m.ID] = m
	}
	var out []string
	for _, m := range slices.Backward(mounts) {
		inside := strings.HasPrefix(m.Mountpoint, dir+"/")
		if inside || m.Mountpoint == dir && boundOnItself(m, byID[m.Parent]) {
			out = append(out, m.Mountpoint)
		}
	}
	return out
}

// boundOnItself reports whether a mount shows the very folder it covers: what share makes.
func boundOnItself(m, parent *mountinfo.Info) bool {
	if parent == nil || m.Major != parent.Major || m.Minor != parent.Minor {
		return false
	}
	rel, err := filepath.Rel(parent.Mountpoint, m.Mountpoint)
	return err == nil && m.Root == filepath.Join(parent.Root, rel)
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
