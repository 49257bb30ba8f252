// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/allot"
	"github.com/wherryproject/wherry/internal/podspec"
)

// exit is how the last attempt of a container ended: from the runtime if it still shows it, else from the
// stored status.
type exit struct {
	code              int32
	started, finished time.Time
	reason, message   string
	attempt           uint32
	here              bool // it ran in the pod's newest sandbox
	unborn            bool // it never ran, and its sandbox is gone
	streak            int
	specImage         string
	id                string
	skipped           bool // a debug run that was stopped before it started
	condemned         bool // it was killed for a fault of its own
	reset             bool // all containers were told to start again since
	calls             bool // it is by such an end that they are told
	made              *allot.Size
}

// failed tells whether the attempt failed, by its exit code or by the verdict it was killed for (PL-16).
func (e *exit) failed() bool { return e.code != 0 || e.condemned }

// member is one container of the pod with all that is known of it.
type member struct {
	// of an ephemeral container: outside the gates, each run started once and never again (EC-10, EC-11)
	kind   podspec.Kind
	spec   *corev1.Container
	mem    *corev1.ContainerStatus // as last stored, or nil
	newest *Container              // newest attempt the runtime shows, or nil
	dead   *Container              // newest attempt that has exited, or nil
	exit   *exit                   // how the last attempt ended; nil while one is live or none ever was
	here   bool                    // newest is in the newest sandbox
	next   uint32                  // the attempt to start next
	start  bool                    // a StartContainer call is out
	up     bool                    // it has started, in the sense of SC-03
	behind string                  // a main before it whose postStart hook it waits for (PL-17)

	debugRun // of an ephemeral container
}

// view is an Input sorted for deciding. It holds no facts of its own.
type view struct {
	Input
	out   Decision
	left  leave    // why the pod is on its way out, if it is
	box   *Sandbox // the newest sandbox, or nil
	gates []member // inits and sidecars, in order
	mains []member
	debug []member // ephemeral containers
	hold  time.Duration
	round int   // how often all containers were told to start again, see restartall.go
	shift shift // of the pod's resources
}

func look(in Input, round int) *view {
	v := &view{Input: in, round: round}
	if !in.Node.NoHold {
		v.hold = podspec.HoldOnFailure(in.Pod)
	}
	for i := range in.Seen.Sandboxes {
		if s := &in.Seen.Sandboxes[i]; v.box == nil || s.Attempt > v.box.Attempt {
			v.box = s
		}
	}
	spec, status := &in.Pod.Spec, &in.Pod.Status
	v.gates = make([]member, len(spec.InitContainers))
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		k := podspec.Init
		if podspec.IsSidecar(c) {
			k = podspec.Sidecar
		}
		v.gates[i] = v.member(k, c, remembered(status.InitContainerStatuses, c.Name))
	}
	v.mains = make([]member, len(spec.Containers))
	for i := range spec.Containers {
		c := &spec.Containers[i]
		v.mains[i] = v.member(podspec.Main, c, remembered(status.ContainerStatuses, c.Name))
	}
	v.debug = make([]member, len(spec.EphemeralContainers))
	runs := podspec.DebugRunsOf(in.Pod)
	for i := range spec.EphemeralContainers {
		c := podspec.AsContainer(&spec.EphemeralContainers[i])
		v.debug[i] = v.member(podspec.Ephemeral, c, remembered(status.EphemeralContainerStatuses, c.Name))
		v.wantRun(&v.debug[i], spec.EphemeralContainers[i].TargetContainerName, runs[c.Name])
	}
	return v
}

// remembered returns the stored status of a container, if it was ever created.
func remembered(list []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

func (v *view) member(k podspec.Kind, spec *corev1.Container, mem *corev1.ContainerStatus) member {
	m := member{kind: k, spec: spec, mem: mem}
	for i := range v.Seen.Containers {
		c := &v.Seen.Containers[i]
		if c.Name != spec.Name || k != podspec.Ephemeral && v.stillborn(c) {
			continue
		}
		if m.newest == nil || c.Attempt > m.newest.Attempt {
			m.newest = c
		}
		if c.Exited() && (m.dead == nil || c.Attempt > m.dead.Attempt) {
			m.dead = c
		}
	}
	m.here = m.newest != nil && v.inBox(m.newest) && (k == podspec.Ephemeral || m.newest.Round >= v.round)
	for _, c := range v.Calls {
		if c.Verb == StartContainer && c.Container == spec.Name {
			m.start = true
		}
	}
	m.exit = v.lastExit(&m)
	if m.newest != nil {
		m.next = m.newest.Attempt
		if m.newest.Exited() || m.newest.Live() || !m.here {
			m.next++ // else it was created in this sandbox and never started
		}
	}
	if e := m.exit; e != nil && e.unborn && k != podspec.Ephemeral {
		m.next = max(m.next, e.attempt) // its number was told, and is given to one that runs
	} else if e != nil {
		m.next = max(m.next, e.attempt+1)
	}
	m.up = v.isUp(&m)
	return m
}

// stillborn tells whether c was made as its sandbox died, or all containers were told to start again, and never ran:
// that is no attempt that anybody counts (PL-02, PID-06).
func (v *view) stillborn(c *Container) bool {
	return c.StartedAt.IsZero() && !c.Live() && (!v.boxed() || !v.inBox(c) || c.Round < v.round)
}

// inBox tells whether c is in the pod's newest sandbox.
func (v *view) inBox(c *Container) bool { return v.box != nil && c.SandboxID == v.box.ID }

// lastExit finds how m's last attempt ended. A container that the stored status shows as running and that the
// runtime does not know any more was lost with its sandbox, most likely in a reboot.
func (v *view) lastExit(m *member) *exit {
	if m.live() {
		return nil
	}
	if c := m.dead; c != nil && (m.mem == nil || int32(c.Attempt) >= m.mem.RestartCount) {
		reset := m.kind != podspec.Ephemeral && c.Round < v.round
		return &exit{code: c.ExitCode, started: c.StartedAt, finished: c.FinishedAt, reason: c.Reason,
			message: c.Message, attempt: c.Attempt, here: v.inBox(c) && !reset, reset: reset,
			calls:  callsAll(m, c.ExitCode),
			streak: c.Streak, specImage: c.SpecImage, id: c.ID, condemned: v.verdictOn(m, c).Given(), made: c.Made}
	}
	if m.mem == nil { // what the runtime shows, if anything, never ran
		return nil
	}
	attempt := uint32(max(m.mem.RestartCount, 0))
	if m.kind == podspec.Ephemeral && m.mem.State.Waiting != nil && attempt > 0 {
		attempt-- // it counts the run that was waiting; the end that is remembered is that of one before
	}
	if t := terminated(m.mem); t != nil {
		reset := toldReset(m.mem)
		return &exit{reset: reset, calls: callsAll(m, t.ExitCode),
			code: t.ExitCode, started: t.StartedAt.Time, finished: t.FinishedAt.Time, reason: t.Reason,
			message: t.Message, attempt: attempt, streak: int(attempt), specImage: m.spec.Image, id: t.ContainerID,
			unborn: t.StartedAt.IsZero(), condemned: toldCondemned(t),
			here: !reset && v.box != nil && !t.StartedAt.Time.Before(v.box.CreatedAt.Truncate(time.Second)) &&
				!v.setBack(t.StartedAt.Time)}
	}
	if m.mem.State.Running != nil {
		return &exit{code: 137, started: m.mem.State.Running.StartedAt.Time, finished: v.Now,
			reason: "ContainerStatusUnknown", attempt: attempt, streak: int(attempt), specImage: m.spec.Image,
			message: "The container could not be found in the runtime; its sandbox was lost, probably in a reboot",
			id:      m.mem.ContainerID}
	}
	return nil
}

// terminated returns the end that a stored status remembers: its present state, or, in back-off, the last one.
func terminated(s *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if s.State.Terminated != nil {
		return s.State.Terminated
	}
	if s.State.Running == nil {
		return s.LastTerminationState.Terminated
	}
	return nil
}

func (m *member) live() bool    { return m.newest != nil && m.newest.Live() }
func (m *member) running() bool { return m.newest != nil && m.newest.Running() }

// started tells whether m has begun to do its work in the newest sandbox.
func (m *member) started() bool { return m.up && m.here }

// begun tells whether any attempt of m was made in the newest sandbox.
func (m *member) begun() bool {
	return m.here || m.exit != nil && m.exit.here
}

// outdated tells whether the spec's image was changed since the attempt with that image was created.
func (m *member) outdated(image string) bool {
	return image != "" && image != m.spec.Image
}

// again tells whether an attempt that ended so is followed by another, by the pod's restart policy (PL-02).
func (v *view) again(m *member) bool {
	e := m.exit
	if e == nil {
		return true
	}
	if e.reset {
		return true // whatever its policy says (PL-28)
	}
	switch m.kind {
	case podspec.Sidecar:
		return true
	case podspec.Init:
		if e.code == 0 {
			return !e.here // a new sandbox runs all inits again
		}
		return restarts(&v.Pod.Spec, m.spec, e.code, true)
	case podspec.Ephemeral:
		return e.attempt < m.run
	}
	return (m.outdated(e.specImage) && !e.condemned || v.outgrew(m)) && !v.finished(m) ||
		restarts(&v.Pod.Spec, m.spec, e.code, e.failed())
}

// finished tells whether m's end has been told as its last: another image in the spec does not run it again. Of a
// container that was stopped for the sake of that image it is never told so, see afterExit.
func (v *view) finished(m *member) bool {
	return m.mem != nil && m.mem.State.Terminated != nil &&
		m.mem.State.Terminated.ContainerID == v.containerID(m.exit.id)
}

// due returns when m's next attempt may start.
func (v *view) due(m *member) time.Time {
	e := m.exit
	if e == nil || m.kind == podspec.Ephemeral || v.replaced(m) || m.kind == podspec.Init && e.code == 0 ||
		e.reset && !e.calls {
		return time.Time{}
	}
	if v.setBack(e.finished) {
		return time.Time{}
	}
	return e.finished.Add(Delay(v.streakAfter(m) - 1))
}

// replaced tells whether m's end makes room for another m, with the image or the size that the spec has now.
func (v *view) replaced(m *member) bool { return m.outdated(m.exit.specImage) || v.outgrew(m) }

// streakAfter returns the streak of the attempt that follows m's exit.
func (v *view) streakAfter(m *member) int {
	e := m.exit
	switch {
	case e == nil || m.kind == podspec.Ephemeral || v.replaced(m) || m.kind == podspec.Init && e.code == 0:
		return 0
	case e.reset && !e.calls:
		return 0 // it was ended for the sake of another
	case !e.started.IsZero() && e.finished.Sub(e.started) >= restartReset:
		return 1
	case e.started.IsZero() && !e.here && e.streak > 0:
		return e.streak // it was made as its sandbox died and never ran: that is no crash of its own (PID-06)
	}
	return e.streak + 1
}

// passed tells whether any container behind gate i was begun in the newest sandbox. Since nothing starts before
// its gates, gate i was open then.
func (v *view) passed(i int) bool {
	for j := i + 1; j < len(v.gates); j++ {
		if v.gates[j].begun() {
			return true
		}
	}
	for j := range v.mains {
		if v.mains[j].begun() {
			return true
		}
	}
	return false
}

// open tells whether gate i lets the next container start.
func (v *view) open(i int) bool {
	m := &v.gates[i]
	if m.kind == podspec.Sidecar {
		return m.started()
	}
	return !m.live() && m.exit != nil && m.exit.code == 0 && m.exit.here || v.passed(i)
}

// all calls f on every container, gates first.
func (v *view) all(f func(*member)) {
	for i := range v.gates {
		f(&v.gates[i])
	}
	for i := range v.mains {
		f(&v.mains[i])
	}
	for i := range v.debug {
		f(&v.debug[i])
	}
}

// calling tells whether a call with this verb has not returned.
func (v *view) calling(verb Verb) bool {
	for _, c := range v.Calls {
		if c.Verb == verb {
			return true
		}
	}
	return false
}
