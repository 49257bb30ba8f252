// SPDX-License-Identifier: Apache-2.0

package plan

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/wherryproject/wherry/internal/node/allot"
	"github.com/wherryproject/wherry/internal/podspec"
)

// A resize changes what is set aside for a pod, which is what the spec in [Input] says. From then on nothing is
// remembered of it: what is given to the pod and to each container that runs is compared with what ought to be (PL-14).
// The pod's cgroup grows before anything in it does, containers that shrink go before those that grow, and the pod's
// cgroup shrinks last.

// Resize is what the node has decided of a resize that it cannot do, or not yet.
type Resize struct {
	Reason, Message string // Deferred or Infeasible, and why
}

// shift is the state of the pod's resources.
type shift struct {
	want  allot.Amounts // of the pod's cgroup
	short bool          // the pod's cgroup gives less of something
	group bool          // it gives something else
	gaps  []*member     // containers that run and are given something else
	// a container is to be started again for its new size, or will be given another one when it starts
	anew bool
}

// shifting compares what is given with what is set aside.
func (v *view) shifting() shift {
	s := shift{want: allot.Pod(v.Pod)}
	if v.Seen.UnboundPod {
		s.want = s.want.Unbound()
	}
	if g := v.Seen.Group; g != nil && v.boxed() && !g.Same(s.want) && v.Heard.Given[Key{Verb: ResizePod}] != s.want {
		s.group = true
		s.short = !g.Same(g.Raised(s.want))
	}
	v.all(func(m *member) {
		if m.kind == podspec.Ephemeral {
			return
		}
		if v.outgrown(m) || m.exit != nil && v.outgrew(m) && v.again(m) || v.madeOtherwise(m) {
			s.anew = true
			return
		}
		if given, known := v.given(m); known && !given.Same(v.portion(m)) {
			s.gaps = append(s.gaps, m)
		}
	})
	return s
}

// portion is what m is to be given.
func (v *view) portion(m *member) allot.Amounts {
	a := allot.Container(v.Pod, m.spec)
	if v.Seen.Unbound[m.spec.Name] {
		return a.Unbound()
	}
	return a
}

// given is what m, if it runs, is given: what the runtime says, or, where it says nothing of that or was last told just
// what is wanted, what it was told.
func (v *view) given(m *member) (given allot.Amounts, known bool) {
	if !m.running() || !m.here {
		return given, false
	}
	told, ok := v.Heard.Given[Key{Verb: ResizeContainer, Container: m.spec.Name, Attempt: m.newest.Attempt}]
	switch {
	case ok && (m.newest.Given == nil || told == v.portion(m)):
		return told, true
	case m.newest.Given != nil:
		return *m.newest.Given, true
	case m.newest.Made != nil:
		return m.newest.Made.Amounts(), true
	}
	return given, false
}

// madeOtherwise tells whether m was made with another size, and not started yet.
func (v *view) madeOtherwise(m *member) bool {
	return m.here && !m.live() && !m.newest.Exited() && m.newest.Made != nil &&
		!m.newest.Made.Amounts().Same(v.portion(m))
}

// outgrown tells whether m, which runs, is to be started again for its new size, by its resize policy.
func (v *view) outgrown(m *member) bool {
	return m.live() && m.here && m.kind != podspec.Init && v.restartsFor(m, m.newest.Made)
}

// outgrew tells whether m's attempt was stopped for its size, which it still is not to have again. One that ended by
// itself before it could be stopped is as any other.
func (v *view) outgrew(m *member) bool {
	return m.exit != nil && m.exit.condemned && (m.kind == podspec.Main || m.kind == podspec.Sidecar) &&
		v.restartsFor(m, m.exit.made)
}

func (v *view) restartsFor(m *member, made *allot.Size) bool {
	return made != nil && len(m.spec.ResizePolicy) > 0 &&
		made.Restarts(allot.SizeOf(v.Pod, m.spec), m.spec.ResizePolicy)
}

// growGroup wants the pod's cgroup to give at least what is set aside.
func (v *view) growGroup() {
	if v.shift.short {
		v.why("", "waits for its cgroup to grow")
		v.want(Op{Verb: ResizePod, Give: v.Seen.Group.Raised(v.shift.want)})
	}
}

// fit wants everything that runs to be given what is set aside.
func (v *view) fit() {
	if v.shift.short {
		return
	}
	less := false
	for _, m := range v.shift.gaps {
		given, _ := v.given(m)
		less = less || given.Tightens(v.portion(m))
	}
	for _, m := range v.shift.gaps {
		given, _ := v.given(m)
		want := v.portion(m)
		if less && !given.Tightens(want) {
			v.why(m.spec.Name, "is resized when others have become smaller")
			continue
		}
		v.why(m.spec.Name, "is being resized")
		v.want(Op{Verb: ResizeContainer, Container: m.spec.Name, Attempt: m.newest.Attempt, Give: want})
	}
}

// shrinkGroup wants the pod's cgroup to give no more than what is set aside, when nothing is given more any longer, nor
// may be by what is about to start.
func (v *view) shrinkGroup() {
	if !v.shift.group || v.shift.short || len(v.shift.gaps) > 0 || v.shift.anew || v.calling(StartContainer) ||
		v.calling(ResizeContainer) {
		return
	}
	for _, o := range v.out.Ops {
		if o.Verb == StartContainer {
			return
		}
	}
	v.want(Op{Verb: ResizePod, Give: v.shift.want})
}

// restartFor stops m, which is started again for its new size. That it was stopped for this is kept with it, as
// whatever exit code it returns, it has not come to its own end.
func (v *view) restartFor(m *member) {
	if v.shift.short {
		v.why(m.spec.Name, "is started again for its new size when the pod's cgroup has grown")
		v.attend(m, StartupProbe, ReadinessProbe, LivenessProbe)
		return
	}
	v.why(m.spec.Name, "stops because its resize policy asks for a restart")
	v.tell(Event{Reason: "Killing", Message: "Container " + m.spec.Name + " resize requires restart"})
	verdict := m.newest.Condemned
	if !verdict.Given() {
		verdict = Verdict{"is to have another size", v.Now.Add(graceOf(v.Pod))}
	}
	v.takeDown(m, verdict.Until, verdict)
}

// untold tells whether the status last decided speaks of another allocation.
func (v *view) untold() bool {
	old := &v.Pod.Status
	if old.AllocatedResources != nil &&
		!equality.Semantic.DeepEqual(old.AllocatedResources, podspec.EffectiveRequests(&corev1.Pod{Spec: v.Pod.Spec})) {
		return true
	}
	other := false
	v.all(func(m *member) {
		if m.mem == nil || m.mem.Resources == nil || m.kind == podspec.Ephemeral {
			return
		}
		r := m.spec.Resources
		other = other || !equality.Semantic.DeepEqual(m.mem.AllocatedResources, r.Requests) ||
			m.mem.State.Running == nil && !equality.Semantic.DeepEqual(m.mem.Resources.Limits, r.Limits)
	})
	return other
}

// resizeFault returns why the last try at a resize failed, if it did.
func (v *view) resizeFault() (f Failure, failed bool) {
	for key, is := range v.Heard.Failed {
		if (key.Verb == ResizePod || key.Verb == ResizeContainer) && (!failed || is.At.Before(f.At)) {
			f, failed = is, true
		}
	}
	return f, failed
}

// resizeConditions tells of a resize that is to come and of one under way, and has the events for it.
func (v *view) resizeConditions(over bool) (own []corev1.PodCondition) {
	if over {
		return nil
	}
	if p := v.Resize; p != nil {
		c := condition(corev1.PodResizePending, true, p.Reason, p.Message)
		c.ObservedGeneration = v.Pod.Generation
		own = append(own, c)
	}
	was, untold := find(v.Pod.Status.Conditions, corev1.PodResizeInProgress), v.untold()
	s := v.shift
	if !untold && !s.group && !s.anew && len(s.gaps) == 0 {
		if was != nil {
			v.why("", "has been resized")
			v.tell(Event{Reason: "ResizeCompleted", Message: "Pod resize completed: " + podspec.ResizeWords(v.Pod, "")})
		}
		return own
	}
	c := condition(corev1.PodResizeInProgress, true, "", "")
	c.ObservedGeneration = v.Pod.Generation
	if was != nil && !untold {
		c.ObservedGeneration = was.ObservedGeneration
	}
	if was == nil || untold {
		v.why("", "is being resized")
		v.tell(Event{Reason: "ResizeStarted", Message: "Pod resize started: " + podspec.ResizeWords(v.Pod, "")})
	}
	if f, failed := v.resizeFault(); failed {
		c.Reason, c.Message = corev1.PodReasonError, f.Message
		v.why("", "cannot be resized: %s", f.Message)
		v.tell(Event{Warning: true, Reason: "ResizeError",
			Message: "Pod resize error: " + podspec.ResizeWords(v.Pod, f.Message)})
	}
	return append(own, c)
}

// tellResources tells what is set aside for a container that was made, and what it is given.
func (v *view) tellResources(m *member, s *corev1.ContainerStatus) {
	if m.newest == nil && m.exit == nil {
		return
	}
	s.AllocatedResources, s.AllocatedResourcesStatus = m.spec.Resources.Requests, v.Seen.Devices[m.spec.Name]
	s.Resources = m.spec.Resources.DeepCopy()
	if given, known := v.given(m); known && m.kind != podspec.Ephemeral {
		s.Resources = allot.Tell(m.spec.Resources, v.portion(m), given)
	}
}

// tellWhole tells what is set aside for the pod as a whole, and what it is given (PL-23).
func (v *view) tellWhole(s *corev1.PodStatus) {
	alone := &corev1.Pod{Spec: v.Pod.Spec}
	requests := podspec.EffectiveRequests(alone)
	s.AllocatedResources = requests
	if s.Phase != corev1.PodRunning {
		s.Resources = &corev1.ResourceRequirements{Requests: requests, Limits: podspec.EffectiveLimits(alone)}
		return
	}
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	take := func(to, from corev1.ResourceList, all bool) {
		for name, q := range from {
			if _, has := to[name]; !has && !q.IsZero() &&
				(all || name == corev1.ResourceCPU || name == corev1.ResourceMemory) {
				to[name] = q
			}
		}
	}
	if whole := v.Pod.Spec.Resources; whole != nil {
		take(r.Requests, whole.Requests, true)
		take(r.Limits, whole.Limits, true)
	}
	take(r.Requests, requests, false)
	take(r.Limits, podspec.BoundedLimits(alone), false)
	s.Resources = &r
	if v.shift.group {
		s.Resources = allot.Tell(r, v.shift.want, *v.Seen.Group)
	}
}
