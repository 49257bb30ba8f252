// SPDX-License-Identifier: Apache-2.0

package usage_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/api/usage"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func cpu(used time.Duration) *statsapi.CPUStats {
	return &statsapi.CPUStats{UsageCoreNanoSeconds: ptr.To(uint64(used))}
}

func memory(bytes uint64) *statsapi.MemoryStats {
	return &statsapi.MemoryStats{WorkingSetBytes: &bytes}
}

func container(name string, started time.Time, c *statsapi.CPUStats) statsapi.ContainerStats {
	return statsapi.ContainerStats{Name: name, StartTime: metav1.NewTime(started), CPU: c, Memory: memory(1 << 20)}
}

func sample(at time.Time, node *statsapi.CPUStats, containers ...statsapi.ContainerStats) usage.Sample {
	return usage.Sample{At: at, Summary: statsapi.Summary{
		Node: statsapi.NodeStats{CPU: node, Memory: memory(1 << 30)},
		Pods: []statsapi.PodStats{{PodRef: statsapi.PodReference{UID: "u"}, Containers: containers}},
	}}
}

// What two samples of a container say of its use, and which pairs say nothing.
func TestBetween(t *testing.T) {
	old := start.Add(-time.Hour)
	later := start.Add(10 * time.Second)
	for name, test := range map[string]struct {
		before, after statsapi.ContainerStats
		want          string // "": left out
	}{
		"half a processor":               {container("c", old, cpu(time.Minute)), container("c", old, cpu(time.Minute+5*time.Second)), "500m"},
		"idle":                           {container("c", old, cpu(time.Minute)), container("c", old, cpu(time.Minute)), "0"},
		"restarted: since its start":     {container("c", old, cpu(time.Minute)), container("c", start.Add(6*time.Second), cpu(8*time.Second)), "2"},
		"new: since its start":           {container("other", old, cpu(0)), container("c", start.Add(8*time.Second), cpu(time.Second)), "500m"},
		"just started":                   {container("other", old, cpu(0)), container("c", later, cpu(time.Second)), ""},
		"not counted":                    {container("c", old, nil), container("c", old, nil), ""},
		"counted only now, and long up":  {container("c", old, nil), container("c", old, cpu(time.Second)), ""},
		"a runtime with an average only": {container("c", old, nil), container("c", old, &statsapi.CPUStats{UsageNanoCores: ptr.To[uint64](250e6)}), "250m"},
		"went back under the same start": {container("c", old, cpu(time.Minute)), container("c", old, cpu(time.Second)), ""},
		"start unknown":                  {container("c", time.Time{}, nil), container("c", time.Time{}, cpu(time.Second)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := usage.Between(sample(start, cpu(0), test.before), sample(later, cpu(20*time.Second), test.after))
			if r.Window != 10*time.Second || !r.At.Equal(later) {
				t.Errorf("window %v at %v", r.Window, r.At)
			}
			if got := r.Node.Cpu().String(); got != "2" || r.Node.Memory().Value() != 1<<30 {
				t.Errorf("node: %v", r.Node)
			}
			pod := r.Pods["u"]
			if test.want == "" {
				if len(pod) != 0 {
					t.Errorf("got %v", pod)
				}
				return
			}
			if len(pod) != 1 || pod[0].Usage.Cpu().String() != test.want || pod[0].Usage[corev1.ResourceMemory].Format != "BinarySI" {
				t.Errorf("got %+v, want %s", pod, test.want)
			}
		})
	}
}

// An earlier sample is compared with when it is neither too fresh nor too old.
func TestKnown(t *testing.T) {
	s := &usage.Sample{At: start}
	for after, want := range map[time.Duration]bool{0: false, 500 * time.Millisecond: false, 2 * time.Second: true, time.Minute: true, time.Hour: false} {
		if usage.Known(s, start.Add(after)) != want {
			t.Errorf("after %v: want %v", after, want)
		}
	}
	if usage.Known(nil, start) {
		t.Error("nothing is known")
	}
}
