// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Metrics is what one agent measures. Safe for concurrent use.
type Metrics struct {
	registry metrics.KubeRegistry

	startedPods, startedPodErrors      *metrics.Counter
	startedUserNS, startedUserNSErrors *metrics.Counter
	startedContainers, startedErrors   *metrics.CounterVec
	podStart, podStartSLI, statusSync  *metrics.Histogram
	podWorker                          *metrics.HistogramVec
	containersPerPod                   *metrics.Histogram
	probes                             *metrics.CounterVec
	runtimeCalls, runtimeErrors        *metrics.CounterVec
	runtimeTime, operationTime         *metrics.HistogramVec
	operationErrors, nudges            *metrics.CounterVec
	decisionTime                       *metrics.Histogram
	evictions, preemptions, terminated *metrics.CounterVec
	hookFallbacks, sleepsCut           *metrics.Counter

	mu   sync.Mutex
	pods map[types.UID]*record
}

// Now is what there is on the node at this moment.
type Now struct {
	Node       string                 // its name
	Pods       int                    // with a sandbox that is ready
	Containers map[string]int         // by state: created, running, exited, unknown
	Claims     []statsapi.VolumeStats // of volumes that are claims; the same claim may be there once for each pod
}

// New makes an agent's metrics. look is called when somebody asks for them.
func New(look func() Now) *Metrics {
	m := &Metrics{registry: metrics.NewKubeRegistry(), pods: map[types.UID]*record{}}
	m.kubelet()
	m.own()
	m.registry.MustRegister(m.startedPods, m.startedPodErrors, m.startedUserNS, m.startedUserNSErrors,
		m.startedContainers, m.startedErrors, m.podStart, m.podStartSLI, m.statusSync, m.podWorker, m.containersPerPod,
		m.probes, m.runtimeCalls, m.runtimeErrors, m.runtimeTime, m.operationTime, m.operationErrors, m.decisionTime,
		m.nudges, m.evictions, m.preemptions, m.terminated, m.hookFallbacks, m.sleepsCut)
	m.registry.CustomMustRegister(newPresent(look))
	return m
}

// Handler serves these metrics together with those of the process, of Go and of the Kubernetes libraries.
func (m *Metrics) Handler() http.Handler {
	return metrics.HandlerFor(prometheus.Gatherers{m.registry, legacyregistry.DefaultGatherer}, metrics.HandlerOpts{})
}

// Probes serves those of probes alone, where a kubelet has them.
func (m *Metrics) Probes() http.Handler {
	registry := metrics.NewKubeRegistry()
	registry.MustRegister(m.probes)
	return metrics.HandlerFor(registry, metrics.HandlerOpts{})
}

// kubelet makes those with the kubelet's names.
func (m *Metrics) kubelet() {
	const ns = "kubelet"
	m.startedPods = counter(ns, "started_pods_total", "Cumulative number of pods started")
	m.startedPodErrors = counter(ns, "started_pods_errors_total", "Cumulative number of errors when starting pods")
	m.startedUserNS = counter(ns, "started_user_namespaced_pods_total",
		"Cumulative number of pods with user namespaces started. This metric will only be collected on Linux.")
	m.startedUserNSErrors = counter(ns, "started_user_namespaced_pods_errors_total",
		"Cumulative number of errors when starting pods with user namespaces. This metric will only be collected on Linux.")
	m.startedContainers = counters(ns, "started_containers_total", "Cumulative number of containers started",
		"container_type")
	m.startedErrors = counters(ns, "started_containers_errors_total",
		"Cumulative number of errors when starting containers", "container_type", "code")
	m.terminated = counters(ns, "terminated_containers_total",
		"Cumulative number of containers that have ended, by exit code and reason", "container_type", "exit_code",
		"reason")
	m.podStart = histogram(ns, "pod_start_duration_seconds",
		"Duration in seconds from the agent seeing a pod for the first time to the pod starting to run", startBuckets())
	m.podStartSLI = histogram(ns, "pod_start_sli_duration_seconds",
		"Duration in seconds to start a pod, excluding time to pull images and run init containers, measured from pod creation to when all its containers are reported as started",
		startBuckets())
	m.statusSync = histogram(ns, "pod_status_sync_duration_seconds",
		"Duration in seconds to sync a pod status update: from the detection of a change to the API server having it, also over several changes",
		[]float64{.01, .05, .1, .5, 1, 5, 10, 20, 30, 45, 60})
	m.podWorker = histograms(ns, "pod_worker_duration_seconds",
		"Duration in seconds to sync a single pod, by operation type: create, update, sync or kill", quickBuckets(),
		"operation_type")
	m.containersPerPod = histogram(ns, "containers_per_pod_count", "The number of containers per pod",
		[]float64{1, 2, 3, 5, 8, 13, 21})
	m.evictions = counters(ns, "evictions", "Cumulative number of pod evictions by eviction signal", "eviction_signal")
	m.preemptions = counters(ns, "preemptions", "Cumulative number of pod preemptions by preemption resource",
		"preemption_signal")
	m.hookFallbacks = counter(ns, "lifecycle_handler_http_fallbacks_total",
		"The number of times lifecycle handlers successfully fell back to http from https")
	m.sleepsCut = counter(ns, "sleep_action_terminated_early_total",
		"The number of times lifecycle sleep handler got terminated before it finishes")
	m.probes = counters("prober", "probe_total",
		"Cumulative number of a liveness, readiness or startup probe for a container by result", "probe_type", "result",
		"container", "pod", "namespace", "pod_uid")
	m.runtimeCalls = counters(ns, "runtime_operations_total",
		"Cumulative number of runtime operations by operation type", "operation_type")
	m.runtimeErrors = counters(ns, "runtime_operations_errors_total",
		"Cumulative number of runtime operation errors by operation type", "operation_type")
	m.runtimeTime = histograms(ns, "runtime_operations_duration_seconds",
		"Duration in seconds of runtime operations by operation type", quickBuckets(), "operation_type")
}

// own makes those that the kubelet has not.
func (m *Metrics) own() {
	const ns = "wherry"
	m.operationTime = histograms(ns, "operation_duration_seconds",
		"Duration in seconds of the operations on pods, by kind", quickBuckets(), "operation")
	m.operationErrors = counters(ns, "operation_errors_total",
		"Cumulative number of operations on pods that failed, by kind; probes answered with no are none", "operation")
	m.decisionTime = histogram(ns, "decision_duration_seconds", "Duration in seconds of one decision about a pod",
		[]float64{1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 1e-2})
	m.nudges = counters(ns, "runtime_nudges_total",
		"Cumulative number of events from the runtime: about one pod, or to look at all of them", "scope")
}

// startBuckets are the kubelet's, with finer ones below.
func startBuckets() []float64 {
	return []float64{.05, .1, .2, .3, .5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600,
		900, 1200, 1800, 2700, 3600}
}

// quickBuckets reach from a tenth of a millisecond to some minutes.
func quickBuckets() []float64 {
	return []float64{1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 180}
}

func counter(ns, name, help string) *metrics.Counter {
	return metrics.NewCounter(&metrics.CounterOpts{Namespace: ns, Name: name, Help: help,
		StabilityLevel: metrics.ALPHA})
}

func counters(ns, name, help string, labels ...string) *metrics.CounterVec {
	return metrics.NewCounterVec(&metrics.CounterOpts{Namespace: ns, Name: name, Help: help,
		StabilityLevel: metrics.ALPHA}, labels)
}

func histogram(ns, name, help string, buckets []float64) *metrics.Histogram {
	return metrics.NewHistogram(&metrics.HistogramOpts{Namespace: ns, Name: name, Help: help, Buckets: buckets,
		StabilityLevel: metrics.ALPHA})
}

func histograms(ns, name, help string, buckets []float64, labels ...string) *metrics.HistogramVec {
	return metrics.NewHistogramVec(&metrics.HistogramOpts{Namespace: ns, Name: name, Help: help, Buckets: buckets,
		StabilityLevel: metrics.ALPHA}, labels)
}
