// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"io/fs"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/node/evict"
)

// use measures what pods use. Folders are read only if disk is set: that takes long.
func (a *Agent) use(ctx context.Context, pods []*corev1.Pod, disk bool) ([]evict.Candidate, error) {
	stats, err := a.runtimeUse(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]evict.Candidate, 0, len(pods))
	for _, p := range pods {
		c := evict.Candidate{Pod: p}
		if s := stats[p.UID]; s != nil {
			c.Use, c.Containers = s.Use, s.Containers
		}
		if disk {
			a.diskUse(&c)
		}
		out = append(out, c)
	}
	return out, nil
}

// runtimeUse asks the runtime about all pods, by UID. What debug containers and image execs in a pod use is in the
// pod's sums (EC-18): they are in its cgroup.
func (a *Agent) runtimeUse(ctx context.Context) (map[types.UID]*evict.Candidate, error) {
	out := map[types.UID]*evict.Candidate{}
	sandboxes, err := a.figures.Pods(ctx)
	if err != nil && !cri.Unimplemented(err) {
		return nil, err
	}
	for _, s := range sandboxes {
		labels := s.GetAttributes().GetLabels()
		if uid := types.UID(labels[cri.LabelPodUID]); uid != "" && !cri.IsExec(labels) {
			out[uid] = &evict.Candidate{Use: evict.Use{Memory: int64(s.GetLinux().GetMemory().GetWorkingSetBytes().GetValue()),
				Processes: int64(s.GetLinux().GetProcess().GetProcessCount().GetValue())}}
		}
	}
	// Asked apart: within a pod's statistics some runtimes leave out those of its containers that do not run.
	containers, err := a.figures.Containers(ctx)
	if err != nil {
		return nil, err
	}
	summed := map[types.UID]bool{} // by the runtime
	for uid := range out {
		summed[uid] = out[uid].Memory > 0
	}
	for _, s := range containers {
		labels := s.GetAttributes().GetLabels()
		uid := types.UID(labels[cri.LabelPodUID])
		if uid == "" {
			continue
		}
		u := evict.ContainerUse{Name: labels[cri.LabelContainerName], Exec: cri.IsExec(labels),
			Layer: int64(s.GetWritableLayer().GetUsedBytes().GetValue())}
		u.Memory, u.Disk = int64(s.GetMemory().GetWorkingSetBytes().GetValue()), u.Layer
		u.Inodes = int64(s.GetWritableLayer().GetInodesUsed().GetValue())
		if out[uid] == nil {
			out[uid] = &evict.Candidate{}
		}
		c := out[uid]
		c.Containers = append(c.Containers, u)
		c.Disk, c.Inodes = c.Disk+u.Disk, c.Inodes+u.Inodes
		if !summed[uid] {
			c.Memory += u.Memory
		}
	}
	return out, nil
}

// diskUse adds the pod's logs and emptyDirs. What cannot be read counts as nothing: it is most likely being removed.
func (a *Agent) diskUse(c *evict.Candidate) {
	for i := range c.Containers {
		u := &c.Containers[i]
		if u.Exec || u.Name == "" {
			continue
		}
		u.Logs = sizeOf(filepath.Join(a.cfg.Logs.Of(c.Pod), u.Name))
		u.Disk += u.Logs
		c.Disk += u.Logs
	}
	volumes, err := a.volumes.Usage(c.Pod.UID)
	if err != nil {
		a.log.Warn("cannot measure all volumes", "pod", c.Pod.Namespace+"/"+c.Pod.Name, "err", err)
	}
	c.Volumes = make(map[string]int64, len(volumes))
	for name, used := range volumes {
		c.Volumes[name] = used.Bytes
		c.Disk, c.Inodes = c.Disk+used.Bytes, c.Inodes+used.Inodes
	}
}

// sizeOf adds up the files in a folder.
func sizeOf(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // files come and go while we look
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return nil
	})
	return n
}
