// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/wherryproject/wherry/internal/node/cgroup"
	"github.com/wherryproject/wherry/internal/podspec"
)

// podMeasured is what is known of a pod beside its figures from the runtime.
type podMeasured struct {
	own        cgroup.Figures
	containers map[string]containerMeasured // by name
}

type containerMeasured struct {
	id, image string
	figures   cgroup.Figures
}

// podsMeasured reads the cgroups of the pods that a summary has figures of. It is done when somebody asks, and for
// those who ask for cAdvisor's series alone: nobody else needs them.
func (s *Server) podsMeasured(summary *statsapi.Summary) map[string]podMeasured {
	pods := map[string]*corev1.Pod{}
	for _, p := range s.config.Host.Pods() {
		pods[string(p.UID)] = p
	}
	out := make(map[string]podMeasured, len(summary.Pods))
	for i := range summary.Pods {
		if pod := pods[summary.Pods[i].PodRef.UID]; pod != nil {
			out[string(pod.UID)] = s.podMeasured(pod, summary.Pods[i].Containers)
		}
	}
	return out
}

func (s *Server) podMeasured(pod *corev1.Pod, containers []statsapi.ContainerStats) podMeasured {
	out := podMeasured{containers: make(map[string]containerMeasured, len(containers))}
	var ids []string
	for i := range containers {
		name := containers[i].Name
		var m containerMeasured
		if id, err := s.config.Host.ContainerID(pod.UID, name); err == nil {
			m.id, ids = id, append(ids, id)
		}
		if st := podspec.FindStatus(&pod.Status, name); st != nil {
			m.image = st.Image
		}
		out.containers[name] = m
	}
	if s.config.Cgroups == nil {
		return out
	}
	own, of := s.config.Cgroups(pod, ids)
	out.own = own
	for name, m := range out.containers {
		m.figures = of[m.id]
		out.containers[name] = m
	}
	return out
}

const helpRSS = "Size of RSS in bytes."

// counted adds the series of what the kernel counts and what it gives; what is not known is left out. Which they are
// and when, is cAdvisor's (its metrics/prometheus.go): nothing about throttling, nor a quota, of who has none; but a
// memory limit of 0.
func (c *cadvisorMetrics) counted(of subject, f *cgroup.Figures) {
	var throttled *float64
	if f.ThrottledFor != nil {
		seconds := f.ThrottledFor.Seconds()
		throttled = &seconds
	}
	quota := f.Quota
	if quota != nil && *quota == 0 {
		quota = nil
	}
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	for _, m := range []struct {
		name, help string
		kind       prometheus.ValueType
		value      *float64
	}{
		{"cpu_cfs_periods_total", "Number of elapsed enforcement period intervals.", counter, number(f.Periods)},
		{"cpu_cfs_throttled_periods_total", "Number of throttled period intervals.", counter, number(f.Throttled)},
		{"cpu_cfs_throttled_seconds_total", "Total time duration the container has been throttled.", counter,
			throttled},
		{"memory_cache", "Number of bytes of page cache memory.", gauge, number(f.Cache)},
		{"memory_rss", helpRSS, gauge, number(f.RSS)}, // of runtimes that do not tell
		{"memory_failcnt", "Number of memory usage hits limits", counter, number(f.Hits)},
		{"oom_events_total", "Count of out of memory events observed for the container", counter, number(f.OOMKills)},
		{"spec_memory_limit_bytes", "Memory limit for the container.", gauge, number(f.Limit)},
		{"spec_cpu_period", "CPU period of the container.", gauge, number(f.Period)},
		{"spec_cpu_quota", "CPU quota of the container.", gauge, number(quota)},
		{"spec_cpu_shares", "CPU share of the container.", gauge, number(f.Shares)},
	} {
		c.one(of, m.name, m.help, m.kind, metav1.Time{}, m.value)
	}
}
