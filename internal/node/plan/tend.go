// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"github.com/wherryproject/wherry/internal/podspec"
)

// prepare wants the volumes made ready. It is asked for again after a restart of the agent, also for a pod that
// runs: the volumes' contents follow their sources from then on.
func (v *view) prepare() {
	if !v.Heard.Prepared {
		v.do(Op{Verb: PrepareVolumes})
	}
}

// makeBox brings up a new sandbox. What still runs in an older one, whose pause has died, is stopped first, and
// the older one's network is taken down: two sandboxes of one pod never run side by side.
func (v *view) makeBox() {
	v.keep(PullImage, RemoveContainer, RemoveSandbox)
	v.prepare()
	busy := v.calling(StartContainer) // into the old sandbox; it will fail or be seen
	v.all(func(m *member) {
		if m.live() {
			busy = true
			v.why(m.spec.Name, "stops because the pod's sandbox has died")
			v.tellKilling(m, "")
			v.keepHook(m)
			v.do(Op{Verb: StopContainer, Container: m.spec.Name, Attempt: m.newest.Attempt,
				Until: v.Now.Add(graceOf(v.Pod))})
		}
	})
	if busy || v.calling(StopContainer) {
		return
	}
	if v.calling(RunSandbox) { // whether it will be of use is seen when it has returned
		v.keep(RunSandbox)
		v.pullAhead()
		v.why("", "waits for its sandbox")
		return
	}
	attempt := uint32(0)
	if v.box != nil {
		attempt = v.box.Attempt + 1
		if !v.Heard.Stopped[v.box.Attempt] {
			v.do(Op{Verb: StopSandbox, Attempt: v.box.Attempt})
			return
		}
	}
	if v.calling(StopSandbox) {
		return
	}
	v.pullAhead()
	if _, failed := v.Heard.Failed[Key{Verb: PrepareVolumes}]; failed && !v.Heard.Prepared {
		v.why("", "waits for its volumes")
		return // no sandbox is held for a pod whose volumes cannot be had
	}
	v.why("", "waits for its sandbox")
	v.do(Op{Verb: RunSandbox, Attempt: attempt})
}

// pullAhead pulls the images of what starts first while the sandbox is being made.
func (v *view) pullAhead() {
	for i := range v.gates {
		m := &v.gates[i]
		v.pull(m)
		return // a new sandbox starts from the first gate
	}
	for i := range v.mains {
		v.pull(&v.mains[i])
	}
}

// tend keeps the pod going: opens the gates in order, starts mains behind them, restarts what the policy says.
func (v *view) tend() {
	v.keep(RunSandbox, PullImage, StartContainer, StopContainer, RemoveContainer, RemoveSandbox, StopSandbox, ResizePod,
		ResizeContainer)
	v.prepare()
	v.sweep()
	v.growGroup()
	v.fit()
	for i := range v.debug {
		v.debugOnce(&v.debug[i])
	}
	if v.clearRound() {
		return
	}
	blocked := ""
	for i := range v.gates {
		m := &v.gates[i]
		passed := v.passed(i)
		if m.kind == podspec.Init && v.open(i) {
			continue
		}
		if blocked == "" || passed {
			v.advance(m)
		}
		if blocked == "" && !passed && !v.open(i) {
			blocked = m.spec.Name
		}
	}
	if blocked != "" {
		v.why("", "waits for init container %s", blocked)
		return
	}
	behind := ""
	for i := range v.mains {
		m := &v.mains[i]
		m.behind = behind
		v.advance(m)
		if v.holdsUp(m) {
			behind = m.spec.Name
		}
	}
}

// advance brings m to life, or back to life, if it is due.
func (v *view) advance(m *member) {
	name := m.spec.Name
	if m.start {
		return
	}
	if v.isOut(Key{StopContainer, name, m.attempt(), NoProbe}) {
		v.stopping(m)
		return
	}
	switch {
	case m.newest != nil && m.newest.Lost:
		v.why(name, "is stopped because the runtime has lost track of it")
		v.tellKilling(m, "is in an unknown state")
		v.do(Op{Verb: StopContainer, Container: name, Attempt: m.newest.Attempt, Until: v.Now})
		return
	case m.live() && !m.here:
		v.why(name, "stops because it runs in an older sandbox")
		v.tellKilling(m, "")
		v.do(Op{Verb: StopContainer, Container: name, Attempt: m.newest.Attempt, Until: v.Now.Add(graceOf(v.Pod))})
		return
	case m.live() && m.kind != podspec.Init && m.outdated(m.newest.SpecImage):
		v.why(name, "stops because its image was changed to %s", m.spec.Image)
		v.tellKilling(m, "definition changed")
		v.takeDown(m, v.Now.Add(graceOf(v.Pod)), Verdict{})
		return
	case v.outgrown(m):
		v.restartFor(m)
		return
	case m.live():
		v.attend(m, StartupProbe, ReadinessProbe, LivenessProbe)
		return
	}
	if until := v.held(m); !until.IsZero() {
		v.tellHeld(m, until)
	} else if v.again(m) {
		v.revive(m)
	}
}

// revive starts m's next attempt when its back-off is over and its image and volumes are there.
func (v *view) revive(m *member) {
	name := m.spec.Name
	if at := v.due(m); v.Now.Before(at) {
		v.why(name, "waits for its restart back-off until %s", at.UTC().Format(time.RFC3339))
		v.wake(at)
		return
	}
	if !v.pull(m) {
		return
	}
	if m.behind != "" {
		v.why(name, "waits for the postStart hook of container %s", m.behind)
		return
	}
	if !v.Heard.Prepared {
		v.why(name, "waits for the pod's volumes")
		return
	}
	if v.shift.short {
		v.why(name, "waits for the pod's cgroup to grow")
		return
	}
	for i := range v.Seen.Containers {
		if c := &v.Seen.Containers[i]; c.Name == name && c.Attempt >= m.next && v.stillborn(c) {
			v.why(name, "waits until what is left of an attempt that never ran is removed")
			v.want(Op{Verb: RemoveContainer, Container: name, Attempt: c.Attempt}) // the runtime takes no number twice
			return
		}
	}
	v.do(Op{Verb: StartContainer, Container: name, Attempt: m.next, Streak: v.streakAfter(m), Round: v.round})
}

// attend does for m, which runs, what a running container needs: its postStart hook, tries of these probes, and an end
// if it has failed them.
func (v *view) attend(m *member, kinds ...ProbeKind) {
	if s := v.condemned(m); s.why != "" {
		v.why(m.spec.Name, "stops because %s", s.why)
		v.tellKilling(m, s.Fault)
		v.takeDown(m, s.Until, s.Verdict)
		return
	}
	v.postStart(m)
	v.tryProbes(m, kinds...)
	if !m.up && m.spec.StartupProbe != nil {
		v.why(m.spec.Name, "waits for its startup probe")
	}
}

// attempt returns the number of the newest attempt.
func (m *member) attempt() uint32 {
	if m.newest == nil {
		return 0
	}
	return m.newest.Attempt
}

// pull wants the image for m's next attempt and tells whether it is there.
func (v *view) pull(m *member) bool {
	p, ok := v.Heard.Pulled[m.spec.Name]
	if ok && p.Attempt == m.next && p.Image == m.spec.Image {
		return true
	}
	op := Op{Verb: PullImage, Container: m.spec.Name, Attempt: m.next}
	if v.isOut(op.Key()) {
		if !slices.Contains(v.out.Ops, op) {
			v.out.Ops = append(v.out.Ops, op)
		}
		return false
	}
	if !v.do(op) {
		v.why(m.spec.Name, "waits to try the pull of image %s again", m.spec.Image)
	}
	return false
}

// sweep removes what no one will ask for again: of the attempts that have exited only the newest of each
// container is kept, with those that somebody looks at, and an older sandbox goes when it is empty.
func (v *view) sweep() {
	v.all(func(m *member) {
		for i := range v.Seen.Containers {
			c := &v.Seen.Containers[i]
			if c.Name != m.spec.Name || c == m.newest || c == m.dead || c.Live() || c.Held {
				continue
			}
			v.want(Op{Verb: RemoveContainer, Container: c.Name, Attempt: c.Attempt})
		}
	})
	for i := range v.Seen.Sandboxes {
		s := &v.Seen.Sandboxes[i]
		if s == v.box || v.holds(s.ID) {
			continue
		}
		if s.Ready && !v.Heard.Stopped[s.Attempt] {
			v.want(Op{Verb: StopSandbox, Attempt: s.Attempt})
			continue
		}
		v.want(Op{Verb: RemoveSandbox, Attempt: s.Attempt})
	}
}

// want is do for an operation that keep may have listed already.
func (v *view) want(op Op) {
	for _, o := range v.out.Ops {
		if o.Key() == op.Key() {
			return
		}
	}
	v.do(op)
}

// holds tells whether any container is left in a sandbox.
func (v *view) holds(sandbox string) bool {
	for i := range v.Seen.Containers {
		if v.Seen.Containers[i].SandboxID == sandbox {
			return true
		}
	}
	return false
}
