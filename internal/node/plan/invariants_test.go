// SPDX-License-Identifier: Apache-2.0

package plan

// checkIssue holds an operation against the world as it is, not as the agent sees it.
func (e *explorer) checkIssue(w *world, o Op, what string) {
	c := e.s.indexOf(o.Container)
	switch o.Verb {
	case RunSandbox, StartContainer, PullImage, PrepareVolumes:
		if w.deleted && !e.mayReturn(w, int(c)) {
			e.fault(w, what, "%v %s is issued after the deletion", o.Verb, o.Container)
		}
	}
	switch o.Verb {
	case StartContainer:
		e.checkStart(w, int(c), int(o.Attempt), what)
	case StopSandbox, RemoveSandbox:
		for x := range w.runs {
			for _, r := range w.runs[x] {
				if r.life == running && uint32(r.box) == o.Attempt {
					e.fault(w, what, "%v under running %s", o.Verb, e.s.nameOf(int8(x)))
				}
			}
		}
		if int(o.Attempt) == e.newestBox(w) && e.calls(w, StartContainer, -1) || e.running(w, o.Attempt) {
			e.fault(w, what, "%v while a start is out", o.Verb)
		}
		if o.Verb == RemoveSandbox && w.deleted && w.mem != w.stored {
			e.fault(w, what, "the sandbox is removed before its containers' ends are stored")
		}
	case RunSandbox:
		for b := range w.boxes {
			if w.boxes[b].ready {
				e.fault(w, what, "a second sandbox is started beside a ready one")
			}
		}
	case StopContainer:
		if o.Until.After(at(w.now).Add(lastWords)) { // past the deadline there is no order
			e.checkStop(w, int(c), what)
		}
	case RemoveContainer:
		e.checkRemove(w, int(c), int(o.Attempt), what)
	}
}

// mayReturn tells whether container c is a sidecar that has exited and is still needed by one behind it (SC-11).
func (e *explorer) mayReturn(w *world, c int) bool {
	inits := len(e.s.pod.Spec.InitContainers)
	if c < 0 || c >= inits || e.s.pod.Spec.InitContainers[c].RestartPolicy == nil {
		return false
	}
	exitedHere, needed := false, false
	for x := range w.runs {
		for _, r := range w.runs[x] {
			exitedHere = exitedHere || x == c && r.life == exited
			behind := x >= inits || x > c && e.s.pod.Spec.InitContainers[x].RestartPolicy != nil || x < inits && e.s.pod.Spec.InitContainers[x].RestartPolicy == nil
			needed = needed || behind && x != c && r.life == running
		}
	}
	return exitedHere && (needed || e.calls(w, StartContainer, -1))
}

func (e *explorer) checkStart(w *world, c, a int, what string) {
	spec := &e.s.pod.Spec
	inits := len(spec.InitContainers)
	name := e.s.nameOf(int8(c))
	newest := e.newestBox(w)
	if newest < 0 {
		e.fault(w, what, "%s starts without a sandbox", name)
		return
	}
	begun := false // c or something behind it was begun in this sandbox before
	for x := c; x < len(w.runs); x++ {
		for _, r := range w.runs[x] {
			begun = begun || r.life != absent && int(r.box) == newest && (x == c || c < inits)
		}
	}
	for g := 0; g < min(c, inits) && !begun; g++ {
		sidecar := spec.InitContainers[g].RestartPolicy != nil
		open := sidecar && e.behind(w, g, newest) // it was open when something behind it was begun
		for _, r := range w.runs[g] {
			if int(r.box) == newest {
				open = open || sidecar && r.life == running || !sidecar && r.life == exited && r.code == 0
			}
		}
		if !open {
			e.fault(w, what, "%s starts before the gate of %s is open", name, e.s.nameOf(int8(g)))
		}
	}
	for x, r := range w.runs[c] {
		if r.life == running {
			e.fault(w, what, "%s starts while attempt %d of it runs", name, x)
		}
		isInit := c < inits && spec.InitContainers[c].RestartPolicy == nil
		if isInit && r.life == exited && r.code == 0 && int(r.box) == newest {
			e.fault(w, what, "init %s starts again after it has completed", name)
		}
		if c >= inits && r.life == exited && spec.RestartPolicy == "Never" {
			e.fault(w, what, "%s is restarted in a pod that never restarts", name)
		}
		if c >= inits && r.life == exited && r.code == 0 && spec.RestartPolicy == "OnFailure" {
			e.fault(w, what, "%s is restarted after it succeeded", name)
		}
		if x >= a && r.life == exited {
			e.fault(w, what, "%s reuses attempt %d", name, x)
		}
	}
	if w.failed != [maxFails]wfail{} {
		return
	}
	if w.pulled[c] != uint8(a+1) {
		e.fault(w, what, "%s starts without its image", name)
	}
	if !w.prepared {
		e.fault(w, what, "%s starts without its volumes", name)
	}
}

// behind tells whether a container after gate g was begun in a sandbox.
func (e *explorer) behind(w *world, g, box int) bool {
	for x := g + 1; x < len(w.runs); x++ {
		for _, r := range w.runs[x] {
			if r.life != absent && int(r.box) == box {
				return true
			}
		}
	}
	return false
}

// checkStop holds the order of SC-09: a sidecar goes after the mains and after the sidecars behind it.
func (e *explorer) checkStop(w *world, c int, what string) {
	spec := &e.s.pod.Spec
	inits := len(spec.InitContainers)
	if c < 0 || c >= inits || spec.InitContainers[c].RestartPolicy == nil || !e.boxReady(w) {
		return
	}
	for x := range w.runs {
		behind := x >= inits || x > c && spec.InitContainers[x].RestartPolicy != nil
		for _, r := range w.runs[x] {
			if behind && r.life == running {
				e.fault(w, what, "sidecar %s is stopped before %s", e.s.nameOf(int8(c)), e.s.nameOf(int8(x)))
			}
		}
	}
}

// checkRemove keeps the evidence: the newest attempt that has exited is there to be read.
func (e *explorer) checkRemove(w *world, c, a int, what string) {
	if w.deleted {
		return
	}
	if w.runs[c][a].life == running {
		e.fault(w, what, "running %s is removed", e.s.nameOf(int8(c)))
	}
	for x := a + 1; x < maxAttempts; x++ {
		if w.runs[c][x].life == exited {
			return
		}
	}
	if w.runs[c][a].life == exited {
		e.fault(w, what, "the last exit of %s is removed while the pod stays", e.s.nameOf(int8(c)))
	}
}

// checkState holds what must be true in every world.
func (e *explorer) checkState(w *world, what string) {
	for c := range w.runs {
		live := 0
		for _, r := range w.runs[c] {
			if r.life == running {
				live++
			}
		}
		if live > 1 {
			e.fault(w, what, "%d instances of %s run", live, e.s.nameOf(int8(c)))
		}
	}
}

func (e *explorer) checkGone(w *world, what string) {
	if w.volumes || w.logs || w.boxes != [maxBoxes]box{} || w.runs != [maxContainers][maxAttempts]attempt{} {
		e.fault(w, what, "the pod is said to be gone, but something is left")
	}
	if e.calls(w, 0, -1) {
		e.fault(w, what, "the pod is said to be gone with a call out")
	}
}

// running tells whether a RunSandbox call with this attempt is out.
func (e *explorer) running(w *world, attempt uint32) bool {
	for _, c := range w.calls {
		if c.out && c.verb == RunSandbox && uint32(c.attempt) == attempt {
			return true
		}
	}
	return false
}

func (e *explorer) newestBox(w *world) int {
	for b := maxBoxes - 1; b >= 0; b-- {
		if w.boxes[b].there {
			return b
		}
	}
	return -1
}

func (e *explorer) boxReady(w *world) bool {
	b := e.newestBox(w)
	return b >= 0 && w.boxes[b].ready
}

// calls tells whether a call is out, of any verb if verb is 0, for any container if c is -1.
func (e *explorer) calls(w *world, verb Verb, c int8) bool {
	for _, k := range w.calls {
		if k.out && (verb == 0 || k.verb == verb) && (c < 0 || k.c == c) {
			return true
		}
	}
	return false
}
