// SPDX-License-Identifier: Apache-2.0

package node

import (
	"log/slog"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/controllers/scheduler/fit"
	"github.com/wherryproject/wherry/internal/node/allocated"
	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/podspec"
)

// allocations is what the node has set aside for its pods (PL-14). It belongs to the admission, whose lock guards it.
// What a pod asks for is set aside when the pod comes; what it asks for later is judged then, and again, as long as it
// is put off, whenever there may be more room. Before anybody acts by it, it is in a file.
type allocations struct {
	pods map[types.UID]*allocation
	// folder holds one folder for each pod; "" where nothing is kept.
	folder string
	log    *slog.Logger
	// putOff records an event about a resize that has to wait or cannot be done, and changed makes the pod's worker
	// look at what is set aside. Both are called without the lock.
	putOff  func(pod *corev1.Pod, r plan.Resize)
	changed func(types.UID)
	// fixed says why what a pod asks for can never be set aside in place of what is; "" if it can.
	fixed func(now, asks *corev1.Pod) string
}

// allocation is what is set aside for a pod.
type allocation struct {
	has    podspec.Resources
	asks   *corev1.Pod  // newest version, while it asks for something else
	resize *plan.Resize // why that is put off, once it was judged
	of     int64        // generation that it was judged of
	since  time.Time
}

// allocate takes in a pod that has come: with what an earlier agent has set aside for it, else with what it asks for.
// Called with the lock held.
func (a *admission) allocate(pod *corev1.Pod) *allocation {
	if al := a.held.pods[pod.UID]; al != nil {
		return al
	}
	al := &allocation{has: podspec.ResourcesOf(pod)}
	a.held.pods[pod.UID] = al
	if a.held.folder == "" {
		return al
	}
	kept, ok, err := allocated.Read(filepath.Join(a.held.folder, string(pod.UID)))
	if err != nil {
		a.held.log.Warn("cannot read the resources allocated to a pod; its requests are used", "pod",
			pod.Namespace+"/"+pod.Name, "err", err)
	}
	if !ok || kept.Of(pod) {
		return al
	}
	al.has, al.asks = kept, pod
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodResizePending {
			al.resize = &plan.Resize{Reason: c.Reason, Message: c.Message}
			al.of, al.since = c.ObservedGeneration, c.LastTransitionTime.Time
		}
	}
	return al
}

// resized judges what a pod that is here asks for by now.
func (a *admission) resized(pod *corev1.Pod) {
	a.mu.Lock()
	al := a.held.pods[pod.UID]
	if al == nil || a.refused[pod.UID] != nil {
		a.mu.Unlock()
		return
	}
	switch {
	case !al.has.Of(pod):
		al.asks = pod
	case al.asks != nil: // it asks for what it has again
		*al = allocation{has: al.has}
	}
	asks := al.asks != nil
	a.mu.Unlock()
	if asks {
		a.grantAll()
	}
}

// grantAll sets aside what pods ask for, as far as there is room, each in its turn.
func (a *admission) grantAll() {
	a.mu.Lock()
	var asking []fit.Wanted
	for _, al := range a.held.pods {
		if p := al.asks; p != nil && !ended(&p.Status) && p.DeletionTimestamp == nil {
			asking = append(asking, fit.Wanted{Pod: p, Allocated: al.has.In(p), Since: al.since})
		}
	}
	if len(asking) == 0 || a.node.Object == nil {
		a.mu.Unlock()
		return
	}
	fit.InTurn(asking)
	var granted []*corev1.Pod
	for _, w := range asking {
		if a.grant(w) {
			granted = append(granted, w.Pod)
		}
	}
	events := map[types.UID]plan.Resize{}
	for _, p := range granted {
		if r := a.held.pods[p.UID].resize; r != nil {
			events[p.UID] = *r
		}
	}
	a.mu.Unlock()
	for _, p := range granted {
		if r, has := events[p.UID]; has && a.held.putOff != nil {
			a.held.putOff(p, r)
		}
		if a.held.changed != nil {
			a.held.changed(p.UID)
		}
	}
}

// grant sets aside what a pod asks for, or puts it off, and reports whether that is news. Called with the lock held.
func (a *admission) grant(w fit.Wanted) bool {
	al := a.held.pods[w.Pod.UID]
	m := fit.Resize(w, a.node)
	if a.held.fixed != nil {
		if why := a.held.fixed(w.Allocated, w.Pod); why != "" {
			m = &fit.Misfit{Reason: corev1.PodReasonInfeasible, Message: why}
		}
	}
	if m == nil {
		asks := podspec.ResourcesOf(w.Pod)
		err := a.keep(w.Pod.UID, asks)
		if err == nil {
			*al = allocation{has: asks}
			if a.node.Has(w.Pod.UID) {
				a.node.Add(fit.PlaceAllocated(w.Pod, w.Pod))
			}
			return true
		}
		m = &fit.Misfit{Reason: corev1.PodReasonDeferred, Message: "cannot be recorded on the node: " + err.Error()}
	}
	same := al.resize != nil && al.resize.Reason == m.Reason && al.of == w.Pod.Generation
	if al.since.IsZero() {
		al.since = time.Now()
	}
	al.resize, al.of = &plan.Resize{Reason: m.Reason, Message: m.Message}, w.Pod.Generation
	return !same
}

// keep writes down what is set aside for a pod. Called with the lock held.
func (a *admission) keep(uid types.UID, r podspec.Resources) error {
	if a.held.folder == "" {
		return nil
	}
	return allocated.Write(filepath.Join(a.held.folder, string(uid)), r)
}

// keepAllocated writes down what is set aside for a pod whose folder has just been made.
func (a *admission) keepAllocated(pod *corev1.Pod) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if al := a.held.pods[pod.UID]; al != nil {
		return a.keep(pod.UID, al.has)
	}
	return nil
}

// allocatedTo is part of [work.Node], see Allocated.
func (a *admission) allocatedTo(pod *corev1.Pod) (*corev1.Pod, *plan.Resize) {
	a.mu.Lock()
	defer a.mu.Unlock()
	al := a.held.pods[pod.UID]
	if al == nil {
		return pod, nil
	}
	return al.has.In(pod), al.resize
}

// Allocated is part of [work.Node].
func (a *Agent) Allocated(pod *corev1.Pod) (*corev1.Pod, *plan.Resize) {
	if a.admission == nil {
		return pod, nil
	}
	return a.admission.allocatedTo(pod)
}

// newAllocations connects what is set aside with the rest of the agent.
func (a *Agent) newAllocations() allocations {
	return allocations{pods: map[types.UID]*allocation{}, folder: a.cfg.podsFolder(), log: a.log,
		putOff: func(pod *corev1.Pod, r plan.Resize) {
			a.events.Event(pod, "", corev1.EventTypeWarning, "Resize"+r.Reason,
				"Pod resize "+r.Reason+": "+podspec.ResizeWords(pod, r.Message))
		},
		changed: func(uid types.UID) {
			a.workers.Reallocate(uid)
			a.fresh.due(uid) // downward files show limits
		}, fixed: a.fixed}
}
