// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"hash/maphash"

	corev1 "k8s.io/api/core/v1"
)

// comesUp follows one fair run of a pod that stays: every call succeeds, inits end well, every status is stored, time passes. It must
// come to where its mains run or the pod has ended, unless it needs more attempts or sandboxes than the model has.
func (e *explorer) comesUp(w world) {
	var path []uint64
	for n := 0; !e.isUp(&w) && !e.outgrown(&w); n++ {
		h := maphash.Comparable(e.seed, w)
		if e.fair[h] {
			break
		}
		path = append(path, h)
		moved := false
		e.fairly(w, func(next world, what string) {
			e.settle(&next, what)
			w, moved = next, true
		})
		if !moved || n > 200 {
			e.bad = append(e.bad, "the pod stands still: "+e.show(&w)+e.path(e.now))
			return
		}
	}
	for _, p := range path {
		e.fair[p] = true
	}
}

// fairly makes the next step of a fair run; an init that runs ends well when nothing else is to be done.
func (e *explorer) fairly(w world, step func(world, string)) {
	moved := false
	calls := w
	calls.wake = 0 // time passes last
	e.steps(calls, true, func(n world, what string) bool {
		n.wake, moved = w.wake, true
		step(n, what)
		return false
	})
	for c := range e.s.pod.Spec.InitContainers {
		if moved || e.s.pod.Spec.InitContainers[c].RestartPolicy != nil {
			continue
		}
		for a, r := range w.runs[c] {
			if r.life == running && !r.lost && !moved {
				moved = true
				step(exit1(w, c, a, 0), "init ends")
			}
		}
	}
	if !moved {
		e.steps(w, true, func(n world, what string) bool { step(n, what); return false })
	}
}

// isUp tells whether the pod is where a fair run may stop: its mains run or have ended, or it has ended as a whole.
func (e *explorer) isUp(w *world) bool {
	if ended(e.s.statuses[w.mem]) {
		return true
	}
	up := e.boxReady(w)
	for _, s := range e.s.statuses[w.mem].ContainerStatuses {
		runs := s.State.Running != nil || s.State.Terminated != nil && e.s.pod.Spec.RestartPolicy != corev1.RestartPolicyAlways
		up = up && runs
	}
	return up && !e.calls(w, 0, -1) && e.fits(w)
}

// outgrown tells whether the pod needs more of something than the model has.
func (e *explorer) outgrown(w *world) bool {
	for _, k := range w.calls {
		if k.out && (k.verb == RunSandbox && int(k.attempt) >= maxBoxes || k.verb != RunSandbox && k.c >= 0 && int(k.attempt) >= maxAttempts) {
			return true
		}
	}
	return false
}
