// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/node/cpus/pin"
	"github.com/wherryproject/wherry/internal/node/numa"
	"github.com/wherryproject/wherry/internal/node/numa/bank"
)

// Banks are the NUMA nodes of a machine.
type Banks struct {
	Nodes     numa.Mask
	Distances numa.Distances
	Of        bank.Machine // all of their memory: huge pages apart from the rest
}

// ReadBanks reads what the kernel reports of NUMA nodes in a folder (/sys/devices/system/node). A kernel that knows of
// none has one, node 0, of which nothing else is known.
func ReadBanks(folder string) (Banks, error) {
	out := Banks{Nodes: 1, Distances: numa.Distances{0: {0: 10}}, Of: bank.Machine{}}
	text, err := os.ReadFile(filepath.Join(folder, "online"))
	if os.IsNotExist(err) {
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("which NUMA nodes there are: %w", err)
	}
	online, err := pin.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return out, fmt.Errorf("which NUMA nodes there are: %s: %w", filepath.Join(folder, "online"), err)
	}
	if out.Nodes, err = numa.MaskOf(online.List()...); err != nil {
		return out, err
	}
	for _, node := range online.List() {
		at := filepath.Join(folder, "node"+strconv.Itoa(node))
		line, err := os.ReadFile(filepath.Join(at, "distance"))
		if err != nil {
			return out, fmt.Errorf("NUMA node %d: %w", node, err)
		}
		if out.Distances[node], err = numa.ParseDistances(string(line), out.Nodes); err != nil {
			return out, fmt.Errorf("NUMA node %d: %w", node, err)
		}
		amounts, err := readBank(at)
		if err != nil {
			return out, fmt.Errorf("NUMA node %d: %w", node, err)
		}
		if amounts[corev1.ResourceMemory] > 0 { // others have CPUs or devices alone
			out.Of[node] = amounts
		}
	}
	return out, nil
}

// readBank reads the memory of one node.
func readBank(folder string) (bank.Amounts, error) {
	text, err := os.ReadFile(filepath.Join(folder, "meminfo"))
	if err != nil {
		return nil, err
	}
	out := bank.Amounts{}
	for line := range strings.Lines(string(text)) { // Node 0 MemTotal: 4037000 kB
		if f := strings.Fields(line); len(f) >= 4 && f[2] == "MemTotal:" {
			kib, err := strconv.ParseInt(f[3], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%q is not the size of its memory", f[3])
			}
			out[corev1.ResourceMemory] = kib << 10
		}
	}
	sizes, _ := filepath.Glob(filepath.Join(folder, "hugepages", "hugepages-*kB")) // fails for a wrong pattern only
	for _, at := range sizes {
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(at), "hugepages-"), "kB"), 10,
			64)
		text, unread := os.ReadFile(filepath.Join(at, "nr_hugepages"))
		n, wrong := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil || unread != nil || wrong != nil {
			continue
		}
		name := corev1.ResourceHugePagesPrefix + resource.NewQuantity(kib<<10, resource.BinarySI).String()
		out[corev1.ResourceName(name)] = n * kib << 10
		out[corev1.ResourceMemory] -= n * kib << 10
	}
	return out, nil
}
