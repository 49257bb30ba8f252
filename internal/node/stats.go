// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/podspec"
)

// tick is the unit of /proc/stat (proc_stat(5)): USER_HZ is 100 on every machine that Linux still runs on.
const tick = 10 * time.Millisecond

// machineStats is the node's part of /stats/summary: what the whole machine uses.
func machineStats(context.Context) (statsapi.NodeStats, error) {
	now := metav1.Now()
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return statsapi.NodeStats{}, fmt.Errorf("use of the processors: %w", err)
	}
	meminfo, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return statsapi.NodeStats{}, fmt.Errorf("use of memory: %w", err)
	}
	out := statsapi.NodeStats{}
	busy, boot, ok := parseStat(string(stat))
	if !ok {
		return out, fmt.Errorf("use of the processors: /proc/stat has no line cpu and btime")
	}
	out.StartTime = metav1.NewTime(boot)
	out.CPU = &statsapi.CPUStats{Time: now, UsageCoreNanoSeconds: ptr.To(uint64(busy))}
	out.Memory, ok = parseMeminfo(string(meminfo))
	if !ok {
		return out, fmt.Errorf("use of memory: /proc/meminfo lacks MemTotal, MemFree or MemAvailable")
	}
	out.Memory.Time = now
	out.Memory.PageFaults, out.Memory.MajorPageFaults = parseFaults(readText("/proc/vmstat"))
	out.Swap = parseSwap(string(meminfo), now)
	return out, nil
}

// claimStats is what the volumes of a pod have that are claims.
func (a *Agent) claimStats(ctx context.Context, pod *corev1.Pod) []statsapi.VolumeStats {
	out, done := a.driverStats(ctx, pod)
	rooms := a.volumes.Rooms(pod)
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		r, ok := rooms[v.Name]
		if !ok || done[v.Name] {
			continue
		}
		out = append(out, statsapi.VolumeStats{Name: v.Name,
			PVCRef: &statsapi.PVCReference{Name: podspec.ClaimName(pod, v), Namespace: pod.Namespace},
			FsStats: statsapi.FsStats{Time: metav1.Now(), AvailableBytes: &r.Free, CapacityBytes: &r.Bytes,
				UsedBytes: &r.Used, InodesFree: &r.InodesFree, Inodes: &r.Inodes, InodesUsed: &r.InodesUsed}})
	}
	return out
}

// parseStat reads how long the processors have worked since the machine started, and when that was. Guests' time is in
// the user's already; waiting for a disk and time that the hypervisor took are no work. (Pure.)
func parseStat(text string) (busy time.Duration, boot time.Time, ok bool) {
	haveCPU, haveBoot := false, false
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 8 && f[0] == "cpu":
			for _, i := range []int{1, 2, 3, 6, 7} { // user, nice, system, irq, softirq
				n, err := strconv.ParseInt(f[i], 10, 64)
				if err != nil || n < 0 || time.Duration(n) > (math.MaxInt64-busy)/tick {
					return 0, boot, false
				}
				busy += time.Duration(n) * tick
			}
			haveCPU = true
		case len(f) == 2 && f[0] == "btime":
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return 0, boot, false
			}
			boot, haveBoot = time.Unix(n, 0), true
		}
	}
	return busy, boot, haveCPU && haveBoot
}

// parseMeminfo reads what memory is in use: the working set is what could not be had by a program that wants it.
// (Pure.)
func parseMeminfo(text string) (*statsapi.MemoryStats, bool) {
	kib := meminfoBytes(text)
	total, free, available := kib["MemTotal"], kib["MemFree"], kib["MemAvailable"]
	if total == 0 || free > total || available > total || available == 0 {
		return nil, false
	}
	return &statsapi.MemoryStats{
		AvailableBytes: &available, UsageBytes: ptr.To(total - free), WorkingSetBytes: ptr.To(total - available),
		RSSBytes: ptr.To(kib["AnonPages"]),
	}, true
}

// meminfoBytes reads /proc/meminfo. (Pure.)
func meminfoBytes(text string) map[string]uint64 {
	out := map[string]uint64{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= 2 {
			if n, err := strconv.ParseUint(f[1], 10, 64); err == nil {
				out[strings.TrimSuffix(f[0], ":")] = n << 10
			}
		}
	}
	return out
}

// parseSwap reads how much of the swap space is in use: none, where there is none. (Pure.)
func parseSwap(meminfo string, now metav1.Time) *statsapi.SwapStats {
	of := meminfoBytes(meminfo)
	total, free := of["SwapTotal"], of["SwapFree"]
	return &statsapi.SwapStats{Time: now, SwapAvailableBytes: &free, SwapUsageBytes: ptr.To(total - min(free, total))}
}

// parseFaults reads how often a page was not there, and had to be read from a disk. (Pure.)
func parseFaults(vmstat string) (all, major *uint64) {
	for line := range strings.Lines(vmstat) {
		switch f := strings.Fields(line); {
		case len(f) != 2:
		case f[0] == "pgfault":
			all = count(f[1])
		case f[0] == "pgmajfault":
			major = count(f[1])
		}
	}
	return all, major
}
