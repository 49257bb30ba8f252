// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Filling is how full a volume is, and its file system.
type Filling struct {
	Name string
	Used
	Capacity, Available, Inodes, InodesFree int64
}

// Fillings measures the volumes of a pod that the node has made, in the order of the spec; those that cannot be
// measured, as they are being made or removed, are left out. It reads every folder, as Usage does.
func (m *Manager) Fillings(pod *corev1.Pod) (out []Filling) {
	for _, v := range mounted(pod) {
		// these are reported elsewhere
		if v.HostPath != nil || v.Image != nil || v.CSI != nil || podspec.ClaimName(pod, &v) != "" {
			continue
		}
		dir := m.volumeDir(pod.UID, v)
		var s unix.Statfs_t
		own, err := isOwnFilesystem(dir)
		if err != nil || unix.Statfs(dir, &s) != nil {
			continue
		}
		f := Filling{Name: v.Name, Capacity: int64(s.Blocks) * s.Bsize, Available: int64(s.Bavail) * s.Bsize,
			Inodes: int64(s.Files), InodesFree: int64(s.Ffree)}
		if own { // a memory file system, all of which is the volume
			f.Used = Used{Bytes: int64(s.Blocks-s.Bfree) * s.Bsize, Inodes: int64(s.Files - s.Ffree)}
		} else {
			below, err := mountedBelow(dir)
			if err != nil {
				continue
			}
			w := walk{seen: map[uint64]bool{}, mounted: below}
			w.count(dir, mostSteps)
			f.Used = w.used
		}
		out = append(out, f)
	}
	return out
}
