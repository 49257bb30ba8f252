// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/podspec"
)

// statsSummary is what metrics-server and `kubectl get --raw …/proxy/stats/summary` read.
func (s *Server) statsSummary(w http.ResponseWriter, r *http.Request) {
	summary, err := s.summary(r.Context())
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	if r.URL.Query().Get("only_cpu_and_memory") == "true" {
		onlyCPUAndMemory(&summary)
	} else {
		s.disks(&summary)
	}
	s.writeJSON(w, r, summary)
}

// summary is what node and pods use.
func (s *Server) summary(ctx context.Context) (statsapi.Summary, error) {
	summary := statsapi.Summary{Node: statsapi.NodeStats{NodeName: s.config.NodeName}}
	if s.config.NodeStats != nil {
		node, err := s.config.NodeStats(ctx)
		if err != nil {
			return summary, fmt.Errorf("stats of the node: %w", err)
		}
		summary.Node = node
		summary.Node.NodeName = s.config.NodeName
	}
	pods, err := s.podStats(ctx)
	if err != nil {
		return summary, fmt.Errorf("stats of the pods: %w", err)
	}
	for i := range pods {
		pods[i].Swap = sumSwap(pods[i].Containers)
	}
	summary.Pods = pods
	return summary, nil
}

// podStats asks for whole pods, a pod that does not answer keeping its last figures, and for their containers of a
// runtime that cannot count pods.
func (s *Server) podStats(ctx context.Context) ([]statsapi.PodStats, error) {
	pods, err := s.config.Figures.Pods(ctx)
	if err == nil {
		return s.startTimes(fromSandboxes(pods)), nil
	}
	if !cri.Unimplemented(err) {
		return nil, err
	}
	containers, err := s.config.Figures.Containers(ctx)
	if err != nil {
		return nil, err
	}
	return s.startTimes(fromContainers(containers)), nil
}

// startTimes fills in, from the pods' statuses, what runtimes do not count.
func (s *Server) startTimes(stats []statsapi.PodStats) []statsapi.PodStats {
	byUID := map[string]*corev1.Pod{}
	for _, p := range s.config.Host.Pods() {
		byUID[string(p.UID)] = p
	}
	for i := range stats {
		pod := byUID[stats[i].PodRef.UID]
		if pod == nil {
			continue
		}
		if pod.Status.StartTime != nil {
			stats[i].StartTime = *pod.Status.StartTime
		}
		for j := range stats[i].Containers {
			c := &stats[i].Containers[j]
			if st := podspec.FindStatus(&pod.Status, c.Name); st != nil && st.State.Running != nil {
				c.StartTime = st.State.Running.StartedAt
			}
		}
	}
	return stats
}

func fromSandboxes(in []*runtimeapi.PodSandboxStats) []statsapi.PodStats {
	out := []statsapi.PodStats{}
	for _, sb := range in {
		labels := sb.GetAttributes().GetLabels()
		if labels[cri.LabelPodUID] == "" || cri.IsExec(labels) {
			continue
		}
		l := sb.GetLinux()
		p := statsapi.PodStats{
			PodRef: refOf(labels), CPU: cpuOf(l.GetCpu()), Memory: memoryOf(l.GetMemory()),
			Network: networkOf(l.GetNetwork()), Containers: []statsapi.ContainerStats{},
		}
		if n := l.GetProcess().GetProcessCount(); n != nil {
			p.ProcessStats = &statsapi.ProcessStats{ProcessCount: &n.Value}
		}
		for _, c := range l.GetContainers() {
			if !cri.IsExec(c.GetAttributes().GetLabels()) { // what it uses is in the pod's sums
				p.Containers = append(p.Containers, statsOf(c))
			}
		}
		p.EphemeralStorage = sumFs(p.Containers)
		out = append(out, p)
	}
	return sortPods(out)
}

// fromContainers adds up what the containers of each pod use; network use cannot be had this way.
func fromContainers(in []*runtimeapi.ContainerStats) []statsapi.PodStats {
	pods := map[string]*statsapi.PodStats{}
	for _, c := range in {
		labels := c.GetAttributes().GetLabels()
		uid := labels[cri.LabelPodUID]
		if uid == "" || cri.IsExec(labels) {
			continue
		}
		if pods[uid] == nil {
			pods[uid] = &statsapi.PodStats{PodRef: refOf(labels)}
		}
		pods[uid].Containers = append(pods[uid].Containers, statsOf(c))
	}
	out := []statsapi.PodStats{}
	for _, p := range pods {
		p.CPU, p.Memory, p.EphemeralStorage = sumCPU(p.Containers), sumMemory(p.Containers), sumFs(p.Containers)
		out = append(out, *p)
	}
	return sortPods(out)
}

func sortPods(p []statsapi.PodStats) []statsapi.PodStats {
	slices.SortFunc(p, func(a, b statsapi.PodStats) int {
		return cmp.Or(cmp.Compare(a.PodRef.Namespace, b.PodRef.Namespace), cmp.Compare(a.PodRef.Name, b.PodRef.Name),
			cmp.Compare(a.PodRef.UID, b.PodRef.UID))
	})
	return p
}

func refOf(labels map[string]string) statsapi.PodReference {
	return statsapi.PodReference{Name: labels[cri.LabelPodName], Namespace: labels[cri.LabelPodNamespace],
		UID: labels[cri.LabelPodUID]}
}

func statsOf(c *runtimeapi.ContainerStats) statsapi.ContainerStats {
	out := statsapi.ContainerStats{
		Name: c.GetAttributes().GetLabels()[cri.LabelContainerName], CPU: cpuOf(c.GetCpu()),
		Memory: memoryOf(c.GetMemory()),
	}
	if out.Name == "" {
		out.Name = c.GetAttributes().GetMetadata().GetName()
	}
	if l := c.GetWritableLayer(); l != nil {
		out.Rootfs = &statsapi.FsStats{Time: at(l.GetTimestamp()), UsedBytes: value(l.GetUsedBytes()),
			InodesUsed: value(l.GetInodesUsed())}
	}
	if sw := c.GetSwap(); sw != nil {
		out.Swap = &statsapi.SwapStats{Time: at(sw.GetTimestamp()),
			SwapAvailableBytes: value(sw.GetSwapAvailableBytes()), SwapUsageBytes: value(sw.GetSwapUsageBytes())}
	}
	return out
}

func cpuOf(c *runtimeapi.CpuUsage) *statsapi.CPUStats {
	if c == nil {
		return nil
	}
	return &statsapi.CPUStats{Time: at(c.GetTimestamp()), UsageNanoCores: value(c.GetUsageNanoCores()),
		UsageCoreNanoSeconds: value(c.GetUsageCoreNanoSeconds())}
}

func memoryOf(m *runtimeapi.MemoryUsage) *statsapi.MemoryStats {
	if m == nil {
		return nil
	}
	return &statsapi.MemoryStats{
		Time: at(m.GetTimestamp()), AvailableBytes: value(m.GetAvailableBytes()), UsageBytes: value(m.GetUsageBytes()),
		WorkingSetBytes: value(m.GetWorkingSetBytes()), RSSBytes: value(m.GetRssBytes()),
		PageFaults: value(m.GetPageFaults()), MajorPageFaults: value(m.GetMajorPageFaults()),
	}
}

func networkOf(n *runtimeapi.NetworkUsage) *statsapi.NetworkStats {
	if n == nil {
		return nil
	}
	face := func(i *runtimeapi.NetworkInterfaceUsage) statsapi.InterfaceStats {
		return statsapi.InterfaceStats{
			Name: i.GetName(), RxBytes: value(i.GetRxBytes()), RxErrors: value(i.GetRxErrors()),
			TxBytes: value(i.GetTxBytes()), TxErrors: value(i.GetTxErrors()),
		}
	}
	out := &statsapi.NetworkStats{Time: at(n.GetTimestamp()), InterfaceStats: face(n.GetDefaultInterface())}
	if n.GetDefaultInterface() != nil {
		out.Interfaces = append(out.Interfaces, out.InterfaceStats)
	}
	for _, i := range n.GetInterfaces() {
		out.Interfaces = append(out.Interfaces, face(i))
	}
	return out
}

func sumCPU(list []statsapi.ContainerStats) *statsapi.CPUStats {
	var out *statsapi.CPUStats
	for _, c := range list {
		if c.CPU == nil {
			continue
		}
		if out == nil {
			out = &statsapi.CPUStats{Time: c.CPU.Time}
		}
		add(&out.UsageNanoCores, c.CPU.UsageNanoCores)
		add(&out.UsageCoreNanoSeconds, c.CPU.UsageCoreNanoSeconds)
	}
	return out
}

func sumMemory(list []statsapi.ContainerStats) *statsapi.MemoryStats {
	var out *statsapi.MemoryStats
	for _, c := range list {
		if c.Memory == nil {
			continue
		}
		if out == nil {
			out = &statsapi.MemoryStats{Time: c.Memory.Time}
		}
		add(&out.UsageBytes, c.Memory.UsageBytes)
		add(&out.WorkingSetBytes, c.Memory.WorkingSetBytes)
		add(&out.RSSBytes, c.Memory.RSSBytes)
		add(&out.PageFaults, c.Memory.PageFaults)
		add(&out.MajorPageFaults, c.Memory.MajorPageFaults)
	}
	return out
}

func sumSwap(list []statsapi.ContainerStats) *statsapi.SwapStats {
	var out *statsapi.SwapStats
	for _, c := range list {
		if c.Swap == nil {
			continue
		}
		if out == nil {
			out = &statsapi.SwapStats{Time: c.Swap.Time}
		}
		add(&out.SwapUsageBytes, c.Swap.SwapUsageBytes)
	}
	return out
}

func sumFs(list []statsapi.ContainerStats) *statsapi.FsStats {
	var out *statsapi.FsStats
	for _, c := range list {
		if c.Rootfs == nil {
			continue
		}
		if out == nil {
			out = &statsapi.FsStats{Time: c.Rootfs.Time}
		}
		add(&out.UsedBytes, c.Rootfs.UsedBytes)
		add(&out.InodesUsed, c.Rootfs.InodesUsed)
	}
	return out
}

func onlyCPUAndMemory(s *statsapi.Summary) {
	s.Node.Network, s.Node.Fs, s.Node.Runtime, s.Node.Rlimit = nil, nil, nil, nil
	for i := range s.Pods {
		p := &s.Pods[i]
		p.Network, p.VolumeStats, p.EphemeralStorage, p.ProcessStats = nil, nil, nil, nil
		for j := range p.Containers {
			p.Containers[j].Rootfs, p.Containers[j].Logs = nil, nil
		}
	}
}

// add sums what is known; unknown is not zero.
func add(to **uint64, v *uint64) {
	if v == nil {
		return
	}
	sum := *v
	if *to != nil {
		sum += **to
	}
	*to = &sum
}

func value(v *runtimeapi.UInt64Value) *uint64 {
	if v == nil {
		return nil
	}
	n := v.GetValue()
	return &n
}

func at(nanos int64) metav1.Time { return metav1.NewTime(time.Unix(0, nanos)) }
