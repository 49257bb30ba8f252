// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// hugePagesFolder is where the kernel lists its huge pages.
const hugePagesFolder = "/sys/kernel/mm/hugepages"

// hugePages are the sizes of huge pages that the machine has, and how many bytes of each are set aside: as the kubelet,
// the agent looks once, when it begins.
type hugePages map[int64]int64

// readHugePages reads folders named hugepages-<size>kB; what cannot be read is none.
func readHugePages(folder string) hugePages {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	out := hugePages{}
	for _, e := range entries {
		kib, ok := strings.CutPrefix(e.Name(), "hugepages-")
		size, err := strconv.ParseInt(strings.TrimSuffix(kib, "kB"), 10, 64)
		if !ok || err != nil || size <= 0 {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(readFile(filepath.Join(folder, e.Name(), "nr_hugepages"))), 10, 64)
		if err == nil {
			out[size<<10] = n * size << 10
		}
	}
	return out
}

// in adds them to a node's resources: those without any page, too, so that it shows which sizes there are.
func (h hugePages) in(list corev1.ResourceList) {
	for size, bytes := range h {
		name := corev1.ResourceHugePagesPrefix + resource.NewQuantity(size, resource.BinarySI).String()
		list[corev1.ResourceName(name)] = *resource.NewQuantity(bytes, resource.BinarySI)
	}
}

// total is what of the memory is huge pages, which nothing else can have.
func (h hugePages) total() (bytes int64) {
	for _, n := range h {
		bytes += n
	}
	return bytes
}
