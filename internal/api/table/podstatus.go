// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/podspec"
)

// nodeLost is the status reason of a pod whose node no longer answers.
const nodeLost = "NodeLost"

// podSummary is what the READY, STATUS and RESTARTS columns are made of.
type podSummary struct {
	ready, total int
	status       string
	restarts     restarts
}

// restarts counts restarts and remembers the end of the run before the last one.
type restarts struct {
	count int
	last  time.Time
}

func (r *restarts) add(s *corev1.ContainerStatus) {
	r.count += int(s.RestartCount)
	if t := s.LastTerminationState.Terminated; t != nil && t.FinishedAt.After(r.last) {
		r.last = t.FinishedAt.Time
	}
}

func (p podSummary) restartText(now time.Time) string {
	if p.restarts.count == 0 || p.restarts.last.IsZero() {
		return fmt.Sprint(p.restarts.count)
	}
	return fmt.Sprintf("%d (%s ago)", p.restarts.count, since(p.restarts.last, now))
}

// summarise derives the columns from a pod (PL-01, SC-17). READY counts sidecars; STATUS is the most telling of:
// what is being deleted, what the containers wait for or ended with, which init container holds up the start, the
// reason the pod as a whole was given, its phase.
func summarise(pod *corev1.Pod) podSummary {
	sum := podSummary{status: orElse(pod.Status.Reason, string(pod.Status.Phase)), total: len(pod.Spec.Containers)}
	if c := podspec.Condition(&pod.Status, corev1.PodScheduled); c != nil &&
		c.Reason == corev1.PodReasonSchedulingGated {
		sum.status = corev1.PodReasonSchedulingGated
	}
	sidecars := sidecarNames(pod)
	sum.total += len(sidecars)

	blocked, ofSidecars := sum.passInits(pod, sidecars)
	if !blocked || podspec.IsTrue(&pod.Status, corev1.PodInitialized) {
		// Restarts of init containers are of no interest once they are done; those of sidecars are.
		sum.restarts = ofSidecars
		sum.passMains(pod)
	}
	if pod.Status.Reason == heldOnFailure {
		sum.status = heldOnFailure // its containers say that they have ended, which is not all
	}
	sum.status = deletionStatus(pod, sum.status)
	return sum
}

// heldOnFailure is the reason of a pod whose containers would not be started again, and that is kept for somebody to
// look at.
const heldOnFailure = "HeldOnFailure"

// passInits walks the init containers up to the one that holds up the start, if one does, and describes that.
func (p *podSummary) passInits(pod *corev1.Pod, sidecars map[string]bool) (blocked bool, ofSidecars restarts) {
	for i := range pod.Status.InitContainerStatuses {
		s := &pod.Status.InitContainerStatuses[i]
		p.restarts.add(s)
		if sidecars[s.Name] {
			ofSidecars.add(s)
		}
		if t := s.State.Terminated; t != nil && t.ExitCode == 0 {
			continue
		}
		if sidecars[s.Name] && ptr.Deref(s.Started, false) {
			if s.Ready {
				p.ready++
			}
			continue
		}
		p.status = "Init:" + initStage(s, i, len(pod.Spec.InitContainers))
		return true, ofSidecars
	}
	return false, ofSidecars
}

// initStage is what an unfinished init container is at: an error, a wait, or simply its place in the line.
func initStage(s *corev1.ContainerStatus, place, of int) string {
	if s.State.Terminated != nil {
		return endOf(s.State.Terminated)
	}
	if w := s.State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" {
		return w.Reason
	}
	return fmt.Sprintf("%d/%d", place, of)
}

// passMains lets the first main container that has something to say give the status.
func (p *podSummary) passMains(pod *corev1.Pod) {
	running := false
	for i := len(pod.Status.ContainerStatuses) - 1; i >= 0; i-- {
		s := &pod.Status.ContainerStatuses[i]
		p.restarts.add(s)
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "":
			p.status = s.State.Waiting.Reason
		case s.State.Terminated != nil:
			p.status = endOf(s.State.Terminated)
		case s.State.Running != nil && s.Ready:
			running = true
			p.ready++
		}
	}
	// One container has done its work while another is still at it: the pod is not "Completed".
	if running && p.status == "Completed" {
		p.status = "NotReady"
		if podspec.IsTrue(&pod.Status, corev1.PodReady) {
			p.status = "Running"
		}
	}
}

// endOf names the way a container ended.
func endOf(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", t.ExitCode)
}

func deletionStatus(pod *corev1.Pod, status string) string {
	switch {
	case pod.DeletionTimestamp == nil:
		return status
	case pod.Status.Reason == nodeLost:
		return "Unknown"
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return status
	}
	return "Terminating"
}

func sidecarNames(pod *corev1.Pod) map[string]bool {
	names := map[string]bool{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if podspec.IsSidecar(c) {
			names[c.Name] = true
		}
	}
	return names
}
