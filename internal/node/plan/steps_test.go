// SPDX-License-Identifier: Apache-2.0

package plan

import corev1 "k8s.io/api/core/v1"

// steps yields every world that can come next. With fair set only those come in which nothing goes wrong, and the
// first is as good as any.
func (e *explorer) steps(w world, fair bool, yield func(world, string) bool) {
	if w.gone {
		return
	}
	for i := range w.calls {
		if w.calls[i].out && !e.callSteps(w, i, fair, yield) {
			return
		}
	}
	if w.mem != w.stored {
		n := w
		n.stored = n.mem
		if !yield(n, "status stored") {
			return
		}
	}
	if !e.containerSteps(w, fair, yield) {
		return
	}
	if w.wake > w.now && (w.ticks > 0 || fair) {
		n := w
		n.now = w.wake
		if !fair {
			n.ticks--
		}
		if !yield(n, "time passes") {
			return
		}
	}
	if fair {
		return
	}
	e.faultSteps(w, yield)
}

// faultSteps are what may go wrong from outside, and the deletion.
func (e *explorer) faultSteps(w world, yield func(world, string) bool) {
	if !w.deleted {
		n := w
		n.deleted, n.deletedAt = true, w.now
		if !yield(n, "delete") {
			return
		}
	}
	if w.evicts > 0 && w.evicted == 0 {
		n := w
		n.evicts--
		n.evicted = w.now + 1
		if !yield(n, "evict") {
			return
		}
	}
	if w.resizes > 0 {
		n := w
		n.resizes--
		n.size = 1 - n.size
		e.unfail(&n)
		if !yield(n, "resize") {
			return
		}
	}
	if w.deaths > 0 {
		n := w
		n.deaths--
		forget(&n)
		e.unjudge(&n)
		if !yield(n, "the agent dies") {
			return
		}
	}
	if w.losses > 0 && !e.lossSteps(w, yield) {
		return
	}
	if w.reboots > 0 {
		n := w
		n.reboots--
		reboot(&n)
		if !yield(n, "the node reboots") {
			return
		}
	}
	if w.pauses > 0 {
		for i, b := range w.boxes {
			if b.ready {
				n := w
				n.pauses--
				n.boxes[i].ready = false
				if !yield(n, "pause dies") {
					return
				}
			}
		}
	}
}

// lossSteps are deaths of the agent, and of the runtime in it, that come between two files of a container: when they are back the
// runtime has lost sight of it, whether it runs or was only created.
func (e *explorer) lossSteps(w world, yield func(world, string) bool) bool {
	for c := range w.runs {
		for a, r := range w.runs[c] {
			if r.life != created && r.life != running {
				continue
			}
			n := w
			n.losses--
			forget(&n)
			e.unjudge(&n)
			n.runs[c][a].lost = true
			if !yield(n, "the agent dies, the runtime loses sight of "+e.s.nameOf(int8(c))) {
				return false
			}
		}
	}
	return true
}

// forget is what a dying agent loses: all that it only heard, and the status that it had not stored.
func forget(w *world) {
	w.prepared, w.pulled, w.stopped, w.left, w.evicted = false, [maxContainers]uint8{}, [maxBoxes]bool{}, -1, 0
	w.failed, w.calls, w.mem = [maxFails]wfail{}, [maxCalls]wcall{}, w.stored
	w.posted, w.readied, w.probes = [maxContainers]uint8{}, [maxContainers]uint8{}, [maxContainers]wprobe{}
}

// unfail drops failures of a resize: they were of another one.
func (e *explorer) unfail(w *world) {
	for i, f := range w.failed {
		if f.verb == ResizePod || f.verb == ResizeContainer {
			w.failed[i] = wfail{}
		}
	}
}

// unjudge takes the verdicts away that a dying agent had given, and neither kept nor had stored with the container's end.
func (e *explorer) unjudge(w *world) {
	for c := range w.runs {
		for a := range w.runs[c] {
			r := &w.runs[c][a]
			r.judged = r.condemned || r.judged && r.life == exited && e.toldFailed(w, c, a)
		}
	}
}

// toldFailed tells whether it is stored of this attempt that it failed in spite of its exit code.
func (e *explorer) toldFailed(w *world, c, a int) bool {
	mem := remembered(e.s.statuses[w.stored].ContainerStatuses, e.s.nameOf(int8(c)))
	return mem != nil && terminated(mem) != nil && toldCondemned(terminated(mem)) && int(mem.RestartCount) == a
}

// rebootTakes is how long the node is away, in seconds: less than the first back-off.
const rebootTakes = 5

// reboot takes the agent, the sandboxes, the containers and their mounts away. The stored status is kept, and on the disk the
// pod's folders and logs.
func reboot(w *world) {
	forget(w)
	w.now += rebootTakes
	w.boxes, w.runs = [maxBoxes]box{}, [maxContainers][maxAttempts]attempt{}
	w.postRan, w.preRan, w.passed, w.told = [maxContainers]uint8{}, [maxContainers]uint8{}, [maxContainers]uint8{}, [maxContainers]uint8{}
}

// containerSteps are exits: an init ends well, anything may crash, a main may end well.
func (e *explorer) containerSteps(w world, fair bool, yield func(world, string) bool) bool {
	inits := len(e.s.pod.Spec.InitContainers)
	for c := range w.runs {
		for a := range w.runs[c] {
			if w.runs[c][a].life != running || w.runs[c][a].lost { // of one that is lost no end is seen
				continue
			}
			sidecar := e.sidecar(c)
			ends := !sidecar && (c < inits || e.s.pod.Spec.RestartPolicy != corev1.RestartPolicyAlways || c >= e.s.others())
			if ends && !fair {
				if n := w; !yield(exit1(n, c, a, 0), e.s.nameOf(int8(c))+" exits 0") {
					return false
				}
			}
			if w.crashes > 0 && !fair {
				n := w
				n.crashes--
				if !yield(exit1(n, c, a, 1), e.s.nameOf(int8(c))+" crashes") {
					return false
				}
			}
		}
	}
	return true
}

func exit1(w world, c, a int, code uint8) world {
	r := &w.runs[c][a]
	r.life, r.code, r.end = exited, code, w.now
	return w
}

// callSteps moves call i on: its effect, its return, its failure, or, when it was cancelled, its giving up.
func (e *explorer) callSteps(w world, i int, fair bool, yield func(world, string) bool) bool {
	c := w.calls[i]
	name := c.verb.String() + " " + e.s.nameOf(c.c)
	if c.done {
		n := w
		e.returned(&n, i)
		return yield(n, name+" returns")
	}
	n, ok := e.effect(w, i)
	if ok && !lasting(c.verb) { // nothing can be seen between its effect and its return
		e.returned(&n, i)
	}
	if ok && !yield(n, name+" takes effect") {
		return false
	}
	if fair {
		return true
	}
	if c.cancelled {
		n := w
		n.calls[i] = wcall{}
		if !yield(n, name+" gives up") {
			return false
		}
	} else if w.fails > 0 && c.verb == Probe {
		n := w
		n.fails--
		e.probed(&n, i, false)
		if !yield(n, name+" says no") {
			return false
		}
	} else if w.fails > 0 && mayFail(c.verb) {
		n := w
		n.fails--
		n.calls[i] = wcall{}
		for j := range n.failed {
			if !n.failed[j].set {
				n.failed[j] = wfail{true, c.verb, c.c, c.attempt, w.now}
				break
			}
		}
		if !yield(n, name+" fails") {
			return false
		}
	}
	return true
}

// lasting tells whether the world may change between such a call's effect and its return in a way that matters.
func lasting(v Verb) bool {
	return v == RunSandbox || v == StartContainer || v == StopContainer || v == StopSandbox || v == PrepareVolumes
}

func mayFail(v Verb) bool { return v != RemoveLogs && v != RemoveContainer }

// effect is what the call does to the node, one step of it. Not ok when it has to wait.
func (e *explorer) effect(w world, i int) (world, bool) {
	c := &w.calls[i]
	switch c.verb {
	case PrepareVolumes:
		w.volumes = true
	case RunSandbox:
		if int(c.attempt) >= maxBoxes {
			cancelled := c.cancelled
			w.calls[i] = wcall{}
			return w, cancelled
		}
		w.boxes[c.attempt] = box{true, true, w.now}
		w.logs, w.volumes, w.group = true, true, c.give
	case ResizePod, ResizeContainer:
		e.resizeEffect(&w, *c)
	case StartContainer:
		return e.startEffect(w, i)
	case StopContainer:
		e.condemn(&w, i)
		if r := &w.runs[c.c][c.attempt]; r.lost && r.life < exited {
			*r = exit1(w, int(c.c), int(c.attempt), 255).runs[c.c][c.attempt] // as the runtime says of what it does not know
		} else if r.life == running && r.condemned {
			*r = exit1(w, int(c.c), int(c.attempt), 0).runs[c.c][c.attempt] // as programs do that heed their stop signal
		} else if r.life == running {
			*r = exit1(w, int(c.c), int(c.attempt), 1).runs[c.c][c.attempt]
		}
	case RemoveContainer:
		w.runs[c.c][c.attempt] = attempt{}
	case StopSandbox:
		w.boxes[c.attempt].ready = false
	case RemoveSandbox:
		w.boxes[c.attempt] = box{}
		for x := range w.runs {
			for a := range w.runs[x] {
				if w.runs[x][a].life != absent && w.runs[x][a].box == c.attempt {
					w.runs[x][a] = attempt{}
				}
			}
		}
	case ReleaseVolumes:
		w.volumes = false
	case RemoveLogs:
		w.logs = false
	case PostStart:
		w.postRan[c.c] = c.attempt + 1
	case PreStop:
		e.condemn(&w, i)
		w.preRan[c.c] = c.attempt + 1
	}
	c.done = true
	return w, true
}

// condemn keeps the verdict that call i carries with the container.
func (e *explorer) condemn(w *world, i int) {
	c := &w.calls[i]
	if r := &w.runs[c.c][c.attempt]; c.verdict && r.life != absent {
		r.condemned = true
	}
}

// startEffect creates, then starts, in the newest sandbox; each can be seen before the call returns.
func (e *explorer) startEffect(w world, i int) (world, bool) {
	c := &w.calls[i]
	if int(c.attempt) >= maxAttempts { // the model ends here; a call that nobody wants any more gives up
		cancelled := c.cancelled
		w.calls[i] = wcall{}
		return w, cancelled
	}
	r := &w.runs[c.c][c.attempt]
	switch r.life {
	case absent:
		newest := -1
		for b := range w.boxes {
			if w.boxes[b].ready {
				newest = b
			}
		}
		if newest < 0 { // the sandbox died meanwhile: the call can only give up
			w.calls[i] = wcall{}
			return w, true
		}
		*r = attempt{life: created, box: uint8(newest), round: c.round, start: w.now, made: c.give, given: c.give}
	case created:
		r.life, r.start = running, w.now
		c.done = true
		e.checkResize(&w, "the start of "+e.s.nameOf(c.c))
	default:
		c.done = true
	}
	return w, true
}

// returned is what the agent learns from a call that succeeded.
func (e *explorer) returned(w *world, i int) {
	c := w.calls[i]
	if c.verb == Probe {
		e.probed(w, i, true)
		return
	}
	w.calls[i] = wcall{}
	for j, f := range w.failed {
		if f.set && f.verb == c.verb && f.c == c.c && f.attempt == c.attempt {
			w.failed[j] = wfail{}
		}
	}
	switch c.verb {
	case PrepareVolumes:
		w.prepared = true
	case PullImage:
		w.pulled[c.c] = c.attempt + 1
	case StopSandbox:
		w.stopped[c.attempt] = true
	case PostStart:
		w.posted[c.c] = c.attempt + 1
	case PreStop:
		w.readied[c.c] = c.attempt + 1
	}
}

// probed is what the agent learns from one try of a startup probe. Tries between ticks that fail are counted up to three:
// more of them only take time.
func (e *explorer) probed(w *world, i int, yes bool) {
	c := w.calls[i]
	w.calls[i] = wcall{}
	p := &w.probes[c.c]
	if p.attempt != c.attempt+1 {
		*p = wprobe{attempt: c.attempt + 1}
	}
	p.last = w.now
	if c.early {
		p.early = min(p.early+1, 3)
	} else {
		p.tick = w.now
	}
	switch {
	case yes:
		p.passed, p.failed = 1, 0
		w.passed[c.c] = c.attempt + 1
	case !c.early:
		p.passed, p.failed = 0, 1
	}
}
