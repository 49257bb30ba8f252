// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// root is a folder taken for the root of a file system.
type root struct {
	fd      int
	changed bool // it is this process's root
}

// openBeneath opens a folder as a root. The kernel keeps paths in it; kept is false where it cannot.
func openBeneath(path string) (r *root, kept bool, err error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	r = &root{fd: fd}
	probe, err := r.open(".", unix.O_PATH)
	if err == nil {
		unix.Close(probe)
		return r, true, nil
	}
	r.close()
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return nil, false, nil
	}
	return nil, false, &fs.PathError{Op: "open", Path: path, Err: err}
}

// openRoot opens a folder as a root, which becomes this process's where the kernel cannot keep paths in it.
func openRoot(path string) (*root, error) {
	r, kept, err := openBeneath(path)
	if err != nil || kept {
		return r, err
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	// An old kernel, or a seccomp profile from before openat2.
	if err := unix.Chroot(path); err != nil {
		return nil, fmt.Errorf("change the root to %s (needs CAP_SYS_CHROOT where openat2 is missing): %w", path, err)
	}
	if err := unix.Chdir("/"); err != nil {
		return nil, err
	}
	return &root{fd: fd, changed: true}, nil
}

// mostTries is how often the kernel is asked again after a walk that it gave up because something was renamed at the
// same time. A program that renames all the time never lets a walk through links with many ".." succeed.
const mostTries = 64

var errRestless = errors.New("the path leads through .. while something is renamed all the time; name it without links")

// open opens a path as if the root were /.
func (r *root) open(path string, flags int) (int, error) {
	path = strings.TrimLeft(path, "/")
	if path == "" {
		path = "."
	}
	if r.changed {
		return unix.Open("/"+path, flags|unix.O_CLOEXEC, 0)
	}
	how := &unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC),
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	for tries := mostTries; ; tries-- {
		fd, err := unix.Openat2(r.fd, path, how)
		switch {
		case err != unix.EAGAIN && err != unix.EINTR:
			return fd, err
		case tries == 0:
			return -1, errRestless
		}
	}
}

// parent opens the folder that holds the last part of a path, and returns that part: "." for the folder itself.
func (r *root) parent(path string) (fd int, base string, err error) {
	trimmed := strings.TrimRight(path, "/")
	at := strings.LastIndexByte(trimmed, '/')
	dir, base := trimmed[:at+1], trimmed[at+1:]
	if base == "" || base == "." || base == ".." || trimmed != path {
		// A slash at the end, as everywhere, asks for the folder and not for a link to it.
		fd, err = r.open(path, unix.O_RDONLY|unix.O_DIRECTORY)
		if err == nil || base == "" || base == "." || base == ".." {
			return fd, ".", err
		}
	}
	fd, err = r.open(dir, unix.O_PATH|unix.O_DIRECTORY)
	return fd, base, err
}

// kernels tells whether a folder of the root, which another file system is put together in, is one that containers have
// from the kernel: what lies there in their root filesystem is hidden below a mount. It returns the folder's path in
// the root.
func (r *root) kernels(fd int) (path string, is bool) {
	top, known := r.top()
	if !known {
		return "", false
	}
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return "", false
	}
	path = strings.TrimPrefix(path, top)
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return path, first == "dev" || first == "proc" || first == "sys"
}

// top is the root's own path; it is not known without /proc, and in / nothing of the container's is hidden.
func (r *root) top() (path string, known bool) {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", r.fd))
	return path, err == nil && path != "/"
}

func (r *root) close() { unix.Close(r.fd) }
