// SPDX-License-Identifier: Apache-2.0

package plan

import corev1 "k8s.io/api/core/v1"

// sidecar tells whether container c is one.
func (e *explorer) sidecar(c int) bool {
	inits := e.s.pod.Spec.InitContainers
	return c < len(inits) && inits[c].RestartPolicy != nil && *inits[c].RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// calls1 tells whether such an end of container c has all containers start again. The model's rules name exit code 1.
func (e *explorer) calls1(c int, r attempt) bool {
	spec, inits := &e.s.pod.Spec, len(e.s.pod.Spec.InitContainers)
	if r.life != exited || r.code != 1 || c >= e.s.others() {
		return false
	}
	if c < inits {
		return len(spec.InitContainers[c].RestartPolicyRules) > 0
	}
	return len(spec.Containers[c-inits].RestartPolicyRules) > 0
}

// round is how often all containers have truly been told to start again (PL-28).
func (e *explorer) round(w *world) (round int) {
	for c := range w.runs {
		for _, r := range w.runs[c] {
			if r.life != absent {
				round = max(round, int(r.round))
			}
		}
	}
	for c := range w.runs {
		for a, r := range w.runs[c] {
			if e.calls1(c, r) && int(r.round) == round && !e.followed(w, c, a) {
				return round + 1
			}
		}
	}
	return round
}

// followed tells whether a later attempt of container c has exited: then what came before has been answered.
func (e *explorer) followed(w *world, c, a int) bool {
	for x := a + 1; x < maxAttempts; x++ {
		if w.runs[c][x].life == exited {
			return true
		}
	}
	return false
}

// reset tells whether the newest end of container c is of an older round.
func (e *explorer) reset(w *world, c int) bool {
	for x := maxAttempts - 1; x >= 0; x-- {
		if w.runs[c][x].life == exited {
			return int(w.runs[c][x].round) < e.round(w)
		}
	}
	return false
}

// checkRound holds that what starts is of the newest round, and that nothing of an older one runs then (PL-28). Debug containers
// take no part.
func (e *explorer) checkRound(w *world, c int, o Op, what string) {
	if c >= e.s.others() || w.deleted {
		return
	}
	round := e.round(w)
	if o.Round != round {
		e.fault(w, what, "%s starts in round %d, not %d", o.Container, o.Round, round)
	}
	for x := range w.runs {
		for _, r := range w.runs[x] {
			if x < e.s.others() && r.life == running && int(r.round) < round && int(r.box) == e.newestBox(w) {
				e.fault(w, what, "%s starts while %s still runs, which has to start again too", o.Container, e.s.nameOf(int8(x)))
			}
		}
	}
}
