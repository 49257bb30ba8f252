// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/mountfd"
)

// cloneRoot copies the mounts that a process sees, from its root on, with all below it.
func (h *held) cloneRoot(writable bool) (int, error) {
	type result struct {
		fd  int
		err error
	}
	done := make(chan result)
	go func() {
		// The kernel copies mounts of one's own mount namespace only. The thread that has joined another is not used
		// for anything else: it ends with this function.
		runtime.LockOSThread()
		fd, err := -1, unix.Unshare(unix.CLONE_FS)
		if err == nil {
			err = unix.Setns(int(h.mount.Fd()), unix.CLONE_NEWNS)
		}
		if err == nil {
			fd, err = mountfd.CloneAt(int(h.root.Fd()), "", true, writable)
		}
		done <- result{fd, err}
	}()
	r := <-done
	return r.fd, r.err
}

// showAlive shows the files of a process at a folder.
func showAlive(h *held, at string, writable bool) error {
	fd, err := h.cloneRoot(writable)
	if err != nil {
		return fmt.Errorf("its files cannot be shown: %w", err)
	}
	defer unix.Close(fd)
	if err := mountfd.AttachPath(fd, at); err != nil {
		return fmt.Errorf("its files cannot be shown: %w", err)
	}
	return nil
}

// maxOverlay is how much mount takes of options: a page.
const maxOverlay = 4095

// showDead shows the layers of a container that does not run at a folder, with its volumes in their places. What of the
// volumes cannot be had comes back as notes.
func showDead(ctx context.Context, c *engines.Container, at string) (notes []string, err error) {
	if err := mountLayers(c.Layers, at); err != nil {
		return nil, fmt.Errorf("its files cannot be shown: %w", err)
	}
	root, err := os.OpenFile(at, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	tries := mountfd.MostTries
	binds := slices.Clone(c.Binds)
	slices.SortStableFunc(binds, func(a, b engines.Bind) int { // a volume in a volume comes after it
		return strings.Count(filepath.Clean(a.At), "/") - strings.Count(filepath.Clean(b.At), "/")
	})
	for _, b := range binds {
		if ofKernel(b.At) {
			continue
		}
		switch err := bindInto(ctx, root, b, &tries); {
		case ctx.Err() != nil:
			return notes, ctx.Err()
		case err != nil:
			notes = append(notes, fmt.Sprintf("%s is not shown: %v", b.At, err))
		}
	}
	return notes, nil
}

// mountLayers mounts layers read-only.
func mountLayers(l *engines.Layers, at string) error {
	if l == nil || len(l.Overlay) == 0 {
		return errors.New("its engine does not tell where they are")
	}
	if len(l.Overlay) == 1 {
		fd, err := mountfd.Clone(l.Overlay[0], false, false)
		if err != nil {
			return fmt.Errorf("folder %s: %w", l.Overlay[0], err)
		}
		defer unix.Close(fd)
		return mountfd.AttachPath(fd, at)
	}
	for _, dir := range l.Overlay {
		if strings.ContainsAny(dir, ":,\\") {
			return fmt.Errorf("folder %q cannot be a layer", dir)
		}
	}
	options := strings.Join(append([]string{"lowerdir=" + strings.Join(l.Overlay, ":")}, l.Options...), ",")
	if len(options) > maxOverlay {
		return overlayByPieces(l, at)
	}
	return unix.Mount("overlay", at, "overlay", unix.MS_RDONLY|unix.MS_NODEV, options)
}

// overlayByPieces mounts more layers than fit into a page of options (Linux 6.5).
func overlayByPieces(l *engines.Layers, at string) error {
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fs)
	for _, dir := range l.Overlay {
		if err := unix.FsconfigSetString(fs, "lowerdir+", dir); err != nil {
			return fmt.Errorf("%d layers are more than this kernel mounts: %w", len(l.Overlay), err)
		}
	}
	for _, o := range l.Options {
		key, value, ok := strings.Cut(o, "=")
		if ok {
			err = unix.FsconfigSetString(fs, key, value)
		} else {
			err = unix.FsconfigSetFlag(fs, key)
		}
		if err != nil {
			return fmt.Errorf("option %s: %w", o, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return err
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return mountfd.AttachPath(fd, at)
}

// bindInto binds a volume into the root of its container, to where the container's own processes would find it.
func bindInto(ctx context.Context, root *os.File, b engines.Bind, tries *int) error {
	fd, err := mountfd.Clone(b.From, true, false)
	if errors.Is(err, unix.ENOENT) {
		return errors.New("it is no longer on the machine")
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
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

// ofKernel: the path lies in what a container has from the kernel, which is not in its root filesystem.
func ofKernel(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(filepath.Clean("/"+path), "/"), "/")
	return first == "dev" || first == "proc" || first == "sys"
}
