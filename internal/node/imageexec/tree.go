// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/mountfd"
)

// Files is what a container sees, as its runtime has it on the node.
type Files struct {
	Root         string // where its root filesystem is mounted while RootMounted says so
	RootMounted  func() bool
	MountRoot    func(at string, writable bool) error // mounts the root filesystem of one that has ended
	MountImage   func(at string) error                // mounts the image's own files, read-only; nil: nobody can
	ReadOnlyRoot bool                                 // for itself
	Binds        []Bind                               // in the order they were mounted in
	Env          []string
}

// Bind is a file or folder of the node that a container sees.
type Bind struct {
	From, At            string
	ReadOnly, Recursive bool
	// Users opens the user namespace through which owners are seen (PL-24); nil: they are seen as they are.
	Users func() (*os.File, error)
}

// tree is a session's folder: a memory file system in which all that the command is to see is put together.
//
//	hosts                 its hosts file
//	c/<container>         a container's files
//	c/.wherry/<container> what is known of it, and in image the files of its image
type tree struct{ dir string }

// makeBase makes the folder of all sessions: what is mounted in it comes into no other mount namespace, so that it can
// be taken away again.
func makeBase(base string) error {
	if err := os.MkdirAll(base, 0o700); err != nil {
		return err
	}
	mounted, err := mountinfo.Mounted(base)
	if err == nil && !mounted {
		err = unix.Mount(base, base, "", unix.MS_BIND, "")
	}
	if err == nil {
		err = unix.Mount("", base, "", unix.MS_PRIVATE, "")
	}
	if err != nil {
		return fmt.Errorf("folder for image execs %s: %w", base, err)
	}
	return nil
}

// treeSize bounds a session's memory: evidence of some hundred containers.
const treeSize = "256m"

func makeTree(dir string) (*tree, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	if err := unix.Mount("wherry-image-exec", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV,
		"mode=0700,size="+treeSize); err != nil {
		return nil, fmt.Errorf("folder of an image exec: %w", errors.Join(err, os.Remove(dir)))
	}
	t := &tree{dir}
	// What is mounted in it later comes into the command's container too, which gets it as a slave.
	if err := unix.Mount("", dir, "", unix.MS_SHARED, ""); err != nil {
		return t, fmt.Errorf("folder of an image exec: %w", err)
	}
	return t, os.Mkdir(t.files(), 0o755)
}

func (t *tree) files() string { return filepath.Join(t.dir, "c") }
func (t *tree) hosts() string { return filepath.Join(t.dir, "hosts") }

// known is the folder of what is known of a container.
func (t *tree) known(container string) string {
	return filepath.Join(t.files(), ".wherry", container)
}

// write writes a file for the command's user to read and nobody else.
func (t *tree) write(path string, text []byte, user int) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	return os.Chown(path, user, -1)
}

// show mounts a container's files at c/<name>. What of its volumes cannot be had comes back as notes for the client; an
// error says that nothing of the container can be.
func (t *tree) show(ctx context.Context, name string, f Files, writable bool) (notes []string, err error) {
	at := filepath.Join(t.files(), name)
	if err := os.Mkdir(at, 0o755); err != nil {
		return nil, err
	}
	if err := t.showRoot(at, f, writable); err != nil {
		return nil, errors.Join(err, os.Remove(at))
	}
	root, err := os.OpenFile(at, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if f.MountImage != nil {
		if err := t.showImage(name, f); err != nil {
			notes = append(notes, fmt.Sprintf("container %s: the files of its image are not shown: %v", name, err))
		}
	}
	tries := mountfd.MostTries
	for _, b := range f.Binds {
		if ofKernel(b.At) {
			continue
		}
		switch err := bindInto(ctx, root, b, writable && !b.ReadOnly, &tries); {
		case ctx.Err() != nil:
			return notes, ctx.Err()
		case errors.Is(err, errGone):
			notes = append(notes, fmt.Sprintf("container %s: %s is not shown: it is no longer on the node", name, b.At))
		case err != nil:
			notes = append(notes, fmt.Sprintf("container %s: %s is not shown: %v", name, b.At, err))
		}
	}
	return notes, nil
}

// showRoot shows a container's root filesystem: the very mount of one whose task is there, else its layers mounted
// anew. One may turn into the other at any moment.
func (t *tree) showRoot(at string, f Files, writable bool) error {
	writable = writable && !f.ReadOnlyRoot
	if f.RootMounted() {
		fd, err := mountfd.Clone(f.Root, false, writable)
		if err == nil {
			defer unix.Close(fd)
			if f.RootMounted() { // else it is the empty folder below the mount that was cloned
				return mountfd.AttachPath(fd, at)
			}
		} else if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("its root filesystem: %w", err)
		}
	}
	return f.MountRoot(at, writable)
}

// showImage shows the files of a container's image, as they were before the container wrote.
func (t *tree) showImage(name string, f Files) error {
	at := filepath.Join(t.known(name), "image")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	if err := f.MountImage(at); err != nil {
		return errors.Join(err, os.Remove(at))
	}
	return nil
}

// errGone is what bindInto returns when there is nothing to bind.
var errGone = errors.New("it is gone")

// bindInto binds a container's volume into its root, to where the container's own processes find it: symlinks on the
// way are followed within the root, and what was found is held, so that nobody can put something else in its place.
func bindInto(ctx context.Context, root *os.File, b Bind, writable bool, tries *int) error {
	fd, err := mountfd.Clone(b.From, b.Recursive, writable)
	if errors.Is(err, unix.ENOENT) {
		return errGone
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := seeThrough(fd, b.Users); err != nil {
		return fmt.Errorf("its owners cannot be shown: %w", err)
	}
	at, err := mountfd.Within(ctx, root, b.At, tries)
	if err != nil {
		return fmt.Errorf("its mount point cannot be found: %w", err)
	}
	defer at.Close()
	if err := mountfd.Attach(fd, at); err != nil {
		return fmt.Errorf("mounting it: %w", err)
	}
	return nil
}

// seeThrough has the owners of what is in a cloned mount seen as the pod's own users.
func seeThrough(fd int, open func() (*os.File, error)) error {
	if open == nil {
		return nil
	}
	users, err := open()
	if err != nil {
		return err
	}
	defer users.Close()
	return mountfd.SeenAs(fd, users)
}

// ofKernel: the path lies in what a container has from the kernel, which is not in its root filesystem.
func ofKernel(path string) bool {
	for _, dir := range []string{"/dev", "/proc", "/sys"} {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// removeTree takes a session's folder away with all that is mounted in it. It can be repeated. The mounts are first
// parted from those they were cloned from, should a crash have come before that was done.
func removeTree(dir string) error {
	for {
		if err := unix.Mount("", dir, "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil && !notMounted(err) {
			return fmt.Errorf("separating the mounts of %s: %w", dir, err)
		}
		err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if notMounted(err) {
			break
		}
		if err != nil {
			return fmt.Errorf("unmounting %s: %w", dir, err)
		}
	}
	// Not with what may be in it: that would be something that is still mounted.
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func notMounted(err error) bool { return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) }
