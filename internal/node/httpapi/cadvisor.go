// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// metricsCAdvisor reports what pods use under the names that dashboards know from the kubelet's cAdvisor: those of them
// that /stats/summary has figures for. Series of a whole pod have an empty label container, as there.
func (s *Server) metricsCAdvisor(w http.ResponseWriter, r *http.Request) {
	s.serveMetrics(w, r, func(m *resourceMetrics) prometheus.Collector { return &cadvisorMetrics{m} })
}

type cadvisorMetrics struct{ *resourceMetrics }

// Collect is part of [prometheus.Collector].
func (c *cadvisorMetrics) Collect(out chan<- prometheus.Metric) {
	c.out = out
	c.add(series{name: "container_scrape_error",
		help: "1 if there was an error while getting container metrics, 0 otherwise"}, metav1.Time{}, &c.failed)
	cores := float64(runtime.NumCPU())
	c.add(series{name: "machine_cpu_cores", help: "Number of logical CPU cores."}, metav1.Time{}, &cores)
	if m := c.summary.Node.Memory; m != nil && m.AvailableBytes != nil && m.WorkingSetBytes != nil {
		all := float64(*m.AvailableBytes + *m.WorkingSetBytes)
		c.add(series{name: "machine_memory_bytes", help: "Amount of memory installed on the machine."}, metav1.Time{},
			&all)
	}
	for i := range c.summary.Pods {
		p := &c.summary.Pods[i]
		c.one("", p.PodRef, p.CPU, p.Memory, nil, p.StartTime)
		c.network(p)
		for j := range p.Containers {
			k := &p.Containers[j]
			c.one(k.Name, p.PodRef, k.CPU, k.Memory, k.Rootfs, k.StartTime)
		}
	}
}

// one adds the series of a container, or of a whole pod.
func (c *cadvisorMetrics) one(name string, pod statsapi.PodReference, cpu *statsapi.CPUStats,
	memory *statsapi.MemoryStats, fs *statsapi.FsStats, start metav1.Time) {
	at := metav1.Time{}
	add := func(what, help string, kind prometheus.ValueType, value *float64) {
		c.add(series{"container_" + what, help, kind, []string{"container", "namespace", "pod"},
			[]string{name, pod.Namespace, pod.Name}}, at, value)
	}
	if cpu != nil && cpu.UsageCoreNanoSeconds != nil {
		at = cpu.Time
		seconds := float64(*cpu.UsageCoreNanoSeconds) / float64(time.Second)
		add("cpu_usage_seconds_total", "Cumulative cpu time consumed in seconds.", prometheus.CounterValue, &seconds)
	}
	if memory != nil {
		at = memory.Time
		add("memory_usage_bytes",
			"Current memory usage in bytes, including all memory regardless of when it was accessed",
			prometheus.GaugeValue, number(memory.UsageBytes))
		add("memory_working_set_bytes", "Current working set in bytes.", prometheus.GaugeValue,
			number(memory.WorkingSetBytes))
		add("memory_rss", "Size of RSS in bytes.", prometheus.GaugeValue, number(memory.RSSBytes))
	}
	if fs != nil {
		at = fs.Time
		add("fs_usage_bytes", "Number of bytes that are consumed by the container on this filesystem.",
			prometheus.GaugeValue, number(fs.UsedBytes))
		add("fs_inodes_total", "Number of inodes", prometheus.GaugeValue, number(fs.Inodes))
	}
	if !start.IsZero() {
		at = metav1.Time{}
		seconds := float64(start.Unix())
		add("start_time_seconds", "Start time of the container since unix epoch in seconds.", prometheus.GaugeValue,
			&seconds)
	}
}

// network adds the series of a pod's interfaces, which belong to none of its containers.
func (c *cadvisorMetrics) network(p *statsapi.PodStats) {
	if p.Network == nil {
		return
	}
	for _, i := range p.Network.Interfaces {
		for _, m := range []struct {
			name, help string
			value      *uint64
		}{
			{"receive_bytes_total", "Cumulative count of bytes received", i.RxBytes},
			{"receive_errors_total", "Cumulative count of errors encountered while receiving", i.RxErrors},
			{"transmit_bytes_total", "Cumulative count of bytes transmitted", i.TxBytes},
			{"transmit_errors_total", "Cumulative count of errors encountered while transmitting", i.TxErrors},
		} {
			c.add(series{"container_network_" + m.name, m.help, prometheus.CounterValue,
				[]string{"interface", "namespace", "pod"}, []string{i.Name, p.PodRef.Namespace, p.PodRef.Name}},
				p.Network.Time, number(m.value))
		}
	}
}
