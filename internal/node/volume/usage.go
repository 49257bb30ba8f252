// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// longPath is how long a path gets before the walk goes on from an open folder: the kernel takes 4096 bytes, and a
	// program in a pod may nest folders as deep as it likes.
	longPath = 3000
	// mostSteps of that kind are taken; what lies deeper is not counted, and reported in the error.
	mostSteps = 64
)

// Used is what a volume holds.
type Used struct{ Bytes, Inodes int64 }

// Usage measures the pod's emptyDir volumes on disk: what is allocated, by volume. Files with several links count once,
// other filesystems mounted in them not at all. A memory emptyDir is not here: the kernel holds it to its size. What of
// a volume cannot be measured is reported in the error; the rest counts. It reads every folder, so it is not for every
// second.
func (m *Manager) Usage(uid types.UID) (map[string]Used, error) {
	dir, err := m.podDir(uid)
	if err != nil {
		return nil, err
	}
	parent := filepath.Join(dir, "volumes", "kubernetes.io~empty-dir")
	entries, err := os.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	mounted, err := mountedBelow(parent)
	if err != nil {
		return nil, err
	}
	out := map[string]Used{}
	var errs []error
	for _, e := range entries {
		at := filepath.Join(parent, e.Name())
		if e.Name()[0] == '.' { // half made
			continue
		}
		if mounted[at] {
			continue
		}
		w := walk{seen: map[uint64]bool{}, mounted: mounted}
		w.count(at, mostSteps)
		if w.failed != nil {
			errs = append(errs, fmt.Errorf("measuring emptyDir %s: %w", e.Name(), w.failed))
		}
		out[e.Name()] = w.used
	}
	return out, errors.Join(errs...)
}

// mountedBelow finds the mount points below a folder, without a look at any of them.
func mountedBelow(dir string) (map[string]bool, error) {
	list, err := mountsBelow(dir)
	if err != nil {
		return nil, err
	}
	out := make(map[string]bool, len(list))
	for _, at := range list {
		out[at] = true
	}
	return out, nil
}

// walk adds up what lies below a folder on its filesystem.
type walk struct {
	used   Used
	device uint64
	// mounted are paths that are not looked at: a filesystem that does not answer may be there.
	mounted map[string]bool
	seen    map[uint64]bool // inodes that have several links
	failed  error           // the first fault: a program in a pod may make as many as it likes
}

// count goes through a folder. Its faults end nothing.
func (w *walk) count(root string, steps int) {
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if w.mounted[path] {
			if err == nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // files come and go while we look
			return nil
		case err != nil:
			w.fail(err)
			return nil
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		switch {
		case !ok || path == root && steps < mostSteps: // counted when the walk came to it
			return nil
		case w.device == 0:
			w.device = st.Dev
		case st.Dev != w.device && d.IsDir():
			return fs.SkipDir
		case st.Dev != w.device:
			return nil
		}
		w.add(st, d.IsDir())
		if !d.IsDir() || len(path) < longPath {
			return nil
		}
		w.deeper(path, steps-1)
		return fs.SkipDir
	})
}

func (w *walk) fail(err error) {
	if w.failed == nil {
		w.failed = err
	}
}

func (w *walk) add(st *syscall.Stat_t, dir bool) {
	if st.Nlink > 1 && !dir {
		if w.seen[st.Ino] {
			return
		}
		w.seen[st.Ino] = true
	}
	w.used.Bytes += st.Blocks * 512
	w.used.Inodes++
}

// deeper goes on from a folder whose path is long, by a short one to the same folder.
func (w *walk) deeper(path string, steps int) {
	if steps == 0 {
		w.fail(errors.New("folders are nested too deeply: the deepest levels are not counted"))
		return
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT):
	case err != nil:
		w.fail(&fs.PathError{Op: "open", Path: path[:80] + "…", Err: err})
	default:
		defer unix.Close(fd)
		w.count(fmt.Sprintf("/proc/self/fd/%d/.", fd), steps)
	}
}
