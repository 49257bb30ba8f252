// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Restarting all containers (PL-28, KEP-5532). A container that ends with an exit code of which its rules say
// RestartAllContainers calls a new *round*: in the same sandbox and with the same volumes all inits, sidecars and mains
// run again from the first gate on. The round in which an attempt was made is kept with its container, so that the
// rounds are facts: there is one for each such end, and one more than the highest to be seen when the end that calls it
// is of that one. What is of an older round is not *here*, as if it were in an older sandbox. Debug containers take no
// part. Of a pod that is leaving nothing starts again, so that none is called.

// roundOf returns the newest round that has begun.
func roundOf(in *Input) (round int) {
	for i := range in.Seen.Containers {
		round = max(round, in.Seen.Containers[i].Round)
	}
	return round
}

// called tells whether a container has ended that calls a new round. One that is held for somebody to look at calls it
// when its hold is over.
func (v *view) called() (called bool) {
	v.all(func(m *member) {
		e := m.exit
		if m.kind != podspec.Ephemeral && e != nil && m.dead != nil && e.id == m.dead.ID && e.calls && !e.reset {
			called = called || v.held(m).IsZero() && !v.overBefore(e.finished)
		}
	})
	return called
}

// overBefore tells whether the pod's containers had ended for good at a time: an end that comes after that, such as of
// a sidecar that is stopped then, calls nobody.
func (v *view) overBefore(t time.Time) bool {
	for i := range v.gates {
		if m := &v.gates[i]; v.failedForGood(m) && m.exit.finished.Before(t) {
			return true
		}
	}
	for i := range v.mains {
		if m := &v.mains[i]; !v.endedForGood(m) || !m.exit.finished.Before(t) {
			return false
		}
	}
	return true
}

// callsAll tells whether the end of m with this exit code has all containers start again.
func callsAll(m *member, code int32) bool {
	if m.kind == podspec.Ephemeral {
		return false
	}
	for i := range m.spec.RestartPolicyRules {
		if r := &m.spec.RestartPolicyRules[i]; names(r.ExitCodes, code) {
			return r.Action == corev1.ContainerRestartRuleActionRestartAllContainers
		}
	}
	return false
}

// reasonRestartingAll is the reason of a container that waits for its turn to start again with all others.
const reasonRestartingAll = "RestartingAllContainers"

// toldReset tells whether a stored status says that the container starts again with all others.
func toldReset(s *corev1.ContainerStatus) bool {
	return s.State.Waiting != nil && s.State.Waiting.Reason == reasonRestartingAll
}

// resetWaiting is the state of a container that starts again with all others, until it does, or nil.
func (v *view) resetWaiting(m *member) *corev1.ContainerStateWaiting {
	if m.exit == nil || !m.exit.reset {
		return nil
	}
	return &corev1.ContainerStateWaiting{Reason: reasonRestartingAll,
		Message: "all containers start again, because of the exit code of one of them"}
}

// restarting tells whether main m, which has run in this sandbox, waits to start again with all others.
func (v *view) restarting(m *member) bool {
	return v.left.because == "" && v.boxed() && !m.live() && m.exit != nil && m.exit.reset
}

// old tells whether m runs, or may come to run, from a round before the newest.
func (v *view) old(m *member) bool {
	for _, c := range v.Calls {
		if c.Verb == StartContainer && c.Container == m.spec.Name && c.Round < v.round {
			return true
		}
	}
	return m.live() && !m.here && v.inBox(m.newest)
}

// clearing tells whether something of an older round still runs.
func (v *view) clearing() (found bool) {
	v.all(func(m *member) { found = found || m.kind != podspec.Ephemeral && v.old(m) })
	return found
}

// clearRound stops what is of an older round, as Kubernetes does without preStop hooks and with little time: inits and
// mains first, then sidecars from the last to the first. It tells whether anything is left: nothing starts before.
func (v *view) clearRound() bool {
	if !v.clearing() {
		return false
	}
	v.why("", "waits for all containers to stop, to start them again")
	busy := false
	for i := range v.mains {
		busy = v.clearOne(&v.mains[i]) || busy
	}
	for i := range v.gates {
		if v.gates[i].kind == podspec.Init {
			busy = v.clearOne(&v.gates[i]) || busy
		}
	}
	for i := len(v.gates) - 1; i >= 0 && !busy; i-- {
		if v.gates[i].kind == podspec.Sidecar {
			busy = v.clearOne(&v.gates[i])
		}
	}
	return true
}

func (v *view) clearOne(m *member) bool {
	if !v.old(m) {
		return false
	}
	if m.live() {
		until := v.Now.Add(lastWords)
		if m.newest.Lost {
			until = v.Now
		}
		v.why(m.spec.Name, "stops because all containers start again")
		v.tell(Event{Reason: "Killing", Message: fmt.Sprintf(
			"Stopping container %s: all containers of the pod start again", m.spec.Name)})
		v.bring(Op{Verb: StopContainer, Container: m.spec.Name, Attempt: m.newest.Attempt, Until: until})
	}
	return true
}

// restartingCondition is the condition AllContainersRestarting; a pod without such rules has none.
func (v *view) restartingCondition() *corev1.PodCondition {
	for ref := range podspec.OwnContainers(&v.Pod.Spec) {
		for i := range ref.Container.RestartPolicyRules {
			if ref.Container.RestartPolicyRules[i].Action != corev1.ContainerRestartRuleActionRestartAllContainers {
				continue
			}
			c := condition(corev1.AllContainersRestarting, false, "", "")
			if v.left.because == "" && v.boxed() && v.clearing() {
				c = condition(corev1.AllContainersRestarting, true, "RestartAllContainersStarted",
					"container exited with restart policy rule")
			}
			return &c
		}
	}
	return nil
}
