// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Usage measures the pod's emptyDir volumes on disk: bytes allocated, by volume. Files with several links count once, other
// filesystems mounted in them not at all. A memory emptyDir is not here: the kernel holds it to its size. It reads every
// folder, so it is not for every second.
func (m *Manager) Usage(uid types.UID) (map[string]int64, error) {
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
	out := map[string]int64{}
	for _, e := range entries {
		at := filepath.Join(parent, e.Name())
		if e.Name()[0] == '.' { // half made
			continue
		}
		if mounted, err := isOwnFilesystem(at); err != nil || mounted {
			continue
		}
		n, err := allocated(at)
		if err != nil {
			return nil, fmt.Errorf("measuring emptyDir %s: %w", e.Name(), err)
		}
		out[e.Name()] = n
	}
	return out, nil
}

// OverLimit lists the pod's emptyDir volumes that hold more than their sizeLimit, by a measurement of Usage. (Pure.)
func OverLimit(pod *corev1.Pod, usage map[string]int64) []string {
	var out []string
	for _, v := range pod.Spec.Volumes {
		if v.EmptyDir == nil || v.EmptyDir.SizeLimit == nil {
			continue
		}
		if limit := v.EmptyDir.SizeLimit.Value(); limit > 0 && usage[v.Name] > limit {
			out = append(out, v.Name)
		}
	}
	return out
}

func allocated(root string) (int64, error) {
	type inode struct{ dev, ino uint64 }
	var total int64
	var device uint64
	seen := map[inode]bool{}
	err := filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // files come and go while we look
			return nil
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return nil
		}
		if device == 0 {
			device = st.Dev
		}
		if st.Dev != device {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if st.Nlink > 1 && !d.IsDir() {
			if k := (inode{st.Dev, st.Ino}); seen[k] {
				return nil
			} else {
				seen[k] = true
			}
		}
		total += st.Blocks * 512
		return nil
	})
	return total, err
}
