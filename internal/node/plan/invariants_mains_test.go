// SPDX-License-Identifier: Apache-2.0

package plan

import corev1 "k8s.io/api/core/v1"

// checkTurn holds that a main waits for the postStart hooks of those before it (PL-17).
func (e *explorer) checkTurn(w *world, c int, what string) {
	spec := &e.s.pod.Spec
	for p := len(spec.InitContainers); p < c; p++ {
		l := spec.Containers[p-len(spec.InitContainers)].Lifecycle
		if l == nil || l.PostStart == nil {
			continue
		}
		never, failed := true, false
		for _, f := range w.failed {
			failed = failed || f.set && int(f.c) == p
		}
		for a, r := range w.runs[p] {
			never = never && r.life == absent
			if r.life == running && w.postRan[p] != uint8(a)+1 && !failed && !r.judged && int(r.box) == e.newestBox(w) {
				e.fault(w, what, "%s starts before the postStart hook of %s is done", e.s.nameOf(int8(c)), e.s.nameOf(int8(p)))
			}
		}
		if never && !failed && remembered(e.s.statuses[w.mem].ContainerStatuses, e.s.nameOf(int8(p))).RestartCount == 0 {
			e.fault(w, what, "%s starts before %s", e.s.nameOf(int8(c)), e.s.nameOf(int8(p)))
		}
	}
}

// checkPhase holds that no pod has succeeded of which a main failed last, by its exit code or because it was killed for a fault of
// its own (PL-16).
func (e *explorer) checkPhase(w *world, what string) {
	if e.s.statuses[w.mem].Phase != corev1.PodSucceeded {
		return
	}
	for c := len(e.s.pod.Spec.InitContainers); c < e.s.others(); c++ {
		last := remembered(e.s.statuses[w.mem].ContainerStatuses, e.s.nameOf(int8(c))).RestartCount
		for a := maxAttempts - 1; a >= int(last); a-- { // what came after those before may be gone with its sandbox
			r := w.runs[c][a]
			if r.life == exited && r.failed() {
				e.fault(w, what, "the pod has succeeded, though %s failed", e.s.nameOf(int8(c)))
			}
			if r.life == exited {
				break
			}
		}
	}
}
