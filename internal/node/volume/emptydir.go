// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// emptyDir makes the folder, writable for all, the fsGroup's if the pod has one. It is the group's from the start, and
// so is what is made in it later; fsGroupChangePolicy, which is about volumes that outlive pods, has no say here.
func (m *Manager) emptyDir(pod *corev1.Pod, v corev1.Volume) error {
	dir, gid := m.volumeDir(pod.UID, v), fsGroup(pod)
	switch v.EmptyDir.Medium {
	case corev1.StorageMediumDefault:
		return makeEmptyDir(dir, gid)
	case corev1.StorageMediumMemory:
		// sticky, as any tmpfs: Kubernetes' node leaves it so, and folders made for a subPath have it too
		opts := "mode=1777"
		if gid != nil {
			opts = "mode=3777,gid=" + strconv.FormatInt(*gid, 10)
		}
		if size := memorySize(pod, v.EmptyDir, m.cfg.Allocatable); size > 0 {
			opts += ",size=" + strconv.FormatInt(size, 10)
		}
		return mountTmpfs(dir, opts)
	}
	if isHugePages(v.EmptyDir.Medium) {
		return hugePages(pod, v.EmptyDir, dir)
	}
	return fmt.Errorf("emptyDir medium %q is not supported yet: leave it out to use the disk, or set Memory",
		v.EmptyDir.Medium)
}

// makeEmptyDir finishes the folder under another name: a folder that is there is a finished one.
func makeEmptyDir(dir string, gid *int64) error {
	if _, err := os.Lstat(dir); err == nil {
		return nil
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o750); err != nil {
		return err
	}
	tmp := filepath.Join(parent, "."+filepath.Base(dir)+".new") // no volume's name has a dot
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return err
	}
	mode := fs.FileMode(0o777)
	if gid != nil {
		if err := os.Chown(tmp, -1, int(*gid)); err != nil {
			return fmt.Errorf("changing the volume's group to fsGroup %d: %w", *gid, err)
		}
		mode |= fs.ModeSetgid
	}
	if err := os.Chmod(tmp, mode); err != nil { // apart from Mkdir: no umask
		return err
	}
	return os.Rename(tmp, dir)
}

// memorySize of a memory emptyDir in bytes: the least of its sizeLimit, the pod's memory limit and what the node can
// give; 0 leaves it to the kernel (half of the memory).
func memorySize(pod *corev1.Pod, e *corev1.EmptyDirVolumeSource, allocatable corev1.ResourceList) int64 {
	size := allocatable.Memory().Value()
	least := func(n int64) {
		if n > 0 && (size == 0 || n < size) {
			size = n
		}
	}
	least(podMemoryLimit(pod))
	if e.SizeLimit != nil {
		least(e.SizeLimit.Value())
	}
	return size
}

// podMemoryLimit in bytes, 0 when there is none: as long as one main container or sidecar may use any amount, so may
// the pod.
func podMemoryLimit(pod *corev1.Pod) int64 {
	if r := pod.Spec.Resources; r != nil {
		if q, ok := r.Limits[corev1.ResourceMemory]; ok {
			return q.Value()
		}
	}
	var sum, most int64
	for ref := range podspec.OwnContainers(&pod.Spec) {
		n := ref.Container.Resources.Limits.Memory().Value()
		switch {
		case n == 0:
			return 0
		case ref.Kind == podspec.Init:
			most = max(most, n)
		default:
			sum += n
		}
	}
	return max(sum, most)
}

// mountTmpfs mounts a tmpfs at dir unless one is there already.
func mountTmpfs(dir, opts string) error {
	return mountOwn(dir, func() error { return tmpfs(dir, opts) })
}

// mountOwn has a filesystem mounted at dir unless there is one already.
func mountOwn(dir string, mount func() error) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	there, err := isOwnFilesystem(dir)
	if err != nil || there {
		return err
	}
	return mount()
}

func tmpfs(dir, opts string) error {
	// Contents must not end up in swap; kernels before 6.4 do not know the option.
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, opts+",noswap")
	if errors.Is(err, unix.EINVAL) {
		err = unix.Mount("tmpfs", dir, "tmpfs", 0, opts)
	}
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("mounting a tmpfs (%s) needs root with CAP_SYS_ADMIN: %w", opts, err)
	}
	if err != nil {
		return fmt.Errorf("mounting a tmpfs (%s): %w", opts, err)
	}
	return nil
}

// isOwnFilesystem reports whether a filesystem other than its parent's is mounted at dir. Every tmpfs has a device
// number of its own.
func isOwnFilesystem(dir string) (bool, error) {
	var own, parent unix.Stat_t
	if err := unix.Lstat(dir, &own); err != nil {
		return false, fmt.Errorf("%s: %w", dir, err)
	}
	if err := unix.Lstat(filepath.Dir(dir), &parent); err != nil {
		return false, fmt.Errorf("%s: %w", filepath.Dir(dir), err)
	}
	return own.Dev != parent.Dev, nil
}

func fsGroup(pod *corev1.Pod) *int64 {
	if pod.Spec.SecurityContext == nil {
		return nil
	}
	return pod.Spec.SecurityContext.FSGroup
}
