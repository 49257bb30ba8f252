// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/numa/bank"
)

func machine(nodes int) bank.Machine {
	out := bank.Machine{}
	for n := range nodes {
		out[n] = bank.Amounts{corev1.ResourceMemory: 8}
	}
	return out
}

func begin(t *testing.T, dir string, m bank.Machine) *Manager {
	t.Helper()
	out, err := New(Config{Machine: m, PodsFolder: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// PL-33: what a pod has is known again when the agent has been killed, until the pod has ended, the machine has other
// nodes or the policy is None.
func TestKept(t *testing.T) {
	dir := t.TempDir()
	m := begin(t, dir, machine(2))
	held := bank.Held{"c": {Nodes: 2, Of: map[int]bank.Amounts{1: {corev1.ResourceMemory: 5}}}}
	charge := held.Charge([][]string{{"c"}})
	if err := m.Keep("one", held, charge); err == nil {
		t.Error("it is kept where there is no folder")
	}
	if got := m.Nodes("one", "c"); got != "" {
		t.Errorf("what could not be written down is given: %s", got)
	}
	if err := os.Mkdir(filepath.Join(dir, "one"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := m.Keep("one", held, charge); err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*Manager{"at once": m, "later": begin(t, dir, machine(2))} {
		if got := m.Taken(""); got.Of[1][corev1.ResourceMemory] != 5 || len(got.Sets) != 1 {
			t.Errorf("%s: taken is %+v", name, got)
		}
		if got := m.Taken("one"); got.Of[1] != nil {
			t.Errorf("%s: without it taken is %+v", name, got)
		}
		if m.Nodes("one", "c") != "1" || m.Nodes("one", "d") != "" || m.Of("one")["c"].Nodes != 2 {
			t.Errorf("%s: it has %+v", name, m.Of("one"))
		}
	}
	if got := begin(t, dir, machine(1)).Of("one"); len(got) > 0 {
		t.Errorf("of nodes that are gone it has %+v", got)
	}
	m.Release("one")
	if got := m.Taken(""); len(got.Of) > 0 || m.Nodes("one", "c") != "" {
		t.Errorf("after its end %+v is taken", got)
	}
	begin(t, dir, nil)
	if _, err := os.Stat(filepath.Join(dir, "one", FileName)); err == nil {
		t.Error("with the policy None the file stays")
	}
}

// FuzzRead reads files as an earlier process, or a lost disk, may have left them.
func FuzzRead(f *testing.F) {
	f.Add(`{"containers":{"c":{"nodes":2,"of":{"1":{"memory":5}}}},"charge":{"of":{"1":{"memory":5}},"sets":[2]}}`)
	f.Add(`{"containers":{"c":{"nodes":4}}}`)
	f.Add(`{"charge":{"of":{"9":{"memory":5}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "one"), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "one", FileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m := begin(t, dir, machine(2))
		for _, share := range m.Of("one") {
			if !share.Nodes.Within(3) || share.Nodes == 0 {
				t.Errorf("%q: %+v", text, share)
			}
		}
		m.Taken("")
	})
}

// The kernel's words for the memory of two nodes, of which one has huge pages, and of a node that has none.
func TestReadBanks(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := ReadBanks(dir); err != nil || got.Nodes != 1 {
		t.Errorf("a kernel without NUMA: %+v, %v", got, err)
	}
	file("online", "0-2\n")
	for node, kib := range []string{"4194304", "2097152", "0"} {
		at := "node" + string(rune('0'+node)) + "/"
		file(at+"distance", "10 21 31\n")
		file(at+"meminfo", "Node 0 MemTotal:       "+kib+" kB\nNode 0 MemFree:  1 kB\n")
	}
	file("node1/hugepages/hugepages-2048kB/nr_hugepages", "512\n")
	got, err := ReadBanks(dir)
	if err != nil || got.Nodes != 7 || got.Of.Nodes() != 3 || got.Distances[1][2] != 31 ||
		got.Of[0][corev1.ResourceMemory] != 4<<30 || got.Of[1][corev1.ResourceMemory] != 1<<30 ||
		got.Of[1]["hugepages-2Mi"] != 1<<30 {
		t.Errorf("%+v, %v", got, err)
	}
	file("node2/distance", "10 21\n")
	if _, err := ReadBanks(dir); err == nil || !strings.HasPrefix(err.Error(), "NUMA node 2: ") {
		t.Errorf("%v", err)
	}
	if real, err := ReadBanks("/sys/devices/system/node"); err != nil || real.Nodes == 0 {
		t.Errorf("this machine: %+v, %v", real, err)
	}
}
