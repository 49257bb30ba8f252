// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// metricsResource is /metrics/resource: what node, pods and containers use of CPU and memory, in the kubelet's names,
// which metrics-server and others read (PL-36).
func (s *Server) metricsResource(w http.ResponseWriter, r *http.Request) {
	s.serveMetrics(w, r, func(m *resourceMetrics) prometheus.Collector { return m })
}

// serveMetrics serves a collector's series of what node and pods use now.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request, by func(*resourceMetrics) prometheus.Collector) {
	c := &resourceMetrics{described: map[string]*prometheus.Desc{}, has: map[string]bool{}}
	summary, err := s.summary(r.Context())
	if err != nil {
		s.logger.Info("cannot measure what pods use", "err", err)
		c.failed = 1
	} else {
		c.summary = summary
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(by(c)); err != nil {
		s.refuse(w, r, err)
		return
	}
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}

// resourceMetrics makes metrics of one summary.
type resourceMetrics struct {
	summary   statsapi.Summary
	failed    float64
	described map[string]*prometheus.Desc
	has       map[string]bool // series that were added: of two pods with one name only one can be
	out       chan<- prometheus.Metric
}

// Describe is part of [prometheus.Collector]. Nothing is described beforehand: what there is depends on what runs.
func (c *resourceMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect is part of [prometheus.Collector].
func (c *resourceMetrics) Collect(out chan<- prometheus.Metric) {
	c.out = out
	c.add(series{name: "resource_scrape_error",
		help: "1 if there was an error while getting container metrics, 0 otherwise"}, metav1.Time{}, &c.failed)
	node := c.summary.Node
	c.usage("node", "node", nil, nil, node.CPU, node.Memory, node.Swap)
	podLabels := []string{"pod", "namespace"}
	labels := []string{"container", "pod", "namespace"}
	for i := range c.summary.Pods {
		p := &c.summary.Pods[i]
		c.usage("pod", "pod", podLabels, []string{p.PodRef.Name, p.PodRef.Namespace}, p.CPU, p.Memory, p.Swap)
		for j := range p.Containers {
			k := &p.Containers[j]
			values := []string{k.Name, p.PodRef.Name, p.PodRef.Namespace}
			c.usage("container", "container", labels, values, k.CPU, k.Memory, k.Swap)
			if k.Swap != nil && k.Swap.SwapUsageBytes != nil && k.Swap.SwapAvailableBytes != nil {
				limit := float64(*k.Swap.SwapUsageBytes) + float64(*k.Swap.SwapAvailableBytes)
				c.add(series{"container_swap_limit_bytes", "Current amount of the container swap limit in bytes",
					prometheus.GaugeValue, labels, values}, k.Swap.Time, &limit)
			}
			if !k.StartTime.IsZero() {
				start := float64(k.StartTime.UnixNano()) / float64(time.Second)
				c.add(series{"container_start_time_seconds",
					"Start time of the container since unix epoch in seconds", prometheus.GaugeValue, labels, values},
					metav1.Time{}, &start)
			}
		}
	}
}

// series is one metric with its labels; its kind is a gauge by default.
type series struct {
	name, help     string
	kind           prometheus.ValueType
	labels, values []string
}

// usage adds the CPU, memory and swap of a container, a pod or the node.
func (c *resourceMetrics) usage(prefix, what string, labels, values []string, cpu *statsapi.CPUStats,
	memory *statsapi.MemoryStats, swap *statsapi.SwapStats) {
	if cpu != nil && cpu.UsageCoreNanoSeconds != nil {
		seconds := float64(*cpu.UsageCoreNanoSeconds) / float64(time.Second)
		c.add(series{prefix + "_cpu_usage_seconds_total",
			"Cumulative cpu time consumed by the " + what + " in core-seconds", prometheus.CounterValue, labels,
			values},
			cpu.Time, &seconds)
	}
	if memory != nil {
		c.add(series{prefix + "_memory_working_set_bytes", "Current working set of the " + what + " in bytes",
			prometheus.GaugeValue, labels, values}, memory.Time, number(memory.WorkingSetBytes))
	}
	if swap != nil {
		c.add(series{prefix + "_swap_usage_bytes", "Current swap usage of the " + what + " in bytes",
			prometheus.GaugeValue, labels, values}, swap.Time, number(swap.SwapUsageBytes))
	}
}

func number(n *uint64) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

// add adds one value, with the time that it was measured at; what is not known is left out.
func (c *resourceMetrics) add(s series, at metav1.Time, value *float64) {
	key := s.name
	for _, v := range s.values {
		key += "\x00" + v // paths have slashes
	}
	if value == nil || c.has[key] {
		return
	}
	c.has[key] = true
	if c.described[s.name] == nil {
		c.described[s.name] = prometheus.NewDesc(s.name, s.help, s.labels, nil)
	}
	if s.kind == 0 {
		s.kind = prometheus.GaugeValue
	}
	m, err := prometheus.NewConstMetric(c.described[s.name], s.kind, *value, s.values...)
	if err != nil { // a name that is no text
		return
	}
	if !at.IsZero() {
		m = prometheus.NewMetricWithTimestamp(at.Time, m)
	}
	c.out <- m
}
