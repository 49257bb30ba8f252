// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// debugGrace is how long a debug container that is stopped may take after its stop signal (DC-08).
const debugGrace = 3 * time.Second

// stoppedCode is the exit code of a debug container whose time was over before it started: that of SIGTERM.
const stoppedCode = 143

// debugRun is what is wanted of an ephemeral container beside its spec.
type debugRun struct {
	run    uint32    // the attempt that ought to run, once (DC-06)
	stopAt time.Time // when it is to be stopped; zero for never (DC-08)
	target string    // the container it has to wait for, or ""
}

// wantRun fills in what is wanted of ephemeral container m. Its attempt is its run, which has begun when there is
// anything of this attempt or a later one to be seen or remembered.
func (v *view) wantRun(m *member, target string, want podspec.DebugRun) {
	m.run = uint32(max(want.Run, 0))
	began := time.Time{}
	if m.newest != nil && m.newest.Attempt == m.run {
		began = m.newest.StartedAt
	}
	m.stopAt = want.Ends(began)
	// else all see the same processes, whoever runs
	if podspec.NamespaceModes(v.Pod).PID == podspec.NamespaceContainer {
		m.target = target
	}
	if m.live() || m.start || m.exit != nil && m.exit.attempt >= m.run {
		return
	}
	m.next = m.run
	if v.overdue(m) {
		why := "it was stopped at %s, before it had started"
		if want.TTL != nil { // which counts from its start
			why = "it could not start by %s, and will not be started now"
		}
		m.exit = &exit{code: stoppedCode, finished: m.stopAt, attempt: m.run, skipped: true, reason: "Stopped",
			message: fmt.Sprintf(why, clock(m.stopAt))}
	}
}

// overdue tells whether it is time to stop debug container m, and asks to look again when it will be.
func (v *view) overdue(m *member) bool {
	if m.stopAt.IsZero() {
		return false
	}
	v.wake(m.stopAt)
	return !v.Now.Before(m.stopAt)
}

// debugOnce starts ephemeral container m for its run if that was never started: also while inits still run or fail
// (EC-10), and never again, whatever became of it (EC-11). One that ran in a sandbox that has died does not come back
// (EC-13). What runs is not replaced, and stopped only when its time is over (DC-06, DC-08, DC-09).
func (v *view) debugOnce(m *member) {
	name := m.spec.Name
	switch {
	case m.start || v.isOut(Key{StopContainer, name, m.attempt(), NoProbe}):
	case m.live() && m.newest.Lost:
		v.do(Op{Verb: StopContainer, Container: name, Attempt: m.newest.Attempt, Until: v.Now})
	case m.live() && v.overdue(m):
		v.why(name, "stops because its time was up at %s", clock(m.stopAt))
		v.tell(Event{Reason: "Killing", Message: fmt.Sprintf(
			"Stopping container %s: its time was up at %s, as set by `wherry debug stop` or --ttl", name,
			clock(m.stopAt))})
		v.do(Op{Verb: StopContainer, Container: name, Attempt: m.newest.Attempt, Until: v.Now.Add(debugGrace)})
	case m.live():
	case !v.again(m):
		v.unwant(PullImage, name) // it was stopped before it could start
	case m.newest != nil && !m.here && !m.newest.Exited():
		// It was made for a sandbox that has died, and never ran. Its number is in use until it is removed.
		v.want(Op{Verb: RemoveContainer, Container: name, Attempt: m.newest.Attempt})
	default:
		there := v.pull(m)
		if t := v.missingTarget(m); t != nil {
			v.why(name, "%s", v.waitsFor(t))
			v.tell(Event{Warning: true, Reason: "Failed", Message: "Error: " + v.waitsFor(t)})
		} else if there {
			v.revive(m)
		}
	}
}

// missingTarget returns the container whose processes m is to see if it does not run, else nil: there is nothing to
// join then (PID-07). It is the plan that waits, so that m starts when the target does, and not when a back-off is
// over.
func (v *view) missingTarget(m *member) (missing *member) {
	if m.target == "" {
		return nil
	}
	v.all(func(t *member) {
		if t.spec.Name == m.target && !(t.running() && t.here) {
			missing = t
		}
	})
	return missing
}

// waitsFor says that target t does not run, and why.
func (v *view) waitsFor(t *member) string {
	state := "waiting"
	s := v.containerStatus(t)
	switch {
	case s.State.Waiting != nil && s.State.Waiting.Reason != "":
		state = s.State.Waiting.Reason
	case s.State.Terminated != nil:
		state = fmt.Sprintf("exit code %d, %s", s.State.Terminated.ExitCode, s.State.Terminated.Reason)
	case s.State.Running != nil:
		state = "it runs in an older sandbox"
	}
	return fmt.Sprintf("target container %q is not running (%s): this container starts when it runs; without a target it starts at once",
		t.spec.Name, state)
}

// debugWaiting says what ephemeral container m waits for that other containers do not, or returns nil.
func (v *view) debugWaiting(m *member) *corev1.ContainerStateWaiting {
	if m.kind != podspec.Ephemeral {
		return nil
	}
	if v.left.because != "" && !m.start {
		return &corev1.ContainerStateWaiting{Reason: reasonNotStarted,
			Message: "not started: the pod stops because " + v.left.because}
	}
	if t := v.missingTarget(m); t != nil && v.boxed() {
		return &corev1.ContainerStateWaiting{Reason: reasonCreateError, Message: v.waitsFor(t)}
	}
	return nil
}

// skippedStatus is the status of a run that was stopped before it started: what is known of the run before is the last
// state.
func (v *view) skippedStatus(m *member, s *corev1.ContainerStatus) {
	if m.mem != nil && m.mem.RestartCount < int32(m.run) {
		s.LastTerminationState.Terminated = terminated(m.mem)
		s.ContainerID, s.ImageID = "", ""
	}
	s.RestartCount = int32(m.run)
	s.State.Terminated = v.endOf(m)
}

// clock is a time as messages show it.
func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
