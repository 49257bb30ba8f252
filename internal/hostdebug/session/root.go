// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/hostdebug/ocispec"
	"github.com/wherryproject/wherry/internal/mountfd"
)

// rootfs is the debugger's root filesystem: where it is made, and where it is seen then.
type rootfs struct{ made, seen string }

// unpackImage unpacks the image that was asked for, on disk, as it may be larger than what memory is there for, where
// nobody else comes to it.
func (s *session) unpackImage(ctx context.Context) (root string, img ocispec.Image, err error) {
	disk := s.machine.DiskDir(s.id)
	root = filepath.Join(disk, "root")
	if err := errors.Join(os.Mkdir(disk, 0o700), os.Mkdir(root, 0o755)); err != nil {
		return root, img, err
	}
	img, err = s.req.Image.Unpack(ctx, root)
	return root, img, err
}

// present shows the root filesystem, when all is in it, as that of the target's root.
func (s *session) present(fs rootfs, uid, gid int) error {
	if fs.made == fs.seen {
		return giveTo(fs.made, uid, gid)
	}
	fd, err := mountfd.Clone(fs.made, false, !s.req.Bounded)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if in := s.joined(); in != nil {
		if users := in.namespaces[specs.UserNamespace]; users != nil {
			if err := mountfd.SeenAs(fd, users); err != nil {
				s.note("the image's files belong to nobody here: its file system has no idmapped mounts")
			}
		}
	}
	if s.req.Bounded {
		return s.cover(fd, fs.seen, uid, gid)
	}
	return mountfd.AttachPath(fd, fs.seen)
}

// giveTo makes what the debugger may write to in its root filesystem that of the root of a user namespace.
func giveTo(root string, uid, gid int) error {
	if uid == 0 && gid == 0 {
		return nil
	}
	for _, name := range []string{".", "root", "etc", "tmp", "dev"} {
		err := os.Lchown(filepath.Join(root, name), uid, gid)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// folders makes what a specification mounts at, as far as an image lacks it. Links of the image's are not followed out
// of it.
func folders(root string) error {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, name := range []string{"proc", "sys", "dev", "c", "etc"} {
		if err := dir.MkdirAll(name, 0o755); err != nil {
			return fmt.Errorf("the image cannot be used: /%s: %w", name, err)
		}
	}
	return nil
}

// maxConfig bounds a file that is taken over from a target.
const maxConfig = 1 << 20

// takeOver copies the target's configuration of names into the debugger: resolv.conf, hosts and hostname.
func takeOver(ctx context.Context, from, root string) error {
	theirs, err := os.OpenFile(from, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer theirs.Close()
	ours, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer ours.Close()
	tries := mountfd.MostTries
	for _, name := range []string{"etc/resolv.conf", "etc/hosts", "etc/hostname"} {
		f, err := mountfd.Within(ctx, theirs, name, &tries)
		if err != nil {
			continue // it has none
		}
		text, err := readRegular(f)
		f.Close()
		if err != nil {
			continue
		}
		_ = ours.Remove(name) // it may be a link
		if err := ours.WriteFile(name, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// readRegular reads a file that was opened with O_PATH, if it is a regular one: a target may have put anything in its
// place, and opening some devices has side effects.
func readRegular(f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a file")
	}
	open, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return nil, err
	}
	defer open.Close()
	return io.ReadAll(io.LimitReader(open, maxConfig))
}
