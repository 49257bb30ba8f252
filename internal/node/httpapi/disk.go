// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// PodDisk is what a pod has on the node's disk besides the layers of its containers.
type PodDisk struct {
	Volumes []statsapi.VolumeStats
	Logs    map[string]uint64 // bytes, by container
}

// disks completes a summary by what pods have on disk, and by how full the file systems are that it is on.
func (s *Server) disks(summary *statsapi.Summary) {
	pods := map[string]*corev1.Pod{}
	for _, p := range s.config.Host.Pods() {
		pods[string(p.UID)] = p
	}
	node, layers := summary.Node.Fs, (*statsapi.FsStats)(nil)
	if r := summary.Node.Runtime; r != nil {
		if layers = r.ContainerFs; layers == nil {
			layers = r.ImageFs
		}
	}
	for i := range summary.Pods {
		p := &summary.Pods[i]
		for j := range p.Containers {
			within(p.Containers[j].Rootfs, layers)
		}
		if pod := pods[p.PodRef.UID]; pod != nil && s.config.PodDisk != nil {
			ofPod(p, pod, s.config.PodDisk(pod), node)
		}
		within(p.EphemeralStorage, node)
	}
}

// ofPod adds logs to containers, and volumes to the pod; those that are no memory count as its storage.
func ofPod(p *statsapi.PodStats, pod *corev1.Pod, disk PodDisk, node *statsapi.FsStats) {
	p.VolumeStats = disk.Volumes
	if p.EphemeralStorage == nil {
		p.EphemeralStorage = &statsapi.FsStats{Time: metav1.Now()}
	}
	storage := p.EphemeralStorage
	for j := range p.Containers {
		c := &p.Containers[j]
		used, ok := disk.Logs[c.Name]
		if !ok {
			continue
		}
		c.Logs = &statsapi.FsStats{Time: metav1.Now(), UsedBytes: &used}
		within(c.Logs, node)
		add(&storage.UsedBytes, &used)
	}
	onDisk := map[string]bool{}
	for i := range pod.Spec.Volumes {
		e := pod.Spec.Volumes[i].EmptyDir
		onDisk[pod.Spec.Volumes[i].Name] = e != nil && e.Medium == corev1.StorageMediumDefault
	}
	for i := range disk.Volumes {
		if v := &disk.Volumes[i]; onDisk[v.Name] {
			add(&storage.UsedBytes, v.UsedBytes)
			add(&storage.InodesUsed, v.InodesUsed)
		}
	}
}

// within says of something how full the file system is that it lies in.
func within(f, fs *statsapi.FsStats) {
	if f == nil || fs == nil {
		return
	}
	f.AvailableBytes, f.CapacityBytes = fs.AvailableBytes, fs.CapacityBytes
	f.InodesFree, f.Inodes = fs.InodesFree, fs.Inodes
}
