// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	return out, nil
}

// volumeStats is what the volumes of a pod have that are claims.
func (a *Agent) volumeStats(uid types.UID) (out []statsapi.VolumeStats) {
	view, ok := a.workers.View(uid)
	if !ok || view.Pod == nil {
		return nil
	}
	rooms := a.volumes.Rooms(view.Pod)
	for i := range view.Pod.Spec.Volumes {
		v := &view.Pod.Spec.Volumes[i]
		r, ok := rooms[v.Name]
		if !ok {
			continue
		}
		out = append(out, statsapi.VolumeStats{Name: v.Name,
			PVCRef: &statsapi.PVCReference{Name: podspec.ClaimName(view.Pod, v), Namespace: view.Pod.Namespace},
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
				if err != nil {
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
	kib := map[string]uint64{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= 2 {
			if n, err := strconv.ParseUint(f[1], 10, 64); err == nil {
				kib[strings.TrimSuffix(f[0], ":")] = n << 10
			}
		}
	}
	total, free, available := kib["MemTotal"], kib["MemFree"], kib["MemAvailable"]
	if total == 0 || free > total || available > total || available == 0 {
		return nil, false
	}
	return &statsapi.MemoryStats{
		AvailableBytes: &available, UsageBytes: ptr.To(total - free), WorkingSetBytes: ptr.To(total - available),
	}, true
}
