// SPDX-License-Identifier: Apache-2.0

package detach

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// patience is how long the kernel may take for what it does without asking a file system's server.
const patience = 10 * time.Second

// Remote detaches the remote file systems that are mounted below a folder, each with all that is mounted on it. What
// still uses one keeps it until it is done. Nothing is detached anywhere else, though mounts may be shared.
func Remote(dir string) error {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		return fmt.Errorf("reading the list of mounts: %w", err)
	}
	var errs []error
	for _, t := range pick(mounts, dir) {
		errs = append(errs, within(t.at, func() error { return t.detach() }))
	}
	return errors.Join(errs...)
}

// target is a mount to detach.
type target struct {
	at    string
	times int  // mounted over one another
	bears bool // something is mounted on a folder of it
}

// pick returns the outermost remote mounts below dir: those that no other one is on the way to. (Pure.)
func pick(mounts []*mountinfo.Info, dir string) []target {
	var out []target
	for _, m := range mounts {
		if !strings.HasPrefix(m.Mountpoint, dir+"/") || !IsRemote(m.FSType) {
			continue
		}
		i := slices.IndexFunc(out, func(t target) bool { return t.at == m.Mountpoint })
		switch {
		case i >= 0:
			out[i].times++
		case !slices.ContainsFunc(out, func(t target) bool { return strings.HasPrefix(m.Mountpoint, t.at+"/") }):
			out = append(out, target{at: m.Mountpoint, times: 1})
		}
	}
	for i := range out {
		out[i].bears = slices.ContainsFunc(mounts,
			func(m *mountinfo.Info) bool { return strings.HasPrefix(m.Mountpoint, out[i].at+"/") })
	}
	// One that is mounted above a target that was listed before goes with all below it.
	return slices.DeleteFunc(out, func(t target) bool {
		return slices.ContainsFunc(out, func(above target) bool { return strings.HasPrefix(t.at, above.at+"/") })
	})
}

// IsRemote reports whether somebody else answers for what is in a file system of a kind.
func IsRemote(kind string) bool {
	kind, _, _ = strings.Cut(kind, ".") // fuse.sshfs
	return slices.Contains([]string{"fuse", "fuseblk", "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "virtiofs",
		"lustre", "glusterfs"}, kind)
}

func (t target) detach() error {
	for range t.times {
		if t.bears { // else what is mounted on it would be unmounted wherever the mount is shared
			if err := unix.Mount("", t.at, "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil && !gone(err) {
				return fmt.Errorf("making %s private: %w", t.at, err)
			}
		}
		if err := unix.Unmount(t.at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !gone(err) {
			return fmt.Errorf("unmounting %s: %w", t.at, err)
		}
	}
	return nil
}

func gone(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
}

// within gives up waiting for what the kernel does with a mount, which cannot be called off.
func within(at string, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		return fmt.Errorf("%s cannot be unmounted: its file system does not answer; unmount it with: umount -f -l %s",
			at, at)
	}
}
