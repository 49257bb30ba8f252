// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/names/resolvers"
	"github.com/wherryproject/wherry/internal/node/cgroup"
	"github.com/wherryproject/wherry/internal/node/ops"
)

// machine is what does not change while the agent runs.
type machine struct {
	cpus       int
	memory     int64 // bytes
	disk       int64 // bytes, of the file system that pods' files lie on
	os, kernel string
	id, boot   string
	dns        *runtimeapi.DNSConfig
	apparmor   bool // the kernel confines with it
	huge       hugePages
	swap       int64 // bytes
}

func lookAtMachine(dataDir, resolvConf string) (machine, error) {
	m := machine{cpus: runtime.NumCPU()}
	var err error
	if m.memory, m.swap, err = memoryTotal(); err != nil {
		return m, err
	}
	if err := os.MkdirAll(dataDir, 0o755); err != nil {
		return m, fmt.Errorf("agent: %w", err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dataDir, &fs); err != nil {
		return m, fmt.Errorf("agent: size of the file system of %s: %w", dataDir, err)
	}
	m.disk = int64(fs.Blocks) * fs.Bsize
	var u unix.Utsname
	if err := unix.Uname(&u); err == nil {
		m.kernel = unix.ByteSliceToString(u.Release[:])
	}
	m.os = prettyName(readFile("/etc/os-release"))
	m.id = strings.TrimSpace(readFile("/etc/machine-id"))
	m.boot = strings.TrimSpace(readFile("/proc/sys/kernel/random/boot_id"))
	m.apparmor = strings.HasPrefix(readFile("/sys/module/apparmor/parameters/enabled"), "Y")
	m.huge = readHugePages(hugePagesFolder)
	m.dns = hostDNS(readFile(cmp.Or(resolvConf, resolvers.File)), readFile(resolvers.Behind))
	return m, nil
}

// readFile returns a file's contents, or nothing: what it would have shown is then left blank.
func readFile(name string) string {
	data, _ := os.ReadFile(name)
	return string(data)
}

// memoryTotal is how much memory and how much swap there is, in bytes.
func memoryTotal() (memory, swap int64, err error) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, 0, fmt.Errorf("agent: size of memory: %w", err)
	}
	memory, swap = meminfo(string(data), "MemTotal:"), meminfo(string(data), "SwapTotal:")
	if memory == 0 {
		return 0, 0, fmt.Errorf("agent: /proc/meminfo has no MemTotal")
	}
	return memory, swap, nil
}

// meminfo finds an amount in bytes in the text of /proc/meminfo; 0 if it is not there. (Pure.)
func meminfo(text, name string) int64 {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == name {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// prettyName finds the system's name in the text of /etc/os-release. (Pure.)
func prettyName(text string) string {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(v, `"'`)
		}
	}
	return "Linux"
}

// hostDNS reads the node's resolv.conf. If that names only a resolver on the loopback, which pods cannot reach, the
// list behind it is taken (systemd-resolved keeps one). (Pure.)
func hostDNS(text, behind string) *runtimeapi.DNSConfig {
	c := parseResolv(text)
	local := len(c.Servers) > 0
	for _, s := range c.Servers {
		local = local && (strings.HasPrefix(s, "127.") || s == "::1")
	}
	if local && behind != "" {
		return parseResolv(behind)
	}
	return c
}

func parseResolv(text string) *runtimeapi.DNSConfig {
	c := &runtimeapi.DNSConfig{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		switch f[0] {
		case "nameserver":
			c.Servers = append(c.Servers, f[1])
		case "search", "domain":
			c.Searches = f[1:]
		case "options":
			c.Options = append(c.Options, f[1:]...)
		}
	}
	return c
}

func (m machine) info() corev1.NodeSystemInfo {
	info := corev1.NodeSystemInfo{MachineID: m.id, SystemUUID: m.id, BootID: m.boot, KernelVersion: m.kernel,
		OSImage: m.os, OperatingSystem: "linux", Architecture: runtime.GOARCH}
	if m.swap > 0 {
		info.Swap = &corev1.NodeSwapStatus{Capacity: &m.swap}
	}
	return info
}

func (a *Agent) capacity() corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(a.machine.cpus), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(a.machine.memory, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(a.machine.disk, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(int64(a.cfg.MaxPods), resource.DecimalSI),
	}
	a.machine.huge.in(list)
	if a.devices != nil {
		a.devices.Resources(list, nil)
	}
	return list
}

// allocatable is the capacity without the memory that is huge pages and what is reserved of CPUs and memory: nothing
// else is kept back for the system, which on a machine of one's own is the owner's to say.
func (a *Agent) allocatable() corev1.ResourceList {
	list := a.capacity()
	list[corev1.ResourceMemory] = *resource.NewQuantity(max(0, a.machine.memory-a.machine.huge.total()),
		resource.BinarySI)
	if reserved := a.cfg.CPUs.Reserved.Size(); reserved > 0 {
		list[corev1.ResourceCPU] = *resource.NewQuantity(int64(max(0, a.machine.cpus-reserved)), resource.DecimalSI)
	}
	for name, bytes := range a.cfg.Placing.Reserved {
		if q, has := list[name]; has {
			list[name] = *resource.NewQuantity(max(0, q.Value()-bytes), resource.BinarySI)
		}
	}
	if a.devices != nil {
		a.devices.Resources(nil, list)
	}
	return list
}

func (a *Agent) opsNode() ops.Node {
	n := ops.Node{IPs: a.cfg.NodeIPs, Allocatable: a.allocatable(), ClusterDomain: a.cfg.ClusterDomain,
		ClusterDNS: a.cfg.ClusterDNS, HostDNS: a.machine.dns, SeccompDir: a.cfg.DataDir + "/seccomp",
		Cgroup: cgroup.Node{MemoryCapacity: a.machine.memory, Debug: a.cfg.DebugCap}, DebugImages: a.cfg.DebugImages}
	if a.cfg.Cgroups != nil {
		host := a.cfg.Cgroups.Host()
		n.Cgroup.V2, n.Cgroup.HugePageSizes = host.V2, host.HugePages
		n.Cgroup.Swap = cgroup.Swap{Controlled: host.Swap, Limited: a.cfg.LimitedSwap, Capacity: a.machine.swap}
	}
	return n
}
