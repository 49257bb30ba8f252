// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"github.com/wherryproject/wherry/internal/podspec"
)

// lastWords is how long after the end of grace those are killed that were not told to stop before.
const lastWords = 2 * time.Second

// wind stops what runs (SC-09, PL-10): all preStop hooks run at once; inits and mains are stopped together, each after
// its own hook; when the last of them is gone, sidecars from the last to the first, each after the one behind it is
// gone. Until its turn has come a sidecar is kept up (SC-11, SC-27). Past the deadline all are stopped at once; those
// that get their stop signal only then have a moment to heed it.
func (v *view) wind() {
	v.why("", "stops because %s", v.left.because)
	v.keep(StopContainer, RemoveContainer, RemoveSandbox, StopSandbox)
	late, until := !v.Now.Before(v.left.until), v.left.until
	if late {
		until = until.Add(lastWords)
		v.tellOverrun()
	} else {
		v.wake(until)
	}
	busy := false // someone that sidecars have to wait for is still there
	for i := range v.mains {
		busy = v.windDown(&v.mains[i], until) || busy
	}
	for i := range v.gates {
		if v.gates[i].kind == podspec.Init {
			busy = v.windDown(&v.gates[i], until) || busy
		}
	}
	for i := range v.debug { // nobody waits for these but the sandbox
		v.windDown(&v.debug[i], until)
	}
	v.strays()
	for i := len(v.gates) - 1; i >= 0; i-- {
		m := &v.gates[i]
		switch {
		case m.kind != podspec.Sidecar:
		case busy && !late:
			v.holdOn(m)
			busy = busy || m.live() || m.start
		default:
			busy = v.windDown(m, until) || busy
		}
	}
}

// windDown stops m, after its preStop hook, and tells whether it is still there or may still come.
func (v *view) windDown(m *member, until time.Time) bool {
	if !m.live() {
		return m.start // cancelled is not undone: wait for the return, then look
	}
	if m.kind == podspec.Main && m.here {
		v.tryProbes(m, ReadinessProbe) // a main that still serves is still asked
	}
	v.why(m.spec.Name, "stops with its pod")
	v.tellKilling(m, "")
	if m.newest.Lost || v.preStopped(m, v.left.until, Verdict{}) {
		v.bring(Op{Verb: StopContainer, Container: m.spec.Name, Attempt: m.newest.Attempt,
			Until: v.lastMoment(m, until)})
	}
	return true
}

// lastMoment returns when m, whose grace ends at until, is killed: who is told to stop only when that is over or all
// but over, such as by an agent that was away, has lastWords all the same, and is not cut short in them.
func (v *view) lastMoment(m *member, until time.Time) time.Time {
	moment := v.Now.Add(lastWords)
	if !until.Before(moment) {
		return until
	}
	key := Key{StopContainer, m.spec.Name, m.newest.Attempt, NoProbe}
	for _, c := range v.Calls {
		if c.Key() == key && c.Until.After(moment) {
			return until // told long ago, and the grace was cut since
		} else if c.Key() == key {
			return c.Until
		}
	}
	return moment
}

// holdOn keeps sidecar m up while others behind it are stopping: it runs its preStop hook beside theirs, its probes go
// on, and if it exits it is started again.
func (v *view) holdOn(m *member) {
	switch {
	case !v.boxed() || v.Removed:
	case m.live() && m.here && !m.newest.Lost:
		if hookOf(m.spec, PreStop) != nil {
			v.why(m.spec.Name, "stops when the containers behind it are gone")
			v.tellKilling(m, "")
		}
		v.preStopped(m, v.left.until, Verdict{})
		if v.isOut(Key{StopContainer, m.spec.Name, m.newest.Attempt, NoProbe}) {
			v.stopping(m)
		} else {
			v.attend(m, StartupProbe, ReadinessProbe, LivenessProbe)
		}
	// nothing starts in a pod that is told to have ended
	case !m.live() && m.exit != nil && m.exit.here && !ended(&v.Pod.Status):
		v.revive(m)
	}
}

// bring wants op with the earlier of its deadline and the one of the call that is out.
func (v *view) bring(op Op) {
	for i, o := range v.out.Ops {
		if o.Key() != op.Key() {
			continue
		}
		if op.Until.Before(o.Until) {
			v.out.Ops[i].Until = op.Until
		}
		return
	}
	v.do(op)
}

// strays stops live containers that are not a member's newest attempt: none should be, but nothing may be left
// running because a record was lost. A pod that is known from the runtime alone has no members at all.
func (v *view) strays() {
	for i := range v.Seen.Containers {
		c := &v.Seen.Containers[i]
		if c.Live() && !v.newestOfMember(c) {
			v.why(c.Name, "stops because it is not the attempt that the pod has")
			v.tell(killing(c.Name))
			v.bring(Op{Verb: StopContainer, Container: c.Name, Attempt: c.Attempt, Until: v.left.until})
		}
	}
}

func (v *view) newestOfMember(c *Container) (found bool) {
	v.all(func(m *member) { found = found || m.newest == c })
	return found
}

// clear removes the containers of an ended pod for the sake of a full disk (PL-13); how they ended is stored.
func (v *view) clear() {
	held := func(c Container) bool { return c.Held }
	if !v.Node.Full || !v.saved() || slices.ContainsFunc(v.Seen.Containers, held) {
		return
	}
	if len(v.Seen.Sandboxes)+len(v.Seen.Containers) > 0 {
		v.why("", "its containers are removed because the node's disk is full")
	}
	for i := range v.Seen.Sandboxes {
		v.want(Op{Verb: RemoveSandbox, Attempt: v.Seen.Sandboxes[i].Attempt})
	}
	for i := range v.Seen.Containers {
		if c := &v.Seen.Containers[i]; len(v.Seen.Sandboxes) == 0 {
			v.want(Op{Verb: RemoveContainer, Container: c.Name, Attempt: c.Attempt})
		}
	}
}

// clean releases what an ended pod holds. Its containers' last state and logs stay to be read until the pod is
// deleted; then they go too, but not before the API server holds how they ended.
func (v *view) clean() {
	v.keep(StopSandbox, RemoveSandbox, RemoveContainer, ReleaseVolumes, RemoveLogs)
	busy := false
	for i := range v.Seen.Sandboxes {
		s := &v.Seen.Sandboxes[i]
		if s.Ready || !v.Heard.Stopped[s.Attempt] {
			busy = true
			v.want(Op{Verb: StopSandbox, Attempt: s.Attempt})
		}
	}
	if busy || v.calling(StopSandbox) {
		v.why("", "is removing its sandbox")
		return
	}
	if v.calling(PrepareVolumes) {
		v.why("", "waits for the preparation of its volumes to give up")
		return
	}
	if v.Seen.Volumes {
		v.want(Op{Verb: ReleaseVolumes})
	}
	deleted := v.Removed || v.Pod.DeletionTimestamp != nil
	if !deleted {
		v.clear()
		v.out.Ended = !v.Seen.Volumes && !v.calling(ReleaseVolumes)
		return
	}
	if !v.Removed && !v.saved() {
		v.why("", "waits until its last status is stored")
		return
	}
	for i := range v.Seen.Sandboxes {
		v.want(Op{Verb: RemoveSandbox, Attempt: v.Seen.Sandboxes[i].Attempt})
	}
	if len(v.Seen.Sandboxes) > 0 {
		return
	}
	for i := range v.Seen.Containers { // whose sandbox is gone
		c := &v.Seen.Containers[i]
		v.want(Op{Verb: RemoveContainer, Container: c.Name, Attempt: c.Attempt})
	}
	if len(v.Seen.Containers) > 0 || v.Seen.Volumes {
		return
	}
	if v.Seen.Logs {
		v.want(Op{Verb: RemoveLogs})
		return
	}
	v.out.Ended = len(v.Calls) == 0
	v.out.Gone = v.out.Ended
}
