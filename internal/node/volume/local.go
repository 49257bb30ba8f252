// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/oneline"
)

// mountLocal mounts a local volume: its path is a folder, or a device with a file system on it, or with nothing at all,
// which is given one, as the kubelet does. What one mount does not do is done again if something is mounted already:
// whoever mounted it may have been stopped, or refused, before it had the options or was read-only.
func mountLocal(ctx context.Context, pv *corev1.PersistentVolume, readOnly bool, dir string) error {
	s, options := pv.Spec.Local, pv.Spec.MountOptions
	there, err := isMounted(dir)
	if err != nil {
		return err
	}
	info, err := os.Stat(s.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("path %q does not exist on the node", s.Path)
	case err != nil:
		return err
	case info.IsDir():
		if !there {
			err = bindPath(s.Path, dir)
		}
		if err == nil && len(options) > 0 {
			err = remount(ctx, options, dir)
		}
	case info.Mode()&fs.ModeDevice == 0 || info.Mode()&fs.ModeCharDevice != 0:
		err = fmt.Errorf("path %q is neither a folder nor a block device", s.Path)
	case !there:
		if err = os.MkdirAll(dir, 0o750); err == nil {
			err = mountDevice(ctx, s.Path, ptr.Deref(s.FSType, "ext4"), options, readOnly || asksReadOnly(options), dir)
		}
	}
	if err == nil && readOnly {
		err = sealed(dir)
	}
	return err
}

// asksReadOnly says whether options of a mount say that nothing is to be written. (Pure.)
func asksReadOnly(options []string) bool {
	return slices.Contains(strings.Split(strings.Join(options, ","), ","), "ro")
}

// mountDevice mounts the file system of a device. One that is not used yet gets its file system here, unless whoever
// asks may not write.
func mountDevice(ctx context.Context, device, kind string, options []string, readOnly bool, dir string) error {
	mount := func() error {
		if len(options) > 0 {
			return runMount(ctx, "-t", kind, "-o", strings.Join(options, ","), "--", device, dir)
		}
		return unix.Mount(device, dir, kind, 0, "")
	}
	failed := func(err error) error {
		return fmt.Errorf("mounting %s as %s: %w: is there another file system on it, which fsType has to name?",
			device, kind, err)
	}
	err := mount()
	switch {
	case err == nil:
		return nil
	// The kernel says EINVAL of what is no such file system, and something else of what it could not read. What the
	// host's mount has been told does not show.
	case readOnly, len(options) == 0 && !errors.Is(err, unix.EINVAL):
		return failed(err)
	}
	blank, unknown := isBlank(ctx, device)
	if unknown != nil {
		return fmt.Errorf("mounting %s as %s: %w: whether anything is on it is not known: %w", device, kind, err,
			unknown)
	}
	if !blank {
		return failed(err)
	}
	if err := makeFileSystem(ctx, device, kind); err != nil {
		return err
	}
	if err := mount(); err != nil {
		return failed(err)
	}
	return nil
}

func makeFileSystem(ctx context.Context, device, kind string) error {
	var args []string
	if strings.HasPrefix(kind, "ext") {
		args = []string{"-F", "-m0"} // no questions, and nothing set aside for root
	}
	out, err := exec.CommandContext(ctx, "mkfs."+kind, append(args, "--", device)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("making a file system on %s: mkfs.%s: %w: %s", device, kind, err, oneline.Of(string(out)))
	}
	return nil
}

// runMount runs the host's mount, which knows what options mean.
func runMount(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "mount", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mount %s: %w: %s", strings.Join(args, " "), err, oneline.Of(string(out)))
	}
	return nil
}

// remount gives options to what is bound at dir. The host's mount does so for that alone; those that take something
// away hold for what is mounted below, too.
func remount(ctx context.Context, options []string, dir string) error {
	all := append([]string{"remount", "bind"}, options...)
	if err := runMount(ctx, "-o", strings.Join(all, ","), "--", dir); err != nil {
		return err
	}
	if less := restrictions(options); less != 0 {
		if err := restrict(dir, less); err != nil {
			return fmt.Errorf("mount options below the volume: %w", err)
		}
	}
	return nil
}

// restrictions are those of a mount's options that take something away, of which the last word holds. (Pure.)
func restrictions(options []string) (out uint64) {
	kinds := map[string]uint64{"ro": unix.MOUNT_ATTR_RDONLY, "noexec": unix.MOUNT_ATTR_NOEXEC,
		"nosuid": unix.MOUNT_ATTR_NOSUID, "nodev": unix.MOUNT_ATTR_NODEV, "nosymfollow": unix.MOUNT_ATTR_NOSYMFOLLOW}
	opposites := map[string]uint64{"rw": unix.MOUNT_ATTR_RDONLY, "exec": unix.MOUNT_ATTR_NOEXEC,
		"suid": unix.MOUNT_ATTR_NOSUID, "dev": unix.MOUNT_ATTR_NODEV, "symfollow": unix.MOUNT_ATTR_NOSYMFOLLOW}
	for o := range strings.SplitSeq(strings.Join(options, ","), ",") {
		out = out&^opposites[o] | kinds[o]
	}
	return out
}

// sealed makes mounts read-only, so that nothing is written there on behalf of a pod that may not write either: no
// folder for a subPath that does not exist.
func sealed(dir string) error {
	if err := restrict(dir, unix.MOUNT_ATTR_RDONLY); err != nil {
		return fmt.Errorf("making the mount read-only: %w", err)
	}
	return nil
}

// restrict takes something away of the mount at dir and of those below it, for as long as they are there. A kernel
// older than 5.12 cannot; containers do not write to what they may only read even so.
func restrict(dir string, what uint64) error {
	err := unix.MountSetattr(unix.AT_FDCWD, dir, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: what})
	if errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}
