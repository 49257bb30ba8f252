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
// that /stats/summary has figures for, or the pods' cgroups. Series of a whole pod have an empty label container, as
// there; those of the whole machine have the id "/", and no other label.
func (s *Server) metricsCAdvisor(w http.ResponseWriter, r *http.Request) {
	s.serveMetrics(w, r, func(m *resourceMetrics) prometheus.Collector {
		return &cadvisorMetrics{resourceMetrics: m, pods: s.podsMeasured(&m.summary)}
	})
}

type cadvisorMetrics struct {
	*resourceMetrics
	pods map[string]podMeasured // by UID
}

// subject is whom series are about: what cAdvisor's labels say under a kubelet (containerPrometheusLabelsFunc).
type subject struct {
	cgroup, id, image, container string // the cgroup is the label id, the id the label name
	pod                          statsapi.PodReference
}

// labels are those of every series, with one more if it has a name. All are always there: series of one name must have
// the same labels.
func (s subject) labels(more, value string) (names, values []string) {
	names = []string{"container", "id", "image", "name", "namespace", "pod"}
	values = []string{s.container, s.cgroup, s.image, s.id, s.pod.Namespace, s.pod.Name}
	if more != "" {
		names, values = append(names, more), append(values, value)
	}
	return names, values
}

// Collect is part of [prometheus.Collector].
func (c *cadvisorMetrics) Collect(out chan<- prometheus.Metric) {
	c.out = out
	c.add(series{name: "container_scrape_error",
		help: "1 if there was an error while getting container metrics, 0 otherwise"}, metav1.Time{}, &c.failed)
	cores := float64(runtime.NumCPU())
	c.add(series{name: "machine_cpu_cores", help: "Number of logical CPU cores."}, metav1.Time{}, &cores)
	node := &c.summary.Node
	if m := node.Memory; m != nil && m.AvailableBytes != nil && m.WorkingSetBytes != nil {
		all := float64(*m.AvailableBytes + *m.WorkingSetBytes)
		c.add(series{name: "machine_memory_bytes", help: "Amount of memory installed on the machine."}, metav1.Time{},
			&all)
	}
	c.used(subject{cgroup: "/"}, node.CPU, node.Memory, nil, node.StartTime)
	for i := range c.summary.Pods {
		p := &c.summary.Pods[i]
		measured := c.pods[p.PodRef.UID]
		whole := subject{cgroup: measured.own.Path, pod: p.PodRef}
		c.used(whole, p.CPU, p.Memory, nil, p.StartTime)
		c.counted(whole, &measured.own)
		c.network(whole, p.Network)
		for j := range p.Containers {
			k := &p.Containers[j]
			m := measured.containers[k.Name]
			one := subject{cgroup: m.figures.Path, id: m.id, image: m.image, container: k.Name, pod: p.PodRef}
			c.used(one, k.CPU, k.Memory, k.Rootfs, k.StartTime)
			c.counted(one, &m.figures)
		}
	}
}

// one adds one series of a subject.
func (c *cadvisorMetrics) one(of subject, name, help string, kind prometheus.ValueType, at metav1.Time,
	value *float64) {
	names, values := of.labels("", "")
	c.add(series{"container_" + name, help, kind, names, values}, at, value)
}

// used adds the series of what a container, a whole pod, or the machine uses by the runtime's account.
func (c *cadvisorMetrics) used(of subject, cpu *statsapi.CPUStats, memory *statsapi.MemoryStats, fs *statsapi.FsStats,
	start metav1.Time) {
	if cpu != nil && cpu.UsageCoreNanoSeconds != nil {
		seconds := float64(*cpu.UsageCoreNanoSeconds) / float64(time.Second)
		names, values := of.labels("cpu", "total") // a kubelet's cAdvisor does not count processors apart either
		c.add(series{"container_cpu_usage_seconds_total", "Cumulative cpu time consumed in seconds.",
			prometheus.CounterValue, names, values}, cpu.Time, &seconds)
	}
	gauge := func(name, help string, at metav1.Time, value *float64) {
		c.one(of, name, help, prometheus.GaugeValue, at, value)
	}
	if memory != nil {
		gauge("memory_usage_bytes",
			"Current memory usage in bytes, including all memory regardless of when it was accessed", memory.Time,
			number(memory.UsageBytes))
		gauge("memory_working_set_bytes", "Current working set in bytes.", memory.Time, number(memory.WorkingSetBytes))
		gauge("memory_rss", helpRSS, memory.Time, number(memory.RSSBytes))
	}
	if fs != nil {
		gauge("fs_usage_bytes", "Number of bytes that are consumed by the container on this filesystem.", fs.Time,
			number(fs.UsedBytes))
		gauge("fs_inodes_total", "Number of inodes", fs.Time, number(fs.Inodes))
	}
	if !start.IsZero() {
		seconds := float64(start.Unix())
		gauge("start_time_seconds", "Start time of the container since unix epoch in seconds.", metav1.Time{}, &seconds)
	}
}

// network adds the series of a pod's interfaces, which belong to none of its containers.
func (c *cadvisorMetrics) network(of subject, n *statsapi.NetworkStats) {
	if n == nil {
		return
	}
	for _, i := range n.Interfaces {
		names, values := of.labels("interface", i.Name)
		for _, m := range []struct {
			name, help string
			value      *uint64
		}{
			{"receive_bytes_total", "Cumulative count of bytes received", i.RxBytes},
			{"receive_errors_total", "Cumulative count of errors encountered while receiving", i.RxErrors},
			{"transmit_bytes_total", "Cumulative count of bytes transmitted", i.TxBytes},
			{"transmit_errors_total", "Cumulative count of errors encountered while transmitting", i.TxErrors},
		} {
			c.add(series{"container_network_" + m.name, m.help, prometheus.CounterValue, names, values},
				n.Time, number(m.value))
		}
	}
}
