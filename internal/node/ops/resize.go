// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/node/allot"
	"github.com/wherryproject/wherry/internal/node/cgroup"
	"github.com/wherryproject/wherry/internal/node/work"
)

func (r *Runner) keepAllocated(pod *corev1.Pod) error {
	if r.KeepAllocated == nil {
		return nil
	}
	return r.KeepAllocated(pod)
}

// ensureCgroup makes the pod's cgroup.
func (r *Runner) ensureCgroup(pod *corev1.Pod) error {
	if err := r.Cgroups.EnsurePod(pod); err != nil || r.CPUs == nil {
		return err
	}
	if _, unbound := r.CPUs.Unbound(pod); unbound {
		return r.Cgroups.ResizePod(pod, allot.Pod(pod).Unbound())
	}
	return nil
}

// resizePod sets what the pod's cgroup gives. A limit of memory below what is in use would have the kernel kill.
func (r *Runner) resizePod(t work.Task) error {
	if r.Cgroups == nil {
		return nil
	}
	had, ok := r.Cgroups.PodAmounts(t.Pod)
	if most := t.Give.Memory; ok && most > 0 && (had.Memory == 0 || most < had.Memory) {
		if used, ok := r.Cgroups.PodMemory(t.Pod); ok && used >= most {
			return fmt.Errorf("cannot decrease memory limits: attempting to set pod memory limit (%d) below current "+
				"usage (%d)", most, used)
		}
	}
	return r.Cgroups.ResizePod(t.Pod, t.Give)
}

// resizeContainer has the runtime give a running container what is set aside for it (PL-14).
func (r *Runner) resizeContainer(ctx context.Context, t work.Task) error {
	id := existing(t)
	if id == "" {
		return nil // gone already
	}
	c, err := containerOf(t.Pod, t.Container)
	if err != nil {
		return err
	}
	if err := r.memoryFits(ctx, t, id); err != nil {
		return err
	}
	give := cgroup.ContainerResources(t.Pod, c.spec, r.Node.Cgroup)
	give.CpuShares, give.CpuQuota, give.MemoryLimitInBytes = t.Give.Shares, t.Give.Quota, t.Give.Memory
	if give.MemorySwapLimitInBytes > 0 {
		give.MemorySwapLimitInBytes = t.Give.Memory
	}
	if give.CpuQuota == 0 {
		give.CpuQuota = -1 // none, said so: 0 leaves it as it is
	}
	if give.MemoryLimitInBytes == 0 {
		give.MemoryLimitInBytes = -1
	}
	give.HugepageLimits, give.OomScoreAdj = nil, 0 // stay as they were made
	_, err = r.CRI.Runtime.UpdateContainerResources(ctx, &runtimeapi.UpdateContainerResourcesRequest{ContainerId: id,
		Linux: give})
	if cri.NotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("resizing container %s: %s", t.Container, cri.Message(err))
	}
	return nil
}

// memoryFits refuses a limit of memory below what the container has in use.
func (r *Runner) memoryFits(ctx context.Context, t work.Task, id string) error {
	most := t.Give.Memory
	if most == 0 {
		return nil
	}
	for i := range t.Seen.Containers {
		if c := &t.Seen.Containers[i]; c.ID == id && c.Given != nil && c.Given.Memory > 0 && c.Given.Memory <= most {
			return nil
		}
	}
	s, err := r.CRI.Runtime.ContainerStats(ctx, &runtimeapi.ContainerStatsRequest{ContainerId: id})
	if err != nil {
		if cri.NotFound(err) {
			return nil
		}
		return errors.New("unable to read memory usage: " + cri.Message(err))
	}
	if used := s.GetStats().GetMemory().GetUsageBytes().GetValue(); used >= uint64(most) {
		return fmt.Errorf("cannot decrease memory limits: attempting to set container %q memory limit (%d) below "+
			"current usage (%d)", t.Container, most, used)
	}
	return nil
}

// givenTo is what the runtime says that a container's cgroup gives.
func givenTo(l *runtimeapi.LinuxContainerResources) *allot.Amounts {
	if l == nil || l.GetCpuShares() == 0 {
		return nil // it does not say
	}
	give := allot.Amounts{Shares: l.GetCpuShares(), Quota: max(l.GetCpuQuota(), 0),
		Memory: max(l.GetMemoryLimitInBytes(), 0)}
	if p := l.GetCpuPeriod(); p > 0 && p != allot.Period {
		give.Quota = give.Quota * allot.Period / p
	}
	return &give
}

// sizeText is a size as an annotation tells it.
func sizeText(s allot.Size) string {
	text, err := json.Marshal(s)
	if err != nil {
		return ""
	}
	return string(text)
}

// sizeOf reads what a container was made with; nil where it does not say.
func sizeOf(text string) *allot.Size {
	var s allot.Size
	if text == "" || json.Unmarshal([]byte(text), &s) != nil {
		return nil
	}
	return &s
}
