// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Reasons in the status of a pod that its node ends: for want of a resource (PL-13, EC-18), to make room for a critical
// one (PL-20), or because the machine goes down (PL-32).
const (
	ReasonEvicted    = "Evicted"
	ReasonPreempting = "Preempting"
	ReasonTerminated = "Terminated" // because the machine goes down (PL-32)
)

// IsEviction tells whether a status's reason is that of an eviction.
func IsEviction(reason string) bool {
	return reason == ReasonEvicted || reason == ReasonPreempting || reason == ReasonTerminated
}

// Eviction is the node's word that a pod has to go: it stops, and its status ends as Failed, whatever its restart
// policy.
type Eviction struct {
	Reason  string        // "" for ReasonEvicted
	Message string        // names the resource and what used it
	At      time.Time     // when it was decided
	Grace   time.Duration // how long its containers may take; no longer than the pod's own grace
}

// evicted derives that the pod is being evicted: from the node's word or, once that is lost with the agent, from the
// reason that was published when its containers were told to stop. What is stopped half way is stopped to the end.
func (v *view) evicted() (leave, bool) {
	l := leave{because: "it is evicted", phase: corev1.PodFailed, reason: v.Pod.Status.Reason, evicted: true}
	if e := v.Evicted; e != nil {
		l.reason = cmp.Or(e.Reason, ReasonEvicted)
		l.message, l.grace = e.Message, min(e.Grace, graceOf(v.Pod))
		l.until = e.At.Add(l.grace)
		return l, true
	}
	if !IsEviction(v.Pod.Status.Reason) {
		return leave{}, false
	}
	l.message, l.until = v.Pod.Status.Message, v.Now
	return l, true
}

// tellEviction tells of an eviction, also that of a pod of which nothing runs yet.
func (v *view) tellEviction() {
	if !v.left.evicted || ended(&v.Pod.Status) {
		return
	}
	v.why("", "is evicted: %s", v.left.message)
	v.tell(Event{Warning: true, Reason: v.left.reason, Message: v.left.message})
}

func ended(s *corev1.PodStatus) bool {
	return s.Phase == corev1.PodFailed || s.Phase == corev1.PodSucceeded
}

// disruption is the condition that tells jobs and people that it was not the pod's program that failed (KEP-3329).
func disruption(message string) corev1.PodCondition {
	return condition(corev1.DisruptionTarget, true, corev1.PodReasonTerminationByKubelet, message)
}
