// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Waiting reasons that the kubelet publishes and people know.
const (
	reasonCreating     = "ContainerCreating"
	reasonInitializing = "PodInitializing"
	reasonCrashLoop    = "CrashLoopBackOff"
	reasonErrPull      = "ErrImagePull"
	reasonPullBackOff  = "ImagePullBackOff"
	reasonCreateError  = "CreateContainerError"
	reasonNotStarted   = "NotStarted"      // an ephemeral container of a pod that is leaving
	reasonNotAllowed   = "ImageNotAllowed" // the node does not take an ephemeral container with this image (DC-13)
)

// pullErrorShown is how long a failed pull is shown as ErrImagePull before it is shown as ImagePullBackOff, so that
// a watcher sees both, as it does with the kubelet.
const pullErrorShown = time.Second

// status derives what to publish from the same facts as the operations (PL-01).
func (v *view) status() corev1.PodStatus {
	l := v.left
	old := &v.Pod.Status
	s := corev1.PodStatus{
		ObservedGeneration:    v.Pod.Generation,
		QOSClass:              old.QOSClass,
		NominatedNodeName:     old.NominatedNodeName,
		ResourceClaimStatuses: old.ResourceClaimStatuses,
		StartTime:             old.StartTime,
	}
	if s.StartTime == nil {
		t := stamp(v.Now)
		s.StartTime = &t
	}
	v.addresses(&s)
	if !v.rejected() {
		v.containers(&s)
	}
	s.Phase = v.phase()
	switch {
	case l.reason != "":
		s.Reason, s.Message = l.reason, l.message
	case v.holdReason(&s):
	case s.Phase == old.Phase && old.Reason != reasonHeld:
		s.Reason, s.Message = old.Reason, old.Message
	}
	v.tellWhole(&s)
	v.conditions(&s)
	return s
}

// rejected tells whether this node has not taken the pod. Nothing is said of its containers then, as the kubelet does:
// a client would show that they are being created for ever (PL-20).
func (v *view) rejected() bool {
	old := &v.Pod.Status
	return v.unbegun() && (v.Refused != nil && v.left.reason == v.Refused.Reason ||
		old.Phase == corev1.PodFailed && len(old.ContainerStatuses) == 0)
}

func (v *view) containers(s *corev1.PodStatus) {
	for i := range v.gates {
		s.InitContainerStatuses = append(s.InitContainerStatuses, v.containerStatus(&v.gates[i]))
	}
	for i := range v.mains {
		s.ContainerStatuses = append(s.ContainerStatuses, v.containerStatus(&v.mains[i]))
	}
	for i := range v.debug {
		s.EphemeralContainerStatuses = append(s.EphemeralContainerStatuses, v.containerStatus(&v.debug[i]))
	}
}

func (v *view) addresses(s *corev1.PodStatus) {
	old := &v.Pod.Status
	for _, ip := range v.Node.HostIPs {
		s.HostIPs = append(s.HostIPs, corev1.HostIP{IP: ip})
	}
	s.PodIPs = old.PodIPs
	if v.boxed() {
		ips := v.box.IPs
		if v.Pod.Spec.HostNetwork {
			ips = v.Node.HostIPs
		}
		s.PodIPs = nil
		for _, ip := range ips {
			s.PodIPs = append(s.PodIPs, corev1.PodIP{IP: ip})
		}
	}
	if len(s.HostIPs) > 0 {
		s.HostIP = s.HostIPs[0].IP
	}
	if len(s.PodIPs) > 0 {
		s.PodIP = s.PodIPs[0].IP
	}
}

// phase is derived from the gates and the mains alone; sidecars have no say in it (SC-06).
func (v *view) phase() corev1.PodPhase {
	l := v.left
	old := v.Pod.Status.Phase
	if old == corev1.PodFailed || old == corev1.PodSucceeded {
		return old
	}
	over := v.over()
	if over && l.phase != "" {
		return l.phase
	}
	if over && v.unborn() {
		return corev1.PodFailed // deleted before it came to do anything: it ends in a phase that is an end
	}
	if !v.initialized() && !v.anyMainBegun() {
		return corev1.PodPending
	}
	failed := false
	for i := range v.mains {
		if e := v.mains[i].exit; e != nil && e.failed() {
			failed = true
		}
	}
	switch {
	case over && failed:
		return corev1.PodFailed
	case over:
		return corev1.PodSucceeded
	case (v.unborn() || !v.anyMainBegun()) && old != corev1.PodRunning:
		return corev1.PodPending
	}
	return corev1.PodRunning
}

// unborn tells whether some main never ran.
func (v *view) unborn() bool {
	for i := range v.mains {
		if m := &v.mains[i]; m.exit == nil && !m.live() {
			return true
		}
	}
	return false
}

// containerStatus tells the state of one container.
func (v *view) containerStatus(m *member) corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: m.spec.Name, Image: m.spec.Image, VolumeMounts: v.mounts(m.spec.VolumeMounts)}
	if m.mem != nil {
		s.ImageID, s.ContainerID, s.RestartCount = m.mem.ImageID, m.mem.ContainerID, m.mem.RestartCount
		s.LastTerminationState, s.StopSignal, s.User = m.mem.LastTerminationState, m.mem.StopSignal, m.mem.User
	}
	run := m.newest
	if run != nil && !run.Live() && !run.Exited() {
		run = m.dead // created, not started: nothing to tell of it yet
	}
	if run != nil && !run.Live() && m.mem != nil && int32(run.Attempt) < m.mem.RestartCount {
		run = nil // a later attempt has run, and is gone from the runtime
	}
	if run != nil {
		if m.mem != nil && (int32(run.Attempt) > m.mem.RestartCount || v.replaces(m, run)) {
			s.LastTerminationState.Terminated = terminated(m.mem)
		}
		s.RestartCount = max(s.RestartCount, int32(run.Attempt))
		s.ContainerID = v.containerID(run.ID)
		s.ImageID = run.ImageID
		if run.Image != "" {
			s.Image = run.Image
		}
		if run.StopSignal != "" {
			signal := corev1.Signal(run.StopSignal)
			s.StopSignal = &signal
		}
		if run.User != nil {
			s.User = &corev1.ContainerUser{Linux: run.User}
		}
		if run.Live() && m.dead != nil {
			s.LastTerminationState.Terminated = v.terminatedState(m, m.dead)
		}
	}
	switch {
	case m.live():
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: stamp(m.newest.StartedAt)}
		s.Ready = v.isReady(m)
	case m.exit != nil && m.exit.skipped:
		v.skippedStatus(m, &s)
	case m.exit != nil:
		v.afterExit(m, &s)
	default:
		s.State.Waiting = v.waiting(m)
	}
	started := m.up
	s.Started = &started
	v.tellResources(m, &s)
	return s
}

// replaces tells whether run has the number of an attempt that never ran, see [view.stillborn], whose end was told.
func (v *view) replaces(m *member, run *Container) bool {
	t := terminated(m.mem)
	return m.kind != podspec.Ephemeral && run.Live() && t != nil && t.StartedAt.IsZero() &&
		int32(run.Attempt) == m.mem.RestartCount &&
		t.ContainerID != v.containerID(run.ID)
}

// afterExit fills in the state of a container whose last attempt is over: how it ended, or what it waits for.
func (v *view) afterExit(m *member, s *corev1.ContainerStatus) {
	end, anew := v.endOf(m), v.anew(m)
	s.Ready = m.kind == podspec.Init && m.exit.code == 0 && !anew
	if v.left.because != "" || !v.again(m) && !anew {
		s.State.Terminated = end
		return
	}
	if anew && !v.turn(m) {
		s.State.Waiting, s.LastTerminationState.Terminated = v.waiting(m), end
		return
	}
	if until := v.held(m); !until.IsZero() {
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: reasonHeld, Message: heldUntil(until)}
		s.LastTerminationState.Terminated = end
		return
	}
	if m.kind == podspec.Ephemeral {
		s.State.Waiting, s.LastTerminationState.Terminated = v.waiting(m), end
		s.RestartCount, s.ContainerID, s.ImageID = int32(m.run), "", "" // it speaks of the run to come, see lastExit
		return
	}
	if w := v.failure(m); w != nil {
		s.State.Waiting, s.LastTerminationState.Terminated = w, end
		return
	}
	// Both reasons stay until the next attempt runs, also while its image is pulled.
	if wait := v.due(m).Sub(m.exit.finished); wait > 0 {
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: reasonCrashLoop,
			Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
				wait, m.spec.Name, v.Pod.Name, v.Pod.Namespace, v.Pod.UID)}
		s.LastTerminationState.Terminated = end
		return
	}
	if f, ok := v.Heard.Failed[Key{StartContainer, m.spec.Name, m.exit.attempt, NoProbe}]; ok &&
		m.exit.started.IsZero() {
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: f.Reason, Message: f.Message}
		s.LastTerminationState.Terminated = end
		return
	}
	if anew {
		s.State.Waiting, s.LastTerminationState.Terminated = v.waiting(m), end
		return
	}
	if m.kind == podspec.Main && !restarts(&v.Pod.Spec, m.spec, m.exit.code, m.exit.code != 0) {
		// By its exit code it would not run again: it does for its new image, or because it was killed as failed.
		s.State.Waiting, s.LastTerminationState.Terminated = &corev1.ContainerStateWaiting{Reason: reasonCreating}, end
		return
	}
	s.State.Terminated = end
	if last := s.LastTerminationState.Terminated; last != nil && last.ContainerID == end.ContainerID {
		s.LastTerminationState.Terminated = nil // it was held, which is over
	}
}

// endOf describes m's exit, in the words stored before if the runtime has lost them.
func (v *view) endOf(m *member) *corev1.ContainerStateTerminated {
	if m.dead != nil && m.dead.ID == m.exit.id {
		return v.terminatedState(m, m.dead)
	}
	if m.mem != nil {
		if t := terminated(m.mem); t != nil && t.ContainerID == m.exit.id {
			return t
		}
	}
	e := m.exit
	return &corev1.ContainerStateTerminated{ExitCode: e.code, Reason: e.reason, Message: e.message,
		StartedAt: stamp(e.started), FinishedAt: stamp(e.finished), ContainerID: e.id}
}

func (v *view) terminatedState(m *member, c *Container) *corev1.ContainerStateTerminated {
	id := v.containerID(c.ID)
	if m.mem != nil { // what was published once stays, though the files it came from may be gone
		for _, t := range []*corev1.ContainerStateTerminated{m.mem.State.Terminated,
			m.mem.LastTerminationState.Terminated} {
			if t != nil && t.ContainerID == id {
				return t
			}
		}
	}
	end := &corev1.ContainerStateTerminated{ExitCode: c.ExitCode, Reason: c.Reason, Message: c.Message,
		StartedAt: stamp(c.StartedAt), FinishedAt: stamp(c.FinishedAt), ContainerID: id}
	if c.StartedAt.IsZero() && v.ordered().because != "" {
		end.FinishedAt = stamp(time.Time{}) // it was stopped before it began: what never began has no end (PL-01)
	}
	if verdict := v.verdictOn(m, c); verdict.Given() && c.ExitCode == 0 {
		tellCondemned(end, verdict)
	}
	return end
}

// waiting says what a container that never ran waits for (PL-15).
func (v *view) waiting(m *member) *corev1.ContainerStateWaiting {
	if w := v.failure(m); w != nil {
		return w
	}
	if w := v.debugWaiting(m); w != nil {
		return w
	}
	if w := v.resetWaiting(m); w != nil {
		return w
	}
	w := &corev1.ContainerStateWaiting{Reason: reasonCreating}
	if len(v.gates) > 0 && m.kind != podspec.Ephemeral {
		w.Reason = reasonInitializing
	}
	if f, ok := v.Heard.Failed[Key{Verb: PrepareVolumes}]; ok {
		w.Message = f.Message
		return w
	}
	if v.boxed() {
		return w
	}
	last := Failure{} // there may be one for each attempt at a sandbox
	for key, f := range v.Heard.Failed {
		if key.Verb == RunSandbox && f.At.After(last.At) {
			last = f
		}
	}
	w.Message = last.Message
	return w
}

// failure returns the waiting state that tells why m's next attempt could not start, or nil.
func (v *view) failure(m *member) *corev1.ContainerStateWaiting {
	pull := Key{PullImage, m.spec.Name, m.next, NoProbe}
	if f, ok := v.Heard.Failed[pull]; ok {
		if final(f.Reason) {
			return &corev1.ContainerStateWaiting{Reason: f.Reason, Message: f.Message}
		}
		shown := f.At.Add(pullErrorShown)
		if v.Now.Before(shown) {
			v.wake(shown)
			return &corev1.ContainerStateWaiting{Reason: f.Reason, Message: f.Message}
		}
		return &corev1.ContainerStateWaiting{Reason: reasonPullBackOff,
			Message: fmt.Sprintf("Back-off pulling image %q: %s: %s", cmp.Or(f.Image, m.spec.Image), f.Reason,
				f.Message)}
	}
	if f, ok := v.Heard.Failed[Key{StartContainer, m.spec.Name, m.next, NoProbe}]; ok {
		return &corev1.ContainerStateWaiting{Reason: f.Reason, Message: f.Message}
	}
	if m.mem != nil && m.mem.State.Waiting != nil && v.isOut(pull) {
		switch m.mem.State.Waiting.Reason { // a restarted agent says the same until it knows better
		case reasonErrPull, reasonPullBackOff:
			return m.mem.State.Waiting
		}
	}
	return nil
}

// final tells whether a pull failed for a reason that another try at the registry would not mend, so that no back-off
// is shown for it (PL-03).
func final(reason string) bool {
	return reason == "ErrImageNeverPull" || reason == "InvalidImageName" || reason == "ImageInspectError" ||
		reason == reasonNotAllowed
}

func (v *view) containerID(id string) string {
	if id == "" {
		return ""
	}
	return v.Node.Runtime + "://" + id
}

// stamp cuts a time to the precision the API keeps, so that what is published and what comes back are equal.
func stamp(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{}
	}
	return metav1.NewTime(t.Truncate(time.Second))
}
