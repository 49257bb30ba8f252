// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// checkIssue holds an operation against the world as it is, not as the agent sees it.
func (e *explorer) checkIssue(w *world, o Op, what string) {
	c := e.s.indexOf(o.Container)
	switch o.Verb {
	case RunSandbox, StartContainer, PullImage, PrepareVolumes:
		if w.deleted && !e.mayReturn(w, int(c)) {
			e.fault(w, what, "%v %s is issued after the deletion", o.Verb, o.Container)
		}
		if e.evicting(w) && !e.mayReturn(w, int(c)) {
			e.fault(w, what, "%v %s is issued after the eviction", o.Verb, o.Container)
		}
	}
	for _, f := range w.failed {
		if f.set && f.at == w.now && f.verb == o.Verb && f.c == c && uint32(f.attempt) == o.Attempt {
			e.fault(w, what, "%v %s is tried again at the moment it failed", o.Verb, o.Container)
		}
	}
	switch o.Verb {
	case ReleaseVolumes, RemoveLogs:
		if e.anyRuns(w) || e.calls(w, StartContainer, -1) {
			e.fault(w, what, "%v while something runs or starts", o.Verb)
		}
	}
	switch o.Verb {
	case StartContainer:
		e.checkStart(w, int(c), int(o.Attempt), what)
		e.checkRound(w, int(c), o, what)
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
	case PostStart, PreStop, Probe:
		if w.runs[c][o.Attempt].life != running {
			e.fault(w, what, "%v of %s, which does not run", o.Verb, o.Container)
		}
		if w.told[c] == uint8(o.Attempt)+1 && o.Verb != Probe && e.calls(w, StopContainer, c) {
			e.fault(w, what, "%v of %s, which was told to stop", o.Verb, o.Container)
		}
		if o.Verb == PreStop && w.readied[c] == uint8(o.Attempt)+1 || o.Verb == PostStart && w.posted[c] == uint8(o.Attempt)+1 {
			e.fault(w, what, "%v of %s runs twice", o.Verb, o.Container)
		}
	case StopContainer:
		e.checkResizeStop(w, int(c), o, what)
		e.checkPreStop(w, int(c), o, what)
		if o.Until.After(at(w.now).Add(lastWords)) { // past the deadline there is no order
			e.checkStop(w, int(c), what)
		}
	case RemoveContainer:
		e.checkRemove(w, int(c), int(o.Attempt), what)
	}
}

// evicting tells whether the pod has to go for want of a resource, as the agent heard or as is stored (PL-13).
func (e *explorer) evicting(w *world) bool {
	return w.evicted > 0 || e.s.statuses[w.stored].Reason == ReasonEvicted
}

// evictedFor tells whether the pod has ended, and nothing is left to do but to wait for its deletion. One that ended by itself
// before is not evicted any more.
func (e *explorer) evictedFor(w *world) bool {
	st := e.s.statuses[w.stored]
	return w.mem == w.stored && ended(st) && !e.calls(w, 0, -1) && !w.volumes && !e.boxReady(w)
}

// mayReturn tells whether container c is a sidecar that has exited and is still needed by one behind it (SC-11).
func (e *explorer) mayReturn(w *world, c int) bool {
	inits := len(e.s.pod.Spec.InitContainers)
	if c < 0 || !e.sidecar(c) {
		return false
	}
	exitedHere, needed := false, false
	for x := range w.runs {
		for _, r := range w.runs[x] {
			exitedHere = exitedHere || x == c && r.life == exited
			behind := x >= inits && x < e.s.others() || x > c && e.sidecar(x) || x < inits && !e.sidecar(x)
			needed = needed || behind && x != c && (r.life == running || r.lost && r.life == created)
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
	if c >= e.s.others() {
		e.checkDebugStart(w, c, what)
		e.checkReady(w, c, a, what)
		return
	}
	begun := false // c or something behind it was begun in this sandbox before
	round := e.round(w)
	here := func(r attempt) bool { return int(r.box) == newest && int(r.round) == round }
	for x := c; x < e.s.others(); x++ {
		for _, r := range w.runs[x] {
			begun = begun || r.life != absent && here(r) && (x == c || c < inits)
		}
	}
	for g := 0; g < min(c, inits) && !begun; g++ {
		sidecar := e.sidecar(g)
		open := sidecar && e.behind(w, g, here) // it was open when something behind it was begun
		for x, r := range w.runs[g] {
			if here(r) {
				open = open || sidecar && r.life == running && e.startedTruly(w, g, x) || !sidecar && r.life == exited && r.code == 0
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
		isInit := c < inits && !e.sidecar(c)
		if isInit && r.life == exited && r.code == 0 && here(r) {
			e.fault(w, what, "init %s starts again after it has completed", name)
		}
		reset := int(r.round) < round // its policy has no say then
		if c >= inits && r.life == exited && spec.RestartPolicy == "Never" && !reset {
			e.fault(w, what, "%s is restarted in a pod that never restarts", name)
		}
		if c >= inits && r.life == exited && !r.failed() && spec.RestartPolicy == "OnFailure" && !reset {
			e.fault(w, what, "%s is restarted after it succeeded", name)
		}
		if x >= a && (r.life == exited || r.life != absent && !here(r)) {
			e.fault(w, what, "%s reuses attempt %d", name, x)
		}
	}
	e.checkTurn(w, c, what)
	e.checkDelay(w, c, what)
	e.checkStored(w, c, what)
	e.checkReady(w, c, a, what)
}

// checkDebugStart holds that a debug container is started once, at any time, and not again, whatever it came to (EC-10, EC-11,
// EC-13, DC-09).
func (e *explorer) checkDebugStart(w *world, c int, what string) {
	for x, r := range w.runs[c] {
		switch {
		case r.life == running || r.life == exited:
			e.fault(w, what, "debug container %s starts again after attempt %d", e.s.nameOf(int8(c)), x)
		case r.life == created && int(r.box) != e.newestBox(w):
			e.fault(w, what, "debug container %s starts in a sandbox that is gone", e.s.nameOf(int8(c)))
		}
	}
	mem := remembered(e.s.statuses[w.stored].EphemeralContainerStatuses, e.s.nameOf(int8(c)))
	if mem != nil && (mem.State.Running != nil || mem.State.Terminated != nil) {
		e.fault(w, what, "debug container %s starts again, though it is stored that it ran", mem.Name)
	}
}

// checkReady holds that what a container needs is there when it starts.
func (e *explorer) checkReady(w *world, c, a int, what string) {
	name := e.s.nameOf(int8(c))
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

// checkDelay holds the back-off of PL-02: as long after the last exit as the attempt that ended so demands.
func (e *explorer) checkDelay(w *world, c int, what string) {
	isInit := c < len(e.s.pod.Spec.InitContainers) && !e.sidecar(c)
	for x := maxAttempts - 1; x >= 0; x-- {
		r := w.runs[c][x]
		if r.life != exited {
			continue
		}
		if int(r.round) < e.round(w) && !e.calls1(c, r) {
			return // it was ended for the sake of another
		}
		if e.s.isSized(c) && r.judged && r.made != w.size {
			return // it was stopped for its size
		}
		if due := r.end + int16(Delay(x)/time.Second); w.now < due && r.end-r.start < int16(restartReset/time.Second) && !(isInit && r.code == 0) {
			e.fault(w, what, "%s starts at %d, before its back-off is over at %d", e.s.nameOf(int8(c)), w.now, due)
		}
		return
	}
}

// checkStored holds what the stored status says, which outlives a reboot: what has ended for good does not run again, and the
// back-off of what is gone is kept (SC-19, PL-02).
func (e *explorer) checkStored(w *world, c int, what string) {
	spec, stored := &e.s.pod.Spec, e.s.statuses[w.stored]
	name := e.s.nameOf(int8(c))
	if stored.Phase == corev1.PodSucceeded || stored.Phase == corev1.PodFailed {
		e.fault(w, what, "%s starts in a pod that is stored as %s", name, stored.Phase)
	}
	mem := remembered(stored.ContainerStatuses, name)
	inits := len(spec.InitContainers)
	if c < inits {
		mem = remembered(stored.InitContainerStatuses, name)
	}
	if mem == nil || terminated(mem) == nil {
		return
	}
	if toldReset(mem) || e.reset(w, c) {
		return
	}
	end, sidecar := terminated(mem), e.sidecar(c)
	switch failed := end.ExitCode != 0 || toldCondemned(end); {
	case sidecar || spec.RestartPolicy == corev1.RestartPolicyAlways:
	case c < inits && !failed: // in a new sandbox, in its turn: checkStart holds that
	case spec.RestartPolicy == corev1.RestartPolicyNever, c >= inits && !failed:
		e.fault(w, what, "%s starts again, though it is stored that it ended with %d", name, end.ExitCode)
	}
	for _, r := range w.runs[c] {
		if r.life != absent {
			return // there is something newer to go by
		}
	}
	due := end.FinishedAt.Add(Delay(int(mem.RestartCount)))
	if at(w.now).Before(due) && (c >= inits || sidecar || end.ExitCode != 0) {
		e.fault(w, what, "%s starts at %d, %v before its stored back-off is over", name, w.now, due.Sub(at(w.now)))
	}
}

// behind tells whether a container after gate g was begun here.
func (e *explorer) behind(w *world, g int, here func(attempt) bool) bool {
	for x := g + 1; x < e.s.others(); x++ {
		for _, r := range w.runs[x] {
			if r.life != absent && here(r) {
				return true
			}
		}
	}
	return false
}

// startedTruly tells whether an attempt of container c has passed its startup probe and its postStart hook (SC-03).
func (e *explorer) startedTruly(w *world, c, attempt int) bool {
	if e.s.pod.Spec.InitContainers[c].StartupProbe == nil {
		return true
	}
	return w.passed[c] == uint8(attempt)+1 && w.postRan[c] == uint8(attempt)+1
}

// checkPreStop holds SC-10: no stop signal before the preStop hook has ended, unless the time is over.
func (e *explorer) checkPreStop(w *world, c int, o Op, what string) {
	if c < 0 || !e.boxReady(w) || w.runs[c][o.Attempt].life != running || w.runs[c][o.Attempt].lost { // where nothing can be run in it
		return
	}
	spec := &e.s.pod.Spec
	hooked := func() bool {
		if n := len(spec.InitContainers); c >= e.s.others() {
			return false
		} else if c >= n {
			return spec.Containers[c-n].Lifecycle != nil
		}
		return spec.InitContainers[c].Lifecycle != nil
	}()
	failed := false
	for _, f := range w.failed {
		failed = failed || f.set && f.verb == PreStop && int(f.c) == c
	}
	over := !o.Until.After(at(w.now).Add(lastWords))
	if hooked && w.preRan[c] != uint8(o.Attempt)+1 && !over && !failed {
		e.fault(w, what, "%s is told to stop before its preStop hook has ended", o.Container)
	}
}

// checkStop holds the order of SC-09: a sidecar goes after the mains and after the sidecars behind it.
func (e *explorer) checkStop(w *world, c int, what string) {
	inits := len(e.s.pod.Spec.InitContainers)
	if c < 0 || !e.sidecar(c) || !e.boxReady(w) {
		return
	}
	for a, r := range w.runs[c] {
		if p := w.probes[c]; r.life == running && p.attempt == uint8(a)+1 && p.failed > 0 {
			return // its own probe condemned it; it will be back (SC-27)
		}
	}
	for _, f := range w.failed {
		if f.set && f.verb == PostStart && int(f.c) == c {
			return // so did its hook
		}
	}
	for x := range w.runs {
		behind := x < e.s.others() && (x >= inits || x > c && e.sidecar(x)) // nobody waits for a debug container
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
	if r := w.runs[c][a]; r.life == exited && !r.lost { // of one that is lost nothing is known
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
	e.checkCounts(w, what)
	e.checkPhase(w, what)
	if !w.deleted {
		return
	}
	last := int16(lastWords / time.Second)
	end := max(w.deletedAt+int16(graceSeconds)+1, w.now) + last // the stored deadline is cut to the second; one told late has a moment
	for _, k := range w.calls {
		if k.out && k.verb == StopContainer && k.until > end {
			e.fault(w, what, "%s may run until %d, though grace ends at %d", e.s.nameOf(k.c), k.until, end)
		}
	}
}

// checkCounts holds that restarts are never counted down, whatever was lost (SC-19).
func (e *explorer) checkCounts(w *world, what string) {
	if w.mem == w.stored {
		return
	}
	old, now := e.s.statuses[w.stored], e.s.statuses[w.mem]
	for _, l := range [][2][]corev1.ContainerStatus{{old.InitContainerStatuses, now.InitContainerStatuses}, {old.ContainerStatuses, now.ContainerStatuses}} {
		for i := range l[0] {
			if l[1][i].RestartCount < l[0][i].RestartCount {
				e.fault(w, what, "restarts of %s go from %d down to %d", l[0][i].Name, l[0][i].RestartCount, l[1][i].RestartCount)
			}
		}
	}
}

func (e *explorer) anyRuns(w *world) bool {
	for c := range w.runs {
		for _, r := range w.runs[c] {
			if r.life == running {
				return true
			}
		}
	}
	return false
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
