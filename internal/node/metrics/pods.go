// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/podspec"
)

// record is what is kept of a pod while it is on the node.
type record struct {
	seen    time.Time // when the agent first saw it
	running bool      // its start has been measured, or was before this agent's time
	started bool      // the same for the start that is reported
	changed time.Time // when its status changed that is not stored yet; zero if it is
	began   map[plan.Key]time.Time
	pulls   []span
	inits   map[plan.Key]span        // of init containers, by attempt
	probed  map[probeLabels]struct{} // series that name this pod
}

// Arrived is called with a pod that the agent sees for the first time.
func (m *Metrics) Arrived(pod *corev1.Pod, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pods[pod.UID] != nil {
		return
	}
	m.containersPerPod.Observe(float64(len(pod.Spec.Containers)))
	// One that an agent has begun before is not measured: nobody knows when it was first seen.
	old := pod.Status.StartTime != nil
	m.pods[pod.UID] = &record{seen: now, running: old, started: old, began: map[plan.Key]time.Time{},
		inits: map[plan.Key]span{}, probed: map[probeLabels]struct{}{}}
}

// Gone is called when a pod has no record any more. All that names it is forgotten.
func (m *Metrics) Gone(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.pods[uid]
	if r == nil {
		return
	}
	for l := range r.probed {
		m.probes.Delete(l.labels())
	}
	delete(m.pods, uid)
}

// StatusChanged is called when a status was decided.
func (m *Metrics) StatusChanged(pod *corev1.Pod, from, to *corev1.PodStatus, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.pods[pod.UID]
	if r == nil {
		return
	}
	if r.changed.IsZero() {
		r.changed = now
	}
	m.ended(pod, from, to)
	if !r.running && from.Phase == corev1.PodPending && to.Phase != corev1.PodPending {
		r.running = true
		if to.Phase != corev1.PodFailed {
			m.podStart.Observe(now.Sub(r.seen).Seconds())
		}
	}
}

// Saving is called when a status is on its way to the API server. The result is for [Metrics.Saved].
func (m *Metrics) Saving(uid types.UID) (changed time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.pods[uid]; r != nil {
		changed, r.changed = r.changed, time.Time{}
	}
	return changed
}

// Saved is called when that has succeeded or failed.
func (m *Metrics) Saved(pod *corev1.Pod, status *corev1.PodStatus, changed time.Time, err error, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.pods[pod.UID]
	if r == nil {
		return
	}
	if err != nil {
		if !changed.IsZero() {
			r.changed = changed // the change is still to be stored
		}
		return
	}
	if !changed.IsZero() {
		m.statusSync.Observe(now.Sub(changed).Seconds())
	}
	if !r.started && allStarted(status) {
		r.started = true
		begin := r.createdAt(pod)
		spent := append(slices.Collect(maps.Values(r.inits)), r.pulls...)
		m.podStartSLI.Observe((now.Sub(begin) - covered(spent, begin, now)).Seconds())
		r.pulls, r.inits = nil, nil
	}
}

// createdAt is when the pod was created, as near as can be known: its record has the second only, in which the agent
// most often has seen it too.
func (r *record) createdAt(pod *corev1.Pod) time.Time {
	created := pod.CreationTimestamp.Time
	if r.seen.Sub(created) < time.Second {
		return r.seen
	}
	return created
}

func allStarted(s *corev1.PodStatus) bool {
	for i := range s.ContainerStatuses {
		if state := &s.ContainerStatuses[i].State; state.Running == nil && state.Terminated == nil {
			return false
		}
	}
	return len(s.ContainerStatuses) > 0
}

// mostSpans bounds what is kept of a pod that does not come to start.
const mostSpans = 100

// look takes from what is seen on the node how long init containers ran.
func (r *record) look(pod *corev1.Pod, seen *plan.Seen) {
	if r.started {
		return
	}
	for i := range seen.Containers {
		c := &seen.Containers[i]
		if ref, ok := podspec.FindContainer(&pod.Spec, c.Name); ok && ref.Kind == podspec.Init && c.Exited() {
			if len(r.inits) < mostSpans {
				r.inits[plan.Key{Container: c.Name, Attempt: c.Attempt}] = span{c.StartedAt, c.FinishedAt}
			}
		}
	}
}
