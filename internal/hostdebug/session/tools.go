// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/continuity/fs"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/hostdebug/ocispec"
	"github.com/wherryproject/wherry/internal/mountfd"
)

// Tools are the programs that every debugger is made with, packed in this program.
type Tools interface {
	// Write writes a program: KitRunc or KitFirst.
	Write(tool string, to io.Writer) error
	// UnpackToolbox writes the files of the built-in image into an empty folder.
	UnpackToolbox(ctx context.Context, dir string) error
}

// What is in a kit, in which the tools are ready.
const (
	KitRunc    = "runc"
	KitFirst   = "first"   // what runs the command and reaps what that leaves
	KitToolbox = "toolbox" // the folder of the built-in image's files
	KitProgram = "session" // the program of a cluster's sessions
)

// tools are where a session's own ones are.
type tools struct{ runc, first string }

// prepare has the tools and the debugger's root filesystem in their places.
func (s *session) prepare(ctx context.Context, base string) (at tools, root rootfs, img ocispec.Image, err error) {
	root.seen = filepath.Join(base, "root")
	root.made = root.seen
	if err := os.Mkdir(root.seen, 0o755); err != nil {
		return at, root, img, err
	}
	if s.req.Kit != nil {
		return s.fromKit(ctx, base, root)
	}
	at = tools{filepath.Join(base, KitRunc), filepath.Join(base, KitFirst)}
	var work errgroup.Group
	for _, path := range []string{at.runc, at.first} {
		// Not in the goroutines of the group, whose threads see the machine's mounts: what is written goes through
		// descriptors that this thread has opened.
		open, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
		if err != nil {
			return at, root, img, errors.Join(err, work.Wait())
		}
		work.Go(func() error { return errors.Join(s.req.Tools.Write(filepath.Base(path), open), open.Close()) })
	}
	if s.req.Image == nil {
		img, err = toolboxImage(), s.req.Tools.UnpackToolbox(ctx, root.made)
	} else {
		root.made, img, err = s.unpackImage(ctx)
	}
	return at, root, img, errors.Join(err, work.Wait())
}

// fromKit takes what is ready in a kit.
func (s *session) fromKit(ctx context.Context, base string,
	root rootfs) (at tools, _ rootfs, img ocispec.Image, err error) {
	kit := filepath.Join(base, "kit")
	at = tools{filepath.Join(kit, KitRunc), filepath.Join(kit, KitFirst)}
	if err = os.Mkdir(kit, 0o755); err == nil {
		err = mountfd.AttachPath(int(s.req.Kit.Fd()), kit)
	}
	if err != nil {
		return at, root, img, err
	}
	if s.req.Image != nil {
		root.made, img, err = s.unpackImage(ctx)
		return at, root, img, err
	}
	toolbox := filepath.Join(kit, KitToolbox)
	if s.layOver(toolbox, root.seen, 0, 0) != nil { // this kernel, or what the kit is on, has no overlay
		err = fs.CopyDir(root.seen, toolbox)
	}
	return at, root, toolboxImage(), err
}

// layOver shows a folder at another one such that what is written to it goes into the session's own memory file system.
func (s *session) layOver(lower, at string, uid, gid int) error {
	base := s.machine.Dir(s.id)
	upper, work := filepath.Join(base, "changes"), filepath.Join(base, "work")
	for _, dir := range []string{upper, work} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.Lchown(upper, uid, gid); err != nil {
		return err
	}
	options := strings.Join([]string{"lowerdir=" + lower, "upperdir=" + upper, "workdir=" + work}, ",")
	return unix.Mount("overlay", at, "overlay", unix.MS_NODEV, options)
}

// cover mounts an image's files so that users who may debug a pod cannot fill the machine's disk: writes go to memory,
// which is bounded. Where the kernel does not support that, the files are read-only.
func (s *session) cover(fd int, at string, uid, gid int) error {
	lower := filepath.Join(s.machine.Dir(s.id), "image")
	if err := os.Mkdir(lower, 0o755); err != nil {
		return err
	}
	if err := mountfd.AttachPath(fd, lower); err != nil {
		return err
	}
	err := s.layOver(lower, at, uid, gid)
	if err == nil {
		return nil
	}
	s.note("the image's files cannot be changed here: " + err.Error())
	again, err := mountfd.Clone(lower, false, false)
	if err != nil {
		return err
	}
	defer unix.Close(again)
	return mountfd.AttachPath(again, at)
}

// toolboxImage is what runs from the built-in image.
func toolboxImage() ocispec.Image {
	return ocispec.Image{Command: []string{"/bin/sh"}, Env: []string{"PATH=/bin", "HOME=/root"}, WorkDir: "/"}
}
