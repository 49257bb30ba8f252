// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/wherryproject/wherry/internal/node/cpus/pin"
)

// Where the kernel lists its CPUs, and its NUMA nodes.
const (
	SystemFolder = "/sys/devices/system/cpu"
	NodesFolder  = "/sys/devices/system/node"
)

// ReadMachine reads which CPUs are online and where they lie. What the kernel does not say of a CPU's place (some
// virtual machines) is taken as a core of its own in the first socket; a machine without NUMA nodes has one.
func ReadMachine(folder, nodes string) (pin.Machine, error) {
	text, err := os.ReadFile(filepath.Join(folder, "online"))
	if err != nil {
		return nil, fmt.Errorf("which CPUs are online: %w", err)
	}
	online, err := pin.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("which CPUs are online: %s: %w", filepath.Join(folder, "online"), err)
	}
	var out pin.Machine
	near := readNodes(nodes)
	for _, id := range online.List() {
		at := filepath.Join(folder, "cpu"+strconv.Itoa(id), "topology")
		out = append(out, pin.CPU{ID: id, Core: number(filepath.Join(at, "core_id"), id),
			Socket: number(filepath.Join(at, "physical_package_id"), 0), Node: near[id],
			Cache: sharedCache(filepath.Join(folder, "cpu"+strconv.Itoa(id), "cache"))})
	}
	return out, nil
}

// readNodes reads which NUMA node each CPU is in.
func readNodes(folder string) map[int]int {
	out := map[int]int{}
	lists, _ := filepath.Glob(filepath.Join(folder, "node*", "cpulist")) // fails for a wrong pattern only
	for _, file := range lists {
		id, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(file)), "node"))
		text, unread := os.ReadFile(file)
		set, wrong := pin.Parse(strings.TrimSpace(string(text)))
		if err != nil || unread != nil || wrong != nil {
			continue
		}
		for _, cpu := range set.List() {
			out[cpu] = id
		}
	}
	return out
}

// sharedCache names the cache of the third level that a CPU uses by the first CPU that uses it: the kernel's own
// numbers are not everywhere. Without one all are taken to share.
func sharedCache(folder string) int {
	levels, _ := filepath.Glob(filepath.Join(folder, "index*", "level")) // fails for a wrong pattern only
	for _, file := range levels {
		if number(file, 0) != 3 {
			continue
		}
		text, err := os.ReadFile(filepath.Join(filepath.Dir(file), "shared_cpu_list"))
		if set, wrong := pin.Parse(strings.TrimSpace(string(text))); err == nil && wrong == nil && !set.IsEmpty() {
			return set.List()[0]
		}
	}
	return 0
}

// number reads one from a file; otherwise where there is none, or one below 0.
func number(file string, otherwise int) int {
	text, err := os.ReadFile(file)
	if err != nil {
		return otherwise
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || n < 0 {
		return otherwise
	}
	return n
}
