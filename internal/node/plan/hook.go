// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// hookOf returns a container's lifecycle hook, or nil.
func hookOf(c *corev1.Container, verb Verb) *corev1.LifecycleHandler {
	switch {
	case c.Lifecycle == nil:
		return nil
	case verb == PostStart:
		return c.Lifecycle.PostStart
	case verb == PreStop:
		return c.Lifecycle.PreStop
	}
	return nil
}

// postStart wants m's postStart hook run once m runs. After a restart of the agent it is run again, unless the stored
// status shows that m had started: at least once is what hooks promise.
func (v *view) postStart(m *member) {
	key := Key{Verb: PostStart, Container: m.spec.Name, Attempt: m.newest.Attempt}
	if m.up || hookOf(m.spec, PostStart) == nil || v.Heard.Done[key] {
		return
	}
	v.why(m.spec.Name, "waits for its postStart hook")
	v.out.Ops = append(v.out.Ops, Op{Verb: PostStart, Container: key.Container, Attempt: key.Attempt})
}

// holdsUp tells whether main m keeps those behind it from being started (PL-17): its postStart hook is under way, or
// will be without a wait first. One that backs off, is held or is being stopped keeps nobody waiting.
func (v *view) holdsUp(m *member) bool {
	if hookOf(m.spec, PostStart) == nil {
		return false
	}
	switch {
	case m.start:
		return true
	case m.live():
		key := Key{Verb: PostStart, Container: m.spec.Name, Attempt: m.newest.Attempt}
		_, failed := v.Heard.Failed[key]
		return m.running() && m.here && !failed && !m.up && !v.Heard.Done[key] && !m.outdated(m.newest.SpecImage) &&
			!v.outgrown(m) &&
			!v.isOut(Key{StopContainer, m.spec.Name, m.newest.Attempt, NoProbe})
	}
	return v.again(m) && v.held(m).IsZero() && !v.Now.Before(v.due(m)) &&
		!v.backsOff(Op{Verb: PullImage, Container: m.spec.Name, Attempt: m.next}) &&
		!v.backsOff(Op{Verb: StartContainer, Container: m.spec.Name, Attempt: m.next})
}

// preStopped wants m's preStop hook run and tells whether m may be sent its stop signal: it has no hook, the hook has
// ended, well or not, or the time is over (SC-10). A hook that outlives its time goes on, and ends with its container
// (PL-18).
func (v *view) preStopped(m *member, until time.Time, verdict Verdict) bool {
	key := Key{Verb: PreStop, Container: m.spec.Name, Attempt: m.newest.Attempt}
	if hookOf(m.spec, PreStop) == nil || v.Heard.Done[key] {
		return true
	}
	if _, failed := v.Heard.Failed[key]; failed {
		return true
	}
	if !v.Now.Before(until) || v.isOut(Key{StopContainer, m.spec.Name, m.newest.Attempt, NoProbe}) {
		v.keepHook(m)
		return true
	}
	v.wake(until)
	v.why(m.spec.Name, "waits for its preStop hook")
	v.bring(Op{Verb: PreStop, Container: key.Container, Attempt: key.Attempt, Until: until, Verdict: verdict})
	return false
}

// keepHook wants m's preStop hook to go on, if it is under way.
func (v *view) keepHook(m *member) {
	for _, c := range v.Calls {
		if c.Verb == PreStop && c.Container == m.spec.Name && c.Attempt == m.attempt() && !c.Cancelled && m.live() {
			v.want(c.Op)
		}
	}
}

// stopping is what goes on of m while it has been told to stop: a preStop hook that takes longer than it may, and,
// since m may serve to its last moment, its readiness probe (PL-18, PL-19).
func (v *view) stopping(m *member) {
	v.keepHook(m)
	if m.running() && m.here {
		v.tryProbes(m, ReadinessProbe)
	}
}

// takeDown stops m for a fault of its own, or, without one, to start it again: preStop, then the stop signal. In a pod
// that is leaving it has no more time than the pod.
func (v *view) takeDown(m *member, until time.Time, verdict Verdict) {
	if v.left.because != "" && v.left.until.Before(until) {
		until = v.left.until
	}
	if v.preStopped(m, until, verdict) {
		v.bring(Op{Verb: StopContainer, Container: m.spec.Name, Attempt: m.newest.Attempt,
			Until: maxTime(until, v.Now.Add(lastWords)), Verdict: verdict})
	}
	v.tryProbes(m, ReadinessProbe) // to its end it may serve (PL-19)
}
