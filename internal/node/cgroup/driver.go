// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	"github.com/opencontainers/cgroups/systemd"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/allot"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Driver makes, changes and removes the cgroups of pods. Its methods may be called at the same time for different pods.
type Driver interface {
	// Name is "cgroupfs" or "systemd", as the runtime must have it.
	Name() string
	// Setup makes the cgroups of the QoS classes. It is idempotent.
	Setup() error
	// ParentOf is the cgroup parent of a pod for the CRI. It decides only; EnsurePod makes it.
	ParentOf(pod *corev1.Pod) string
	// EnsurePod makes the pod's cgroup and gives it what ResourcesOf says. It is idempotent, and follows a pod that was
	// resized.
	EnsurePod(pod *corev1.Pod) error
	// ResizePod changes what the pod's cgroup gives, and nothing else of it. It makes none.
	ResizePod(pod *corev1.Pod, give allot.Amounts) error
	// PodAmounts reads what the pod's cgroup gives; not ok where there is none that can be read.
	PodAmounts(pod *corev1.Pod) (give allot.Amounts, ok bool)
	// PodMemory reads how much memory the pod's cgroup has in use, in bytes.
	PodMemory(pod *corev1.Pod) (bytes int64, ok bool)
	// RemovePod removes the pod's cgroup in every hierarchy, and the empty ones the runtime left in it. A cgroup that
	// still has processes is an error that names them; one that is not there is fine.
	RemovePod(uid types.UID) error
	// EndPod kills what is in a pod's cgroup, and waits until it has ended: how many processes that were. It is for
	// what its runtime knows nothing of; a pod that has no cgroup has no processes. One that cannot be ended within
	// some seconds is an error.
	EndPod(ctx context.Context, uid types.UID) (ended int, err error)
	// LimitPIDs bounds the processes and threads of a container that has been started, by its id and its pod's cgroup
	// parent. It is for cgroup v1: on v2, where it does nothing, the runtime is asked for it (DebugResources).
	LimitPIDs(parent, container string, most int64) error
	// HasPod reports whether anything of a pod's cgroup is there, in any hierarchy.
	HasPod(uid types.UID) bool
	// Teardown removes the cgroups of the classes and the root, for when the server is purged. Pods must be gone.
	Teardown() error
	// List names the pods that have a cgroup.
	List() ([]types.UID, error)
	// Unified is the folder of the cgroup of all pods in the unified hierarchy, and how deep it lies there; empty if
	// there is no such hierarchy. Setup makes it.
	Unified() (folder string, depth int)
	// Host is what was detected or configured.
	Host() Host
}

// Host is how this machine does cgroups.
type Host struct {
	V2        bool     // the unified hierarchy only; false also for hybrid
	Systemd   bool     // name and make cgroups through systemd
	HugePages []string // sizes of huge pages that can be limited, as the kernel names them
	Swap      bool     // what a cgroup swaps out can be limited by itself (v2)
	// Mounts are the roots of the hierarchies by controller ("memory", "cpu", "name=systemd"); on v2 by "".
	Mounts map[string]string
}

// Config is what a Driver needs to know.
type Config struct {
	Host Host
	// Root goes above kubepods, so that servers with different data folders do not meet; "" for the default one.
	Root string
	// Limits are given to every pod.
	Limits Limits
	// Allocatable CPU and memory bound all pods together; what is not named is not bounded.
	Allocatable corev1.ResourceList
}

// Detect finds out how this machine does cgroups. Systemd is chosen where it runs, as it may undo what others do to its
// tree.
func Detect() (Host, error) {
	h := Host{V2: cgroups.IsCgroup2UnifiedMode(), Systemd: systemd.IsRunningSystemd(), Mounts: map[string]string{}}
	if h.V2 {
		h.Mounts[""] = unifiedRoot
		if slices.Contains(strings.Fields(readAll(filepath.Join(unifiedRoot, "cgroup.controllers"))), "hugetlb") {
			h.HugePages = cgroups.HugePageSizes()
		}
		h.Swap = swapControlled()
		return h, nil
	}
	mounts, err := cgroups.GetCgroupMounts(true)
	if err != nil {
		return h, fmt.Errorf("cgroups: %w", err)
	}
	for _, m := range mounts {
		for _, s := range m.Subsystems {
			if s == "systemd" { // no controller; the library lists it without, but wants it with its prefix
				s = "name=systemd"
			}
			h.Mounts[s] = m.Mountpoint
		}
	}
	if h.Mounts["hugetlb"] != "" {
		h.HugePages = cgroups.HugePageSizes()
	}
	if cgroups.IsCgroup2HybridMode() {
		h.Mounts[""] = "/sys/fs/cgroup/unified"
	}
	for _, need := range []string{"cpu", "memory"} {
		if h.Mounts[need] == "" {
			return h,
				fmt.Errorf("cgroups: the %s controller is not mounted: mount cgroup v2 at /sys/fs/cgroup, or the v1 controllers below it", need)
		}
	}
	return h, nil
}

// unifiedRoot is where the unified hierarchy is.
const unifiedRoot = "/sys/fs/cgroup"

// swapControlled looks at the cgroup of this process: the root has no such file.
func swapControlled() bool {
	own, err := cgroups.ParseCgroupFile("/proc/self/cgroup")
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(unifiedRoot, own[""], "memory.swap.max"))
	return err == nil
}

// readAll is a file's text, or nothing.
func readAll(name string) string {
	data, _ := os.ReadFile(name)
	return string(data)
}

// New makes a Driver. It touches nothing before Setup.
func New(c Config) (Driver, error) {
	root, err := parseRoot(c.Root)
	if err != nil {
		return nil, err
	}
	if len(c.Host.Mounts) == 0 {
		return nil, errors.New("cgroups: no hierarchies known: use Detect")
	}
	return &driver{config: c, layout: layout{root: root, systemd: c.Host.Systemd}, shares: map[types.UID]uint64{}}, nil
}

type driver struct {
	config Config
	layout layout

	mu     sync.Mutex
	shares map[types.UID]uint64 // of burstable pods; the kernel's own values, kept to sum them up
	given  uint64               // shares of the burstable class as last written
}

func (d *driver) Name() string {
	if d.layout.systemd {
		return "systemd"
	}
	return "cgroupfs"
}

func (d *driver) Host() Host { return d.config.Host }

func (d *driver) Unified() (string, int) {
	mount := d.config.Host.Mounts[""]
	if mount == "" {
		return "", 0
	}
	below := d.layout.path(d.layout.top())
	return filepath.Join(mount, below), strings.Count(below, "/")
}

func (d *driver) ParentOf(pod *corev1.Pod) string {
	return d.layout.path(d.layout.pod(podspec.QOSClass(pod), pod.UID))
}

func (d *driver) Setup() error {
	all := Resources{
		CPUShares: uint64(allot.Shares(d.config.Allocatable.Cpu().MilliValue())),
		Memory:    d.config.Allocatable.Memory().Value(),
	}
	if d.config.Allocatable.Cpu().IsZero() {
		all.CPUShares = 0
	}
	if err := d.apply(d.layout.top(), all); err != nil {
		return err
	}
	if err := d.apply(d.layout.class(corev1.PodQOSBestEffort), Resources{CPUShares: allot.MinShares}); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shares = d.readShares()
	return d.weighBurstable()
}

func (d *driver) EnsurePod(pod *corev1.Pod) error {
	if err := checkUID(pod.UID); err != nil {
		return err
	}
	qos, r := podspec.QOSClass(pod), ResourcesOf(pod, d.config.Limits)
	if err := d.apply(d.layout.pod(qos, pod.UID), r); err != nil {
		return fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	if qos != corev1.PodQOSBurstable {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shares[pod.UID] = r.CPUShares
	return d.weighBurstable()
}

// weighBurstable gives the burstable class the sum of its pods' shares: competing with a guaranteed pod, which stands
// beside the class, a burstable one then gets its due. Called with mu held.
func (d *driver) weighBurstable() error {
	var sum uint64
	for _, s := range d.shares {
		sum += s
	}
	sum = min(max(sum, allot.MinShares), allot.MaxShares)
	if sum == d.given {
		return nil
	}
	if err := d.apply(d.layout.class(corev1.PodQOSBurstable), Resources{CPUShares: sum}); err != nil {
		return err
	}
	d.given = sum
	return nil
}

// paths are the folders of n, by controller.
func (d *driver) paths(n name) map[string]string {
	out := make(map[string]string, len(d.config.Host.Mounts))
	for controller, mount := range d.config.Host.Mounts {
		out[controller] = filepath.Join(mount, d.layout.path(n))
	}
	return out
}

func (d *driver) manager(n name, r *cgroups.Resources) (cgroups.Manager, error) {
	c := &cgroups.Cgroup{Resources: r, Systemd: d.layout.systemd}
	if d.layout.systemd {
		c.Name = unit(n)
		c.Parent = "-.slice"
		if len(n) > 1 {
			c.Parent = unit(n[:len(n)-1])
		}
	} else {
		c.Path = d.layout.path(n)
	}
	return manager.NewWithPaths(c, d.paths(n))
}

// apply makes the cgroup n and sets r on it.
func (d *driver) apply(n name, r Resources) error {
	lib := d.translate(r)
	m, err := d.manager(n, lib)
	if err != nil {
		return fmt.Errorf("cgroup %s: %w", d.layout.path(n), err)
	}
	if err := m.Apply(-1); err != nil {
		return fmt.Errorf("cgroup %s: create: %w", d.layout.path(n), err)
	}
	if err := m.Set(lib); err != nil {
		return fmt.Errorf("cgroup %s: set resources: %w", d.layout.path(n), err)
	}
	return nil
}

// translate makes the library's resources for the machine's cgroup version. "No limit" is set explicitly, as a resize
// may lift one.
func (d *driver) translate(r Resources) *cgroups.Resources {
	out := &cgroups.Resources{
		SkipDevices:     true,
		SkipFreezeOnSet: true,
		CpuPeriod:       allot.Period,
		CpuQuota:        unlimited(r.CPUQuota),
		Memory:          unlimited(r.Memory),
	}
	if pids := unlimited(r.PIDs); d.has("pids") || pids > 0 {
		out.PidsLimit = &pids
	}
	if d.config.Host.V2 {
		out.CpuWeight = cgroups.ConvertCPUSharesToCgroupV2Value(r.CPUShares)
	} else {
		out.CpuShares = r.CPUShares
	}
	if d.has("hugetlb") {
		for size, bytes := range r.HugePages {
			out.HugetlbLimit = append(out.HugetlbLimit, &cgroups.HugepageLimit{Pagesize: size, Limit: uint64(bytes)})
		}
	}
	return out
}

// has says whether the machine has a controller; on v2 the library finds out.
func (d *driver) has(controller string) bool {
	return d.config.Host.V2 || d.config.Host.Mounts[controller] != ""
}

func unlimited(n int64) int64 {
	if n <= 0 {
		return -1
	}
	return n
}

// readShares reads the shares of the burstable pods that are there, of a former run of the server. Unreadable ones
// count as nothing: the next EnsurePod of the pod puts it right.
func (d *driver) readShares() map[types.UID]uint64 {
	out := map[types.UID]uint64{}
	if d.config.Host.V2 {
		return out // cpu.weight does not convert back exactly
	}
	class := d.layout.class(corev1.PodQOSBurstable)
	folder := d.paths(class)["cpu"]
	entries, err := os.ReadDir(folder)
	if err != nil {
		return out
	}
	for _, e := range entries {
		uid, ok := d.layout.uid(class, e.Name())
		if !ok {
			continue
		}
		var shares uint64
		text, err := os.ReadFile(filepath.Join(folder, e.Name(), "cpu.shares"))
		if err == nil {
			_, _ = fmt.Sscan(string(text), &shares)
		}
		out[uid] = shares
	}
	return out
}
