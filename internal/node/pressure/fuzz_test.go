// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzMeter: whatever the kernel's files hold, what is left is neither less than nothing nor more than all there is, and an error says which
// file cannot be understood. A node that mismeasured would evict pods, or none.
func FuzzMeter(f *testing.F) {
	const meminfo = "MemTotal:       16384 kB\nMemFree:         1024 kB\nInactive(file):   512 kB\n"
	f.Add(meminfo, "8388608\n", "total_inactive_file 4096\n", "0.30 0.32 1.04 1/93 14132\n", "32768\n", "9999\n")
	f.Add("MemTotal: 1\nMemFree: 5\nInactive(file): 5\n", "", "", "", "", "")
	f.Add("MemTotal: 9223372036854775807 kB\n", "-1", "total_inactive_file -5", "0 0 0 1/-1", "-5", "x")
	f.Add("MemTotal: 5\nMemFree: -9\n", "99999999999999999999", "a 1", "a b c d", "5", "0")
	f.Fuzz(func(t *testing.T, meminfo, used, stat, load, pids, threads string) {
		dir := t.TempDir()
		for name, text := range map[string]string{"meminfo": meminfo, "group/memory.usage_in_bytes": used, "group/memory.stat": stat, "loadavg": load, "sys/kernel/pid_max": pids, "sys/kernel/threads-max": threads} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, group := range []string{"", filepath.Join(dir, "group")} {
			readings, err := Meter{Proc: dir, MemoryGroup: group}.Read()
			for signal, r := range readings {
				if r.Available < 0 || r.Available > r.Capacity {
					t.Errorf("%s: %d of %d are left", signal, r.Available, r.Capacity)
				}
			}
			if err == nil {
				continue
			}
			for line := range strings.Lines(err.Error()) {
				if !strings.Contains(line, "measuring ") && !strings.Contains(line, dir) {
					t.Errorf("not said of what: %q", line)
				}
			}
		}
	})
}
