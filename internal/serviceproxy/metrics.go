// SPDX-License-Identifier: Apache-2.0

package serviceproxy

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/component-base/metrics"
)

// measures counts what the proxy does, under kube-proxy's names. A nil one counts nothing.
type measures struct {
	registry                 metrics.KubeRegistry
	took                     *metrics.Histogram
	made, queued             *metrics.Gauge
	failures                 *metrics.Counter
	healthzTotal, livezTotal *metrics.CounterVec
}

func newMeasures() *measures {
	const ns = "kubeproxy"
	gauge := func(name, help string) *metrics.Gauge {
		return metrics.NewGauge(&metrics.GaugeOpts{Namespace: ns, Name: name, Help: help,
			StabilityLevel: metrics.ALPHA})
	}
	counters := func(name, help string) *metrics.CounterVec {
		return metrics.NewCounterVec(&metrics.CounterOpts{Namespace: ns, Name: name, Help: help,
			StabilityLevel: metrics.ALPHA}, []string{"code"})
	}
	m := &measures{
		registry: metrics.NewKubeRegistry(),
		took: metrics.NewHistogram(&metrics.HistogramOpts{Namespace: ns, Name: "sync_proxy_rules_duration_seconds",
			Help:    "Duration in seconds of making the kernel's rules equal to the objects",
			Buckets: metrics.ExponentialBuckets(0.001, 2, 15), StabilityLevel: metrics.ALPHA}),
		made: gauge("sync_proxy_rules_last_timestamp_seconds",
			"The last time the rules were successfully made equal to the objects"),
		queued: gauge("sync_proxy_rules_last_queued_timestamp_seconds",
			"The last time a change was there to be made"),
		failures: metrics.NewCounter(&metrics.CounterOpts{Namespace: ns,
			Name:           "sync_proxy_rules_nftables_sync_failures_total",
			Help:           "Cumulative number of times that the kernel's rules could not be made equal to the objects",
			StabilityLevel: metrics.ALPHA}),
		healthzTotal: counters("proxy_healthz_total", "Cumulative number of answers at /healthz, by code"),
		livezTotal:   counters("proxy_livez_total", "Cumulative number of answers at /livez, by code"),
	}
	m.registry.MustRegister(m.took, m.made, m.queued, m.failures, m.healthzTotal, m.livezTotal)
	return m
}

// handler serves them together with those of the process and of Go. The library's own registry is not served: the API
// server counts there who does what to it, and nobody shows here who he is.
func (m *measures) handler() http.Handler {
	process := prometheus.NewRegistry()
	process.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)))
	return metrics.HandlerFor(prometheus.Gatherers{m.registry, process}, metrics.HandlerOpts{})
}

func (m *measures) passed(began, ended time.Time, err error) {
	switch {
	case m == nil:
	case err != nil:
		m.failures.Inc()
	default:
		m.took.Observe(ended.Sub(began).Seconds())
		m.made.Set(float64(ended.Unix()))
	}
}

func (m *measures) changed(now time.Time) {
	if m != nil {
		m.queued.Set(float64(now.Unix()))
	}
}

func (m *measures) answered(path string, code int) {
	switch {
	case m == nil:
	case path == pathLive:
		m.livezTotal.WithLabelValues(strconv.Itoa(code)).Inc()
	default:
		m.healthzTotal.WithLabelValues(strconv.Itoa(code)).Inc()
	}
}
