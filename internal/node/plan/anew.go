// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// A pod whose sandbox was lost is initialised anew (PL-39): its gates open again, one by one, in a new sandbox. Until
// one of its mains runs there, it shows itself as a pod that comes up, except for its restart counts and last states.

// lost tells whether the pod stays and has no sandbox: the one it had is gone, or none was made yet.
func (v *view) lost() bool { return v.left.because == "" && !v.boxed() }

// over tells whether the pod is leaving, and nothing of it runs any more.
func (v *view) over() bool { return v.left.because != "" && v.still() }

// anew tells whether m's last attempt ended in a sandbox that was lost, and another is to follow because of that.
func (v *view) anew(m *member) bool {
	if v.left.because != "" || m.kind == podspec.Ephemeral || m.exit == nil || m.exit.here && v.boxed() {
		return false
	}
	if m.exit.reset {
		return true
	}
	for i := range v.gates {
		if m == &v.gates[i] && m.kind == podspec.Init {
			return (v.lost() || !v.open(i)) && !v.onceOnly(m)
		}
	}
	return v.again(m)
}

// turn tells whether all gates before m are open.
func (v *view) turn(m *member) bool {
	if v.lost() {
		return false
	}
	for i := range v.gates {
		if m == &v.gates[i] {
			return true
		}
		if !v.open(i) {
			return false
		}
	}
	return true
}

// anyMainBegun tells whether some main runs, has run in the pod's sandbox or has ended for good. Of a pod that is over
// it is enough that one ever ran.
func (v *view) anyMainBegun() bool {
	if v.over() {
		return v.everBegun()
	}
	for i := range v.mains {
		m := &v.mains[i]
		if m.live() || m.exit != nil && (m.exit.here && !v.lost() || !v.again(m)) || v.restarting(m) {
			return true
		}
	}
	return false
}

// everBegun tells whether some main ever ran.
func (v *view) everBegun() bool {
	for i := range v.mains {
		if m := &v.mains[i]; m.exit != nil || m.live() {
			return true
		}
	}
	return false
}

// initialized tells whether every gate was open once in the newest sandbox.
func (v *view) initialized() bool {
	if len(v.gates) > 0 && v.lost() {
		return false
	}
	for i := range v.mains {
		if v.restarting(&v.mains[i]) {
			return true // it was, and stays so as Kubernetes has it (PL-28)
		}
	}
	for i := range v.gates {
		if !v.open(i) && !v.passed(i) {
			return false
		}
	}
	return true
}

// stranded says why a pod can not be initialised anew: an init that has done its work would have to do it once more,
// and its restart policy does not let it. Kubernetes makes no other sandbox for such a pod either, and leaves it
// Pending for ever.
func (v *view) stranded() leave {
	if !v.still() { // what was in the old sandbox ends first, and may fail the pod in a way of its own
		return leave{}
	}
	for i := range v.gates {
		m := &v.gates[i]
		if m.kind != podspec.Init || m.exit == nil || m.exit.failed() || m.exit.reset || m.exit.here && v.boxed() ||
			v.passed(i) && v.boxed() || !v.onceOnly(m) {
			continue
		}
		return leave{because: fmt.Sprintf("its sandbox was lost when init container %s, which may run only once, had ended", m.spec.Name),
			until: v.past(v.endStands(m)).Add(graceOf(v.Pod)), phase: corev1.PodFailed, reason: reasonSandboxLost,
			message: fmt.Sprintf("The pod's sandbox was lost before its main containers started. Init container %s would have to run again, "+
				"which restartPolicy Never forbids", m.spec.Name)}
	}
	return leave{}
}

// reasonSandboxLost is the reason of a pod that failed because it could not be initialised anew.
const reasonSandboxLost = "SandboxLost"

// onceOnly tells whether an init may not run again once it has succeeded. A policy of OnFailure does not keep it from
// that after the loss of the sandbox: the API server takes it too (SC-19).
func (v *view) onceOnly(m *member) bool {
	policy := v.Pod.Spec.RestartPolicy
	if own := m.spec.RestartPolicy; own != nil {
		policy = corev1.RestartPolicy(*own)
	}
	return policy == corev1.RestartPolicyNever && len(m.spec.RestartPolicyRules) == 0
}
