// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/detach"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Room is what the file system of a volume has. With a project quota it is the volume's own size.
type Room struct{ Bytes, Free, Used, Inodes, InodesFree, InodesUsed uint64 }

// Rooms asks the file systems of the volumes that a pod's claims are, by volume. One that is remote is not asked: it
// may not answer.
func (m *Manager) Rooms(pod *corev1.Pod) map[string]Room {
	out := map[string]Room{}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if podspec.ClaimName(pod, v) == "" {
			continue
		}
		if room, ok := roomAt(m.volumeDir(pod.UID, *v)); ok {
			out[v.Name] = room
		}
	}
	return out
}

func roomAt(dir string) (Room, bool) {
	mounts, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(dir))
	if err != nil || len(mounts) == 0 || detach.IsRemote(mounts[0].FSType) {
		return Room{}, false
	}
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return Room{}, false
	}
	size := uint64(st.Bsize)
	return Room{Bytes: st.Blocks * size, Free: st.Bavail * size, Used: (st.Blocks - st.Bfree) * size,
		Inodes: st.Files, InodesFree: st.Ffree, InodesUsed: st.Files - st.Ffree}, true
}
