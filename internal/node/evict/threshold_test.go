// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestParse reads thresholds as the kubelet's flags have them (PL-13).
func TestParse(t *testing.T) {
	list, err := Parse(Flags{
		Hard:      map[string]string{"nodefs.available": "10%", "memory.available": "100Mi", "imagefs.available": "0%"},
		Soft:      map[string]string{"memory.available": "1Gi"},
		SoftGrace: map[string]string{"memory.available": "1m30s"},
		Reclaim:   map[string]string{"nodefs.available": "500Mi"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%v %v %v", list, list[1].Grace, list[2].Reclaim)
	if want := "[memory.available<100Mi memory.available<1Gi nodefs.available<10%] 1m30s 500Mi"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if list[2].Least.Of(200) != 20 || list[0].Least.Of(200) != 100<<20 || list[0].Soft || !list[1].Soft {
		t.Errorf("%+v", list)
	}
}

// TestParseFaults (PL-13): wrong flags come back all at once, each with its name.
func TestParseFaults(t *testing.T) {
	_, err := Parse(Flags{
		Hard:      map[string]string{"memory": "100Mi", "nodefs.available": "-1", "imagefs.available": "110%"},
		Soft:      map[string]string{"memory.available": "1Gi"},
		SoftGrace: map[string]string{"nodefs.available": "1m", "pid.available": "soon"},
		Reclaim:   map[string]string{"memory.available": "NaN%"},
	})
	for _, want := range []string{
		`--eviction-hard: unknown signal "memory"; choose from [memory.available`,
		`--eviction-hard: nodefs.available: "-1" is neither a quantity above 0`,
		`--eviction-hard: imagefs.available: "110%" is not a percentage`,
		`--eviction-soft: memory.available has no grace period`,
		`--eviction-soft-grace-period: --eviction-soft has no threshold for nodefs.available`,
		`--eviction-soft-grace-period: pid.available: "soon" is not a duration`,
		`--eviction-minimum-reclaim: memory.available: "NaN%" is not a percentage`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
}

// TestJudge (PL-13): conditions come at once and go after the transition period; soft thresholds wait for their grace; what was
// met is over only when the minimum was reclaimed.
func TestJudge(t *testing.T) {
	list, err := Parse(Flags{
		Hard: map[string]string{"memory.available": "100"}, Soft: map[string]string{"memory.available": "200", "pid.available": "10%"},
		SoftGrace: map[string]string{"memory.available": "1m", "pid.available": "30s"},
		Reclaim:   map[string]string{"memory.available": "50"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var s State
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, row := range []struct {
		after        time.Duration
		memory, pids int64
		due          string
		pressed      string
		wake         time.Duration
	}{
		{0, 1000, 100, "[]", "", 0},
		{time.Second, 150, 100, "[]", "[MemoryPressure]", time.Minute},
		{30 * time.Second, 210, 100, "[]", "[MemoryPressure]", 30 * time.Second}, // not reclaimed
		{30 * time.Second, 150, 5, "[memory.available<200]", "[MemoryPressure PIDPressure]", 30 * time.Second},
		{time.Second, 90, 100, "[memory.available<100 memory.available<200]", "[MemoryPressure PIDPressure]", 0},
		{time.Second, 140, 100, "[memory.available<100 memory.available<200]", "[MemoryPressure PIDPressure]", 0},
		{time.Second, 1000, 100, "[]", "[MemoryPressure PIDPressure]", 0},
		{4*time.Minute + 58*time.Second, 1000, 100, "[]", "[MemoryPressure]", 0},
		{time.Second, 1000, 100, "[]", "", 0},
	} {
		now = now.Add(row.after)
		var due []Threshold
		s, due = Judge(list, Readings{MemoryAvailable: {row.memory, 1000}, PIDAvailable: {row.pids, 100}}, s, 5*time.Minute, now)
		if got := fmt.Sprint(due); got != row.due {
			t.Errorf("%d: due %s, want %s", i, got, row.due)
		}
		if got := strings.TrimSuffix(strings.TrimPrefix(Admit(bestEffort(), s), "The node had condition: "), ". "); got != row.pressed {
			t.Errorf("%d: conditions %q, want %q", i, got, row.pressed)
		}
		if wake, _ := Wake(list, s, now); wake != row.wake {
			t.Errorf("%d: wake %s, want %s", i, wake, row.wake)
		}
	}
	if s, due := Judge(list, Readings{}, State{}, time.Minute, now); len(due) > 0 || len(s.Pressed) > 0 {
		t.Error("what cannot be measured is no reason to evict")
	}
}
