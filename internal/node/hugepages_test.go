// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestHugePages proves PL-30: the node's capacity has every size of huge pages, and its allocatable memory is without
// what they take.
func TestHugePages(t *testing.T) {
	dir := t.TempDir()
	for name, n := range map[string]string{"hugepages-2048kB": "5\n", "hugepages-1048576kB": "0\n", "hugepages-x": "7\n", "other": "1\n"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "nr_hugepages"), []byte(n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := &Agent{machine: machine{memory: 100 << 20, huge: readHugePages(dir)}}
	for list, want := range map[*corev1.ResourceList][2]string{
		ptrTo(a.capacity()):    {"100Mi", "10Mi"},
		ptrTo(a.allocatable()): {"90Mi", "10Mi"},
	} {
		small, large := (*list)["hugepages-2Mi"], (*list)["hugepages-1Gi"]
		if list.Memory().String() != want[0] || small.String() != want[1] || large.String() != "0" || len(*list) != 6 {
			t.Errorf("%v", *list)
		}
	}
	if got := readHugePages(filepath.Join(dir, "none")); len(got) > 0 || got.total() != 0 {
		t.Error(got)
	}
}

func ptrTo(l corev1.ResourceList) *corev1.ResourceList { return &l }

// TestMeminfo proves PL-30: swap is told as the node's.
func TestMeminfo(t *testing.T) {
	const text = "MemTotal:       16 kB\nSwapCached: 1 kB\nSwapTotal:  8 kB\n"
	if meminfo(text, "MemTotal:") != 16<<10 || meminfo(text, "SwapTotal:") != 8<<10 || meminfo(text, "No:") != 0 {
		t.Error("misread")
	}
	if s := (machine{swap: 8 << 10}).info().Swap; s == nil || *s.Capacity != 8<<10 {
		t.Error(s)
	}
	if (machine{}).info().Swap != nil {
		t.Error("a machine without swap has some")
	}
}
