// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/moby/sys/mountinfo"

	"github.com/wherryproject/wherry/internal/runtime/network"
)

// Undo takes back what Start made on the machine outside of the data folder's files, unless something uses it: the
// folder's mount, the pod network, the short name of the folder. It is for a server whose start is refused after all;
// what was there before that stays. Call it after Close, and before anybody else may work on the folder.
func (r *Runtime) Undo() error {
	var errs []error
	for _, step := range slices.Backward(r.made) {
		errs = append(errs, step())
	}
	r.made = nil
	return errors.Join(errs...)
}

// willMake notes how to take something back that is about to be made.
func (r *Runtime) willMake(undo func() error) { r.made = append(r.made, undo) }

// shareFolder is share, and notes how to take it back.
func (r *Runtime) shareFolder() error {
	mounted, err := mountinfo.Mounted(r.dirs.data)
	if err == nil && !mounted {
		r.willMake(func() error { return unshare(r.dirs.data) })
	}
	return share(r.dirs.data)
}

// unshare takes away what share made. If something is mounted below that has to do with pods, it stays.
func unshare(dir string) error {
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		return fmt.Errorf("list mounts below %s: %w", dir, err)
	}
	byID := map[int]*mountinfo.Info{}
	for _, m := range mounts {
		byID[m.ID] = m
	}
	targets := below(mounts, dir)
	own := func(m *mountinfo.Info) bool {
		return !slices.Contains(targets, m.Mountpoint) || boundOnItself(m, byID[m.Parent])
	}
	if len(targets) == 0 || slices.ContainsFunc(mounts, func(m *mountinfo.Info) bool { return !own(m) }) {
		return nil
	}
	return unmountBelow(dir)
}

// noteLink notes how to take the short name of the folder back, unless it is there.
func (r *Runtime) noteLink() {
	link := r.dirs.link
	if link == "" {
		return
	}
	if _, err := os.Lstat(link); !errors.Is(err, os.ErrNotExist) {
		return
	}
	r.willMake(func() error {
		if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		_ = os.Remove(linkRoot) // if it is empty now
		return nil
	})
}

// noteNetwork notes how to take the pod network back, unless something of it is there.
func (r *Runtime) noteNetwork(c network.Config) error {
	there, err := network.Exists(c)
	if err != nil || there {
		return err
	}
	r.willMake(func() error {
		if err := network.Leave(c); !errors.Is(err, network.ErrAttached) {
			return err
		}
		return nil
	})
	return nil
}
