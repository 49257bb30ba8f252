// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"
	"time"
)

// The processors' time is read from a file as the kernel writes it, and from no other.
func TestParseStat(t *testing.T) {
	const text = "cpu  100 20 30 9999 500 4 5 77 50 0\ncpu0 1 2 3 4 5 6 7 8 9 0\nintr 1\nbtime 1700000000\n"
	busy, boot, ok := parseStat(text)
	if !ok || busy != 1590*time.Millisecond || boot.Unix() != 1700000000 {
		t.Errorf("%v %v %v", busy, boot, ok)
	}
	for _, bad := range []string{"", "cpu  1 2 3 4 5 6 7\n", "btime 1\n", "cpu  a 2 3 4 5 6 7\nbtime 1\n", "cpu  1 2 3 4 5 6 7\nbtime x\n"} {
		if _, _, ok := parseStat(bad); ok {
			t.Errorf("%q was taken", bad)
		}
	}
}

// So is the memory in use.
func TestParseMeminfo(t *testing.T) {
	m, ok := parseMeminfo("MemTotal:  1000 kB\nMemFree:   300 kB\nMemAvailable:  600 kB\nHugePages_Total:  0\n")
	if !ok || *m.WorkingSetBytes != 400<<10 || *m.UsageBytes != 700<<10 || *m.AvailableBytes != 600<<10 {
		t.Errorf("%+v %v", m, ok)
	}
	for _, bad := range []string{"", "MemTotal: 10 kB\n", "MemTotal: 10 kB\nMemFree: 20 kB\nMemAvailable: 5 kB\n"} {
		if _, ok := parseMeminfo(bad); ok {
			t.Errorf("%q was taken", bad)
		}
	}
}

// What the machine says of itself is read.
func TestMachineStats(t *testing.T) {
	s, err := machineStats(t.Context())
	if err != nil || *s.CPU.UsageCoreNanoSeconds == 0 || *s.Memory.WorkingSetBytes == 0 || s.StartTime.After(time.Now()) {
		t.Errorf("%+v, %v", s, err)
	}
}
