// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/leaktest"
	"github.com/wherryproject/wherry/internal/node/evict"
)

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestRead measures what the kernel's files say (PL-13).
func TestRead(t *testing.T) {
	proc := tree(t, map[string]string{
		"meminfo":                "MemTotal:  1000 kB\nMemFree:  300 kB\nInactive(file):  100 kB\n",
		"sys/kernel/pid_max":     "32768\n",
		"sys/kernel/threads-max": "5000\n",
		"loadavg":                "0.30 0.32 1.04 1/93 14132\n",
	})
	v1 := tree(t, map[string]string{"memory.usage_in_bytes": "900000\n",
		"memory.stat": "inactive_file 1\ntotal_inactive_file 100000\n"})
	for _, row := range []struct {
		what  string
		meter Meter
		want  int64
	}{
		{"v2", Meter{Proc: proc}, 400 << 10},
		{"v1", Meter{Proc: proc, MemoryGroup: v1}, 1000<<10 - 800000},
	} {
		row.meter.NodeFs = proc
		got, err := row.meter.Read()
		if err != nil {
			t.Fatalf("%s: %v", row.what, err)
		}
		if r := got[evict.MemoryAvailable]; r != (evict.Reading{Available: row.want, Capacity: 1000 << 10}) {
			t.Errorf("%s: memory %+v", row.what, r)
		}
		if r := got[evict.PIDAvailable]; r != (evict.Reading{Available: 5000 - 93, Capacity: 5000}) {
			t.Errorf("pids %+v", r)
		}
		if r := got[evict.NodeFsAvailable]; r.Capacity <= 0 || r.Available < 0 || r.Available > r.Capacity {
			t.Errorf("file system %+v", r)
		}
		if _, ok := got[evict.ImageFsAvailable]; ok {
			t.Error("a file system that is not known was measured")
		}
	}
}

// TestReadFaults (PL-13): what cannot be measured is left out and said, the rest is there.
func TestReadFaults(t *testing.T) {
	proc := tree(t, map[string]string{"meminfo": "MemTotal: 1000 kB\nMemFree: 300 kB\n", "loadavg": "x",
		"sys/kernel/pid_max": "1", "sys/kernel/threads-max": "1"})
	got, err := Meter{Proc: proc, NodeFs: filepath.Join(proc, "none")}.Read()
	if err == nil || !strings.Contains(err.Error(), "measuring pid.available") ||
		!strings.Contains(err.Error(), "measuring nodefs.available") {
		t.Errorf("error %v", err)
	}
	if len(got) != 1 || got[evict.MemoryAvailable].Available != 300<<10 {
		t.Errorf("readings %v", got)
	}
}

// TestStalls: the watch can be had from this kernel, if it has any, and ends with its context.
func TestStalls(t *testing.T) {
	defer leaktest.None(t)
	ctx, cancel := context.WithCancel(t.Context())
	told, err := Stalls(ctx, "/proc/pressure/memory")
	if err != nil {
		t.Skipf("this machine does not tell of stalls: %v", err)
	}
	cancel()
	for range told { // until it is closed
	}
	if _, err := Stalls(t.Context(), filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there is no error")
	}
}
