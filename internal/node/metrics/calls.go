// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"path"
	"strings"
	"time"
	"unicode"
)

// Called counts a call to the runtime, by its full gRPC method: /runtime.v1.RuntimeService/StartContainer.
func (m *Metrics) Called(method string, took time.Duration, err error) {
	name := operation(method)
	m.runtimeCalls.WithLabelValues(name).Inc()
	m.runtimeTime.WithLabelValues(name).Observe(took.Seconds())
	if err != nil {
		m.runtimeErrors.WithLabelValues(name).Inc()
	}
}

// operation is the kubelet's name of a call: run_podsandbox, start_container, image_status.
func operation(method string) string {
	var b strings.Builder
	for i, r := range strings.ReplaceAll(path.Base(method), "PodSandbox", "Podsandbox") {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Evicted counts the eviction of a pod.
func (m *Metrics) Evicted(signal string) { m.evictions.WithLabelValues(signal).Inc() }

// Preempted counts a pod that went for a critical one.
func (m *Metrics) Preempted(resource string) { m.preemptions.WithLabelValues(resource).Inc() }

// HookFellBack counts an HTTPS hook that was done by plain HTTP.
func (m *Metrics) HookFellBack() { m.hookFallbacks.Inc() }

// SleepCut counts a sleep hook that its container's end cut off.
func (m *Metrics) SleepCut() { m.sleepsCut.Inc() }
