// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/wherryproject/wherry/internal/node/cgroup"
)

// cgroupsOf is a pod's cgroup without a quota, and that of one of its containers with all there is.
func cgroupsOf(main string) func(*corev1.Pod, []string) (cgroup.Figures, map[string]cgroup.Figures) {
	return func(p *corev1.Pod, ids []string) (cgroup.Figures, map[string]cgroup.Figures) {
		own := cgroup.Figures{Path: "/kubepods/pod" + string(p.UID), Quota: new(uint64(0)), Period: new(uint64(100000)),
			Limit: new(uint64(0)), Cache: new(uint64(5))}
		of := map[string]cgroup.Figures{}
		for _, id := range ids {
			if id == main {
				of[id] = cgroup.Figures{Path: own.Path + "/" + id, Periods: new(uint64(40)), Throttled: new(uint64(7)),
					ThrottledFor: new(1500 * time.Millisecond), Quota: new(uint64(50000)), Period: new(uint64(100000)),
					Shares: new(uint64(512)), Cache: new(uint64(200)), RSS: new(uint64(1)), Limit: new(uint64(1000)),
					Hits: new(uint64(5)), OOMKills: new(uint64(2))}
			}
		}
		return own, of
	}
}

// TestMetricsCAdvisor proves PL-36: dashboards find cAdvisor's series with its labels, of containers, of whole pods, of
// their interfaces and of the machine, each once; throttling only of who has a quota; memory_rss as the runtime says.
func TestMetricsCAdvisor(t *testing.T) {
	var w *world
	w = newWorld(t, func(c *Config) {
		c.NodeStats = func(context.Context) (statsapi.NodeStats, error) {
			n := uint64(3e9)
			return statsapi.NodeStats{CPU: &statsapi.CPUStats{UsageCoreNanoSeconds: &n},
				Memory: &statsapi.MemoryStats{WorkingSetBytes: &n, AvailableBytes: &n}}, nil
		}
		c.Cgroups = func(p *corev1.Pod, ids []string) (cgroup.Figures, map[string]cgroup.Figures) {
			return cgroupsOf(w.host.containers["main"])(p, ids)
		}
	})
	w.host.pod.Status.ContainerStatuses[0].Image = "docker.io/library/app:1"
	id := w.host.containers["main"]
	of := `container="main",id="/kubepods/poduid-1/` + id + `",image="docker.io/library/app:1",name="` + id + `",namespace="default",pod="web"} `
	whole := `id="/kubepods/poduid-1",image="",name="",namespace="default",pod="web"} `
	code, body := w.get(w.masters, "/metrics/cadvisor")
	for want, times := range map[string]int{
		"container_cpu_cfs_periods_total{" + of + "40\n":                                                                     1,
		"container_cpu_cfs_throttled_periods_total{" + of + "7\n":                                                            1,
		"container_cpu_cfs_throttled_seconds_total{" + of + "1.5\n":                                                          1,
		"container_memory_cache{" + of + "200\n":                                                                             1,
		"container_memory_rss{" + of:                                                                                         1,
		"container_memory_rss{" + of + "1\n":                                                                                 0,
		"container_memory_failcnt{" + of + "5\n":                                                                             1,
		"container_oom_events_total{" + of + "2\n":                                                                           1,
		"container_spec_memory_limit_bytes{" + of + "1000\n":                                                                 1,
		"container_spec_cpu_period{" + of + "100000\n":                                                                       1,
		"container_spec_cpu_quota{" + of + "50000\n":                                                                         1,
		"container_spec_cpu_shares{" + of + "512\n":                                                                          1,
		"container_start_time_seconds{" + of + "1.7e+09\n":                                                                   1,
		"container_memory_working_set_bytes{" + of:                                                                           1,
		`container_memory_working_set_bytes{container="",` + whole:                                                           1,
		`container_memory_cache{container="",` + whole + "5\n":                                                               1,
		`container_spec_memory_limit_bytes{container="",` + whole:                                                            1,
		`container_spec_cpu_quota{container="",`:                                                                             0,
		`container_cpu_cfs_periods_total{container="",`:                                                                      0,
		`container_memory_working_set_bytes{container="debug",id="",`:                                                        1,
		`container_memory_cache{container="debug",`:                                                                          0,
		`container_network_receive_bytes_total{container="",id="/kubepods/poduid-1",image="",interface="eth0",`:              1,
		`container_cpu_usage_seconds_total{container="",cpu="total",id="/",image="",name="",namespace="",pod=""} 3` + "\n":   1,
		`container_memory_working_set_bytes{container="",id="/",image="",name="",namespace="",pod=""} 3e+09` + "\n":          1,
		`container_cpu_usage_seconds_total{container="main",cpu="total",id="/kubepods/poduid-1/` + id + `",image="docker.io`: 1,
		"\nmachine_cpu_cores ":                                                                                               1,
		"machine_memory_bytes 6e+09\n":                                                                                       1,
		"container_scrape_error 0\n":                                                                                         1,
		"# TYPE container_oom_events_total counter":                                                                          1,
		"# TYPE container_spec_memory_limit_bytes ga":                                                                        1,
	} {
		if got := strings.Count(body, want); code != 200 || got != times {
			t.Errorf("PL-36 %d, %q is there %d times, not %d, in\n%s", code, want, got, times, body)
		}
	}
	w.fake.Down()
	if code, body := w.get(w.masters, "/metrics/cadvisor"); code != 200 || !strings.Contains(body, "container_scrape_error 1\n") {
		t.Errorf("PL-36 with the runtime away: %d\n%s", code, body)
	}
}

// PL-36: where the runtime makes cgroups as it likes, its own figures are there all the same.
func TestMetricsCAdvisorWithoutCgroups(t *testing.T) {
	w := newWorld(t)
	code, body := w.get(w.masters, "/metrics/cadvisor")
	want := `container_memory_rss{container="main",id="",image="",name="` + w.host.containers["main"] + `",namespace="default",pod="web"} `
	if code != 200 || strings.Count(body, want) != 1 || strings.Contains(body, "container_spec_") {
		t.Errorf("PL-36 %d, no %s in\n%s", code, want, body)
	}
}
