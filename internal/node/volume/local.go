// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/oneline"
)

// mountLocal mounts a local volume: its path is a folder, or a device with a file system on it, or with nothing at all,
// which is given one, as the kubelet does.
func mountLocal(ctx context.Context, pv *corev1.PersistentVolume, readOnly bool, dir string) error {
	s, options := pv.Spec.Local, pv.Spec.MountOptions
	info, err := os.Stat(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("path %q does not exist on the node", s.Path)
	}
	switch {
	case err != nil:
		return err
	case info.IsDir():
		if err := bindPath(s.Path, dir); err != nil {
			return err
		}
		if len(options) > 0 {
			options = append([]string{"remount", "bind"}, options...)
			if err := runMount(ctx, "-o", strings.Join(options, ","), "--", dir); err != nil {
				return errors.Join(err, unix.Unmount(dir, unix.MNT_DETACH)) // or it would be taken for done
			}
		}
		return nil
	case info.Mode()&fs.ModeDevice == 0 || info.Mode()&fs.ModeCharDevice != 0:
		return fmt.Errorf("path %q is neither a folder nor a block device", s.Path)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	return mountDevice(ctx, s.Path, ptr.Deref(s.FSType, "ext4"), options, readOnly, dir)
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
	err := mount()
	if err == nil {
		return nil
	}
	if !readOnly && isBlank(ctx, device) {
		if err := makeFileSystem(ctx, device, kind); err != nil {
			return err
		}
		if err = mount(); err == nil {
			return nil
		}
	}
	return fmt.Errorf("mounting %s as %s: %w: is there another file system on it, which fsType has to name?", device,
		kind, err)
}

// isBlank says whether there is neither a file system nor a table of partitions on a device: blkid ends with 2 if it
// finds nothing, and with something else if it cannot tell.
func isBlank(ctx context.Context, device string) bool {
	err := exec.CommandContext(ctx, "blkid", "-p", "-s", "TYPE", "-s", "PTTYPE", "--", device).Run()
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.ExitCode() == 2
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

// sealed makes a mount read-only, so that nothing is written there on behalf of a pod that may not write either: no
// folder for a subPath that does not exist. A kernel older than 5.12 cannot; containers do not write there even so.
func sealed(dir string) error {
	err := unix.MountSetattr(unix.AT_FDCWD, dir, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if err != nil && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("making the mount read-only: %w", err)
	}
	return nil
}
