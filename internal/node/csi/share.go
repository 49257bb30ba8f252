// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Share makes the kubelet's folder pass mounts on in both directions, which drivers' containers need that mount it with
// mountPropagation Bidirectional: on many machines it does so already, as / does; elsewhere it becomes a mount of its
// own.
func Share(folder string) error {
	at, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return err
	}
	m, err := mountOf(at)
	if err != nil || strings.Contains(" "+m.Optional, " shared:") {
		return err
	}
	if m.Mountpoint != at {
		if err := unix.Mount(at, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("binding %s on itself: %w", at, err)
		}
	}
	if err := unix.Mount("", at, "", unix.MS_SHARED|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("making the mount of %s shared: %w", at, err)
	}
	return nil
}

// mountOf is the mount that a path lies on: of several at one place the last.
func mountOf(path string) (*mountinfo.Info, error) {
	all, err := mountinfo.GetMounts(mountinfo.ParentsFilter(path))
	if err != nil {
		return nil, err
	}
	var out *mountinfo.Info
	for _, m := range all {
		if out == nil || len(m.Mountpoint) >= len(out.Mountpoint) {
			out = m
		}
	}
	if out == nil {
		return nil, fmt.Errorf("%s is on no mount", path)
	}
	return out, nil
}

// Purge unmounts what the pods of a folder have of drivers, which do not run any more, and removes where that was. It
// also undoes Share.
func Purge(podsFolder, folder string) error {
	files, err := filepath.Glob(filepath.Join(podsFolder, "*", fileName))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		s, err := parse(text)
		if err != nil {
			continue // of a machine that has lost power, and has nothing mounted
		}
		for _, u := range s {
			for _, at := range []string{u.Target, u.Staging} {
				if err := purgePlace(folder, at); err != nil {
					return err
				}
			}
		}
	}
	return unshare(folder)
}

func purgePlace(folder, at string) error {
	if !strings.HasPrefix(at, folder+"/") {
		return nil
	}
	for {
		there, err := mountinfo.Mounted(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if !there {
			break
		}
		if err := unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("unmounting %s: %w", at, err)
		}
	}
	for ; at != folder; at = filepath.Dir(at) {
		if os.Remove(at) != nil {
			return nil // there is something in it, which may be somebody else's
		}
	}
	return nil
}

// unshare takes away the mount that Share has made.
func unshare(folder string) error {
	all, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(folder))
	if err != nil || len(all) == 0 {
		return err
	}
	above, err := mountOf(filepath.Dir(folder))
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(above.Mountpoint, folder)
	if err != nil || all[0].Root != filepath.Join(above.Root, rel) || all[0].Major != above.Major ||
		all[0].Minor != above.Minor {
		return nil // somebody else's
	}
	if err := unix.Unmount(folder, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
		return fmt.Errorf("unmounting %s: %w", folder, err)
	}
	return nil
}
