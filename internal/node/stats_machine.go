// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"
)

// nodeStats is the whole of the node's part of /stats/summary. What cannot be had is left out.
func (a *Agent) nodeStats(ctx context.Context) (statsapi.NodeStats, error) {
	out, err := machineStats(ctx)
	if err != nil {
		return out, err
	}
	out.CPU.UsageNanoCores = a.cpuRate.of(out.CPU)
	out.Fs = fsStats(a.cfg.DataDir)
	out.Network = networkStats(readText("/proc/net/dev"), readText("/proc/net/route"))
	out.Rlimit = rlimitStats(readText("/proc/sys/kernel/pid_max"), readText("/proc/loadavg"))
	out.Runtime = a.runtimeFs(ctx)
	return out, nil
}

func readText(name string) string {
	text, _ := os.ReadFile(name)
	return string(text)
}

// rate measures how much CPU was in use between two calls that are far enough apart.
type rate struct {
	mu   sync.Mutex
	at   time.Time
	used uint64
	last *uint64
}

// of returns nanoseconds per second since an earlier call; nil at the first.
func (r *rate) of(c *statsapi.CPUStats) *uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, used := c.Time.Time, *c.UsageCoreNanoSeconds
	since := now.Sub(r.at)
	switch {
	case r.at.IsZero() || used < r.used:
	case since < time.Second:
		return r.last
	default:
		r.last = ptr.To(uint64(float64(used-r.used) / since.Seconds()))
	}
	r.at, r.used = now, used
	return r.last
}

// fsStats is how full the file system of a folder is; nil where that is not known.
func fsStats(at string) *statsapi.FsStats {
	var s unix.Statfs_t
	if unix.Statfs(at, &s) != nil {
		return nil
	}
	size := uint64(s.Bsize)
	return &statsapi.FsStats{Time: metav1.Now(), AvailableBytes: ptr.To(s.Bavail * size),
		CapacityBytes: ptr.To(s.Blocks * size), UsedBytes: ptr.To((s.Blocks - s.Bfree) * size),
		InodesFree: ptr.To(s.Ffree), Inodes: ptr.To(s.Files), InodesUsed: ptr.To(s.Files - s.Ffree)}
}

// runtimeFs is what images and containers' layers use, and of which file systems.
func (a *Agent) runtimeFs(ctx context.Context) *statsapi.RuntimeStats {
	info, err := a.cfg.CRI.Images.ImageFsInfo(ctx, &runtimeapi.ImageFsInfoRequest{})
	if err != nil {
		return nil
	}
	use := func(list []*runtimeapi.FilesystemUsage) *statsapi.FsStats {
		for _, f := range list {
			if out := fsStats(f.GetFsId().GetMountpoint()); out != nil {
				out.UsedBytes = ptr.To(f.GetUsedBytes().GetValue())
				if n := f.GetInodesUsed(); n != nil {
					out.InodesUsed = ptr.To(n.GetValue())
				}
				return out
			}
		}
		return nil
	}
	return &statsapi.RuntimeStats{ImageFs: use(info.GetImageFilesystems()),
		ContainerFs: use(info.GetContainerFilesystems())}
}

// networkStats reads the counters of the machine's interfaces; the default one is that of the default route. (Pure.)
func networkStats(dev, route string) *statsapi.NetworkStats {
	usual := ""
	for line := range strings.Lines(route) {
		if f := strings.Fields(line); len(f) > 7 && f[1] == "00000000" && f[7] == "00000000" && usual == "" {
			usual = f[0]
		}
	}
	out := &statsapi.NetworkStats{Time: metav1.Now()}
	for line := range strings.Lines(dev) {
		name, rest, ok := strings.Cut(line, ":")
		f := strings.Fields(rest)
		name = strings.TrimSpace(name)
		if !ok || len(f) < 16 || name == "lo" || strings.HasPrefix(name, "veth") {
			continue
		}
		i := statsapi.InterfaceStats{Name: name, RxBytes: count(f[0]), RxErrors: count(f[2]), TxBytes: count(f[8]),
			TxErrors: count(f[10])}
		out.Interfaces = append(out.Interfaces, i)
		if name == usual {
			out.InterfaceStats = i
		}
	}
	if len(out.Interfaces) == 0 {
		return nil
	}
	return out
}

// rlimitStats reads how many processes and threads there are, and may be. (Pure.)
func rlimitStats(most, loadavg string) *statsapi.RlimitStats {
	limit, f := count(strings.TrimSpace(most)), strings.Fields(loadavg)
	if limit == nil || len(f) < 4 {
		return nil
	}
	_, all, _ := strings.Cut(f[3], "/")
	now := count(all)
	if now == nil {
		return nil
	}
	return &statsapi.RlimitStats{Time: metav1.Now(), MaxPID: ptr.To(int64(*limit)),
		NumOfRunningProcesses: ptr.To(int64(*now))}
}

func count(text string) *uint64 {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return nil
	}
	return &n
}
