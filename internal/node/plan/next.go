// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Next decides what the pod needs now. It is a pure function of its input and does not keep or change it.
func Next(in Input) Decision {
	v := look(in, roundOf(&in))
	if v.ordered().because == "" && v.called() {
		v = look(in, v.round+1)
	}
	v.left = v.leaving()
	v.shift = v.shifting()
	v.out.Status = v.status()
	v.tellEviction()
	switch {
	case v.left.because != "" && v.still():
		v.clean()
	case v.left.because != "":
		v.wind()
	case !v.boxed():
		v.makeBox()
	default:
		v.tend()
		v.shrinkGroup()
	}
	return v.out
}

// leave says why nothing may start any more, and until when what runs may take to stop.
type leave struct {
	because string // "" = the pod stays
	until   time.Time
	phase   corev1.PodPhase // what the pod ends as; "" = as its containers say
	reason  string          // of the pod's status
	message string
	evicted bool
	grace   time.Duration // of an eviction
}

const deadlineExceeded = "DeadlineExceeded"

// leaving derives from lasting facts alone why the pod is on its way out, if it is: it was told to, or its containers
// have ended.
func (v *view) leaving() leave {
	if l := v.ordered(); l.because != "" {
		return l
	}
	for i := range v.gates {
		m := &v.gates[i]
		if v.failedForGood(m) {
			return leave{because: fmt.Sprintf("init container %s failed", m.spec.Name),
				until: v.past(v.endStands(m)).Add(graceOf(v.Pod)), phase: corev1.PodFailed}
		}
	}
	last := time.Time{}
	for i := range v.mains {
		m := &v.mains[i]
		if !v.endedForGood(m) {
			return v.stranded()
		}
		last = maxTime(last, v.endStands(m))
	}
	return leave{because: "its containers have ended", until: v.past(last).Add(graceOf(v.Pod))}
}

// failedForGood tells whether m is an init with which the pod has failed.
func (v *view) failedForGood(m *member) bool {
	return m.kind == podspec.Init && !m.live() && m.exit != nil && !v.again(m) && m.exit.failed() && v.held(m).IsZero()
}

// endedForGood tells whether main m has ended and does not start again.
func (v *view) endedForGood(m *member) bool {
	return !m.live() && !m.start && !v.again(m) && v.held(m).IsZero()
}

// ordered tells why the pod is on its way out for other reasons than what its containers have come to.
func (v *view) ordered() leave {
	p := v.Pod
	grace := graceOf(p)
	if v.Removed {
		// Nobody waits for this pod any more; two seconds let its programs close their files.
		return leave{because: "its record was removed", until: v.leftAt().Add(min(grace, 2*time.Second))}
	}
	if p.DeletionTimestamp != nil {
		return leave{because: "it is being deleted", until: v.deleteBy()}
	}
	if s := p.Status; s.Phase == corev1.PodFailed || s.Phase == corev1.PodSucceeded {
		return leave{because: "it has ended", until: v.leftAt().Add(grace), phase: s.Phase, reason: s.Reason,
			message: s.Message, evicted: v.Evicted != nil && IsEviction(s.Reason)}
	}
	if l, ok := v.evicted(); ok {
		return l
	}
	if r := v.Refused; r != nil && v.unbegun() {
		return leave{because: "this node does not accept it", until: v.Now, phase: corev1.PodFailed, reason: r.Reason,
			message: r.Message}
	} else if r != nil && r.Begun {
		return leave{because: "this node no longer accepts it", until: v.Now.Add(grace), phase: corev1.PodFailed,
			reason: r.Reason, message: r.Message}
	}
	if at, ok := deadline(p); ok && (!v.Now.Before(at) || p.Status.Reason == deadlineExceeded) {
		return leave{because: "it exceeded its activeDeadlineSeconds", until: at.Add(grace), phase: corev1.PodFailed,
			reason: deadlineExceeded, message: "Pod was active on the node longer than the specified deadline"}
	} else if ok {
		v.wake(at)
	}
	return leave{}
}

// unbegun tells whether nothing of the pod was ever there.
func (v *view) unbegun() bool {
	return v.box == nil && len(v.Seen.Containers) == 0 && !v.calling(RunSandbox) && !v.everBegun()
}

func graceOf(p *corev1.Pod) time.Duration {
	if p.Spec.TerminationGracePeriodSeconds == nil {
		return corev1.DefaultTerminationGracePeriodSeconds * time.Second
	}
	return podspec.Seconds(max(*p.Spec.TerminationGracePeriodSeconds, 0))
}

// deadline returns when activeDeadlineSeconds runs out (PL-11).
func deadline(p *corev1.Pod) (time.Time, bool) {
	if p.Spec.ActiveDeadlineSeconds == nil || p.Status.StartTime == nil {
		return time.Time{}, false
	}
	return p.Status.StartTime.Add(podspec.Seconds(*p.Spec.ActiveDeadlineSeconds)), true
}

func (v *view) leftAt() time.Time {
	if v.Heard.LeftAt.IsZero() {
		return v.Now
	}
	return v.Heard.LeftAt
}

// deleteBy returns when the grace of a deletion ends. The stored timestamp is the lasting fact, but it is cut to
// the second; where the agent heard of the deletion itself, it grants the whole grace.
func (v *view) deleteBy() time.Time {
	p := v.Pod
	if p.DeletionGracePeriodSeconds == nil || *p.DeletionGracePeriodSeconds == 0 {
		return v.leftAt()
	}
	stored := p.DeletionTimestamp.Add(time.Second)
	if v.Heard.LeftAt.IsZero() {
		return stored
	}
	grace := podspec.Seconds(*p.DeletionGracePeriodSeconds)
	return v.Heard.LeftAt.Add(min(grace, stored.Sub(v.Heard.LeftAt))) // from LeftAt, which no change of the clock moves
}

// still tells whether nothing of the pod runs, and no call is out that could change that.
func (v *view) still() bool {
	for i := range v.Seen.Containers {
		if v.Seen.Containers[i].Live() {
			return false
		}
	}
	for _, c := range v.Calls {
		switch c.Verb {
		case RunSandbox, StartContainer, StopContainer:
			return false
		}
	}
	return true
}

// boxed tells whether the pod has a sandbox to run containers in.
func (v *view) boxed() bool { return v.box != nil && v.box.Ready }

// saved tells whether the API server holds the status as it is now. A status that this very decision changes is
// not stored yet.
func (v *view) saved() bool {
	return v.Saved && equality.Semantic.DeepEqual(&v.Pod.Status, &v.out.Status)
}

// do wants an operation, unless it failed lately and is not due again. It tells whether it is wanted now.
func (v *view) do(op Op) bool {
	if v.backsOff(op) {
		v.wake(retry(op.Verb, v.Heard.Failed[op.Key()]))
		return false
	}
	v.out.Ops = append(v.out.Ops, op)
	return true
}

// backsOff tells whether an operation failed lately and is not due again.
func (v *view) backsOff(op Op) bool {
	f, failed := v.Heard.Failed[op.Key()]
	return failed && !v.isOut(op.Key()) && v.Now.Before(retry(op.Verb, f))
}

func (v *view) isOut(k Key) bool {
	for _, c := range v.Calls {
		if c.Key() == k {
			return true
		}
	}
	return false
}

// unwant takes back what keep wanted of a container.
func (v *view) unwant(verb Verb, container string) {
	v.out.Ops = slices.DeleteFunc(v.out.Ops, func(o Op) bool { return o.Verb == verb && o.Container == container })
}

// keep wants every call with one of these verbs to go on.
func (v *view) keep(verbs ...Verb) {
	for _, c := range v.Calls {
		for _, verb := range verbs {
			if c.Verb == verb && !c.Cancelled {
				v.out.Ops = append(v.out.Ops, c.Op)
			}
		}
	}
}

// wake asks to decide again at t.
func (v *view) wake(t time.Time) {
	if t.After(v.Now) && (v.out.Wake.IsZero() || t.Before(v.out.Wake)) {
		v.out.Wake = t
	}
}

func (v *view) why(container, format string, args ...any) {
	v.out.Why = append(v.out.Why, Reason{Container: container, Text: fmt.Sprintf(format, args...)})
}

// tell gives the last reason an event.
func (v *view) tell(e Event) {
	v.out.Why[len(v.out.Why)-1].Event = &e
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
