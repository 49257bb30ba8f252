// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// The processors' time is read from a file as the kernel writes it, and from no other.
func TestParseStat(t *testing.T) {
	const text = "cpu  100 20 30 9999 500 4 5 77 50 0\ncpu0 1 2 3 4 5 6 7 8 9 0\nintr 1\nbtime 1700000000\n"
	busy, boot, ok := parseStat(text)
	if !ok || busy != 1590*time.Millisecond || boot.Unix() != 1700000000 {
		t.Errorf("%v %v %v", busy, boot, ok)
	}
	for _, bad := range []string{"", "cpu  1 2 3 4 5 6 7\n", "btime 1\n", "cpu  a 2 3 4 5 6 7\nbtime 1\n",
		"cpu  1 2 3 4 5 6 7\nbtime x\n"} {
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
	if err != nil || *s.CPU.UsageCoreNanoSeconds == 0 || *s.Memory.WorkingSetBytes == 0 ||
		s.StartTime.After(time.Now()) {
		t.Errorf("%+v, %v", s, err)
	}
}

// PL-36: interfaces are read with their counters, the default one by the route; so are processes, swap and page faults.
func TestMachineCounters(t *testing.T) {
	const dev = "Inter-| Receive\n face |bytes\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  eth0: 10 1 2 0 0 0 0 0 20 1 3 0 0 0 0 0\n" +
		" veth1: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  eth1: 5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0\n"
	const route = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\neth1\t0000000A\t0\t1\t0\t0\t0\t0000FFFF\n" +
		"eth0\t00000000\t0100000A\t3\t0\t0\t0\t00000000\n"
	n := networkStats(dev, route)
	if n == nil || len(n.Interfaces) != 2 || n.Name != "eth0" || *n.RxBytes != 10 || *n.TxBytes != 20 ||
		*n.RxErrors != 2 || *n.TxErrors != 3 {
		t.Errorf("%+v", n)
	}
	if networkStats("nonsense", "") != nil {
		t.Error("nonsense was taken for an interface")
	}
	if r := rlimitStats("32768\n", "0.1 0.2 0.3 2/345 6\n"); r == nil || *r.MaxPID != 32768 ||
		*r.NumOfRunningProcesses != 345 {
		t.Errorf("%+v", r)
	}
	if rlimitStats("x", "0.1 0.2 0.3 2/345 6") != nil || rlimitStats("1", "x") != nil {
		t.Error("nonsense was taken for processes")
	}
	if s := parseSwap("SwapTotal: 10 kB\nSwapFree: 4 kB\n", metav1.Now()); *s.SwapAvailableBytes != 4096 ||
		*s.SwapUsageBytes != 6144 {
		t.Errorf("%+v", s)
	}
	if all, major := parseFaults("pgfault 7\npgmajfault 3\nx\n"); *all != 7 || *major != 3 {
		t.Errorf("%v %v", all, major)
	}
}

// PL-36: the use of the processors is of the time between two askings, and not of one too short to tell.
func TestRate(t *testing.T) {
	var r rate
	start := time.Now()
	for i, step := range []struct {
		after time.Duration
		used  uint64
		want  uint64 // 0: not known
	}{{0, 1000, 0}, {2 * time.Second, 3000, 1000}, {2100 * time.Millisecond, 9000, 1000},
		{3 * time.Second, 5000, 2000}} {
		got := r.of(&statsapi.CPUStats{Time: metav1.NewTime(start.Add(step.after)), UsageCoreNanoSeconds: &step.used})
		if (got == nil) != (step.want == 0) || got != nil && *got != step.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
}
