// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/node/cgroup"
	"github.com/wherryproject/wherry/internal/node/httpapi"
	"github.com/wherryproject/wherry/internal/podspec"
)

// volumeAge is how old the reported figures of volumes may be: measuring reads every folder. It is the kubelet's.
const volumeAge = time.Minute

// podDisks measures what pods have on disk, for those who ask.
type podDisks struct {
	agent *Agent
	mu    sync.Mutex
	seen  map[types.UID]volumesSeen
}

type volumesSeen struct {
	at    time.Time
	stats []statsapi.VolumeStats
}

// of returns what a pod has on disk: its volumes as they were within volumeAge, its claims and logs as they are.
func (d *podDisks) of(pod *corev1.Pod) httpapi.PodDisk {
	out := httpapi.PodDisk{Volumes: slices.Concat(d.volumes(pod), d.agent.claimStats(context.Background(), pod)),
		Logs: map[string]uint64{}}
	for ref := range podspec.Containers(&pod.Spec) {
		name := ref.Container.Name
		out.Logs[name] = uint64(sizeOf(filepath.Join(d.agent.cfg.Logs.Of(pod), name)))
	}
	return out
}

// podCgroups reads a pod's cgroup and those of its containers, by their ids; nothing where the runtime makes them as it
// likes.
func (a *Agent) podCgroups(pod *corev1.Pod, containers []string) (cgroup.Figures, map[string]cgroup.Figures) {
	if a.cfg.Cgroups == nil {
		return cgroup.Figures{}, nil
	}
	return a.cfg.Cgroups.Host().Figures(a.cfg.Cgroups.ParentOf(pod), containers)
}

func (d *podDisks) volumes(pod *corev1.Pod) []statsapi.VolumeStats {
	d.mu.Lock()
	kept, ok := d.seen[pod.UID]
	d.mu.Unlock()
	if ok && time.Since(kept.at) < volumeAge {
		return kept.stats
	}
	now := volumesSeen{at: time.Now()}
	for _, f := range d.agent.volumes.Fillings(pod) {
		now.stats = append(now.stats, statsapi.VolumeStats{Name: f.Name, FsStats: statsapi.FsStats{
			Time: metav1.NewTime(now.at), AvailableBytes: ptr.To(uint64(f.Available)),
			CapacityBytes: ptr.To(uint64(f.Capacity)), UsedBytes: ptr.To(uint64(f.Bytes)),
			InodesFree: ptr.To(uint64(f.InodesFree)), Inodes: ptr.To(uint64(f.Inodes)),
			InodesUsed: ptr.To(uint64(f.Used.Inodes))}})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for uid, v := range d.seen { // of pods that are gone, too
		if time.Since(v.at) > volumeAge {
			delete(d.seen, uid)
		}
	}
	if d.seen == nil {
		d.seen = map[types.UID]volumesSeen{}
	}
	d.seen[pod.UID] = now
	return now.stats
}
