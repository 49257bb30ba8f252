// SPDX-License-Identifier: Apache-2.0

package mountfd

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Clone copies the mount of a path, alone or with all below it. The caller closes the descriptor.
func Clone(path string, recursive, writable bool) (int, error) {
	return CloneAt(unix.AT_FDCWD, path, recursive, writable)
}

// CloneAt is [Clone] of a path at a folder's descriptor; an empty one is the descriptor's own mount.
func CloneAt(dir int, path string, recursive, writable bool) (int, error) {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC)
	if recursive {
		flags |= unix.AT_RECURSIVE
	}
	if path == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	fd, err := unix.OpenTree(dir, path, flags)
	if err != nil {
		return -1, err
	}
	attr := &unix.MountAttr{Propagation: unix.MS_PRIVATE}
	if !writable {
		attr.Attr_set = unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attr); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// SeenAs has the owners of what is in a cloned mount seen through a user namespace.
func SeenAs(fd int, users *os.File) error {
	return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH,
		&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(users.Fd())})
}

// Attach mounts a clone at a file or folder that is held open.
func Attach(fd int, at *os.File) error {
	return unix.MoveMount(fd, "", int(at.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// AttachPath mounts a clone at a path that nobody else can change.
func AttachPath(fd int, at string) error {
	return unix.MoveMount(fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// MostTries is how often, for all paths of a container together, the kernel is asked again after a walk that it gave up
// because of a rename somewhere at the same time. A busy machine needs a few; a container that renames all the time
// never lets a walk through links with many ".." succeed, and each try costs as much as its links are long.
const MostTries = 64

// ErrRestless is what Within returns of a path that its container does not let be found.
var ErrRestless = errors.New("the path leads through .. while something is renamed all the time; mount the volume at a path without links")

// Within opens a path as the processes of a container with that root would. It takes from *tries what it needs of them.
func Within(ctx context.Context, root *os.File, path string, tries *int) (*os.File, error) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := Retry(ctx, tries, func() (int, error) { return unix.Openat2(int(root.Fd()), path, how) })
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Retry opens something by a call that is to be made again as long as there are tries and somebody waits for it.
func Retry(ctx context.Context, tries *int, open func() (int, error)) (int, error) {
	for {
		if err := ctx.Err(); err != nil {
			return -1, err
		}
		fd, err := open()
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return fd, err
		}
		if *tries <= 0 {
			return -1, ErrRestless
		}
		*tries--
	}
}

// KernelCan reports whether the kernel has the calls that this package makes (Linux 5.12).
func KernelCan() bool {
	err := unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	return !errors.Is(err, unix.ENOSYS)
}
