// SPDX-License-Identifier: Apache-2.0

package history

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/work"
	"github.com/wherryproject/wherry/internal/podspec"
	"github.com/wherryproject/wherry/internal/timeline"
)

// fact is what makes a later moment say the same as an earlier one.
type fact struct {
	what      timeline.What
	edge      timeline.Edge
	container string
	attempt   uint32
	probe     string
}

func factOf(m *timeline.Moment) fact { return fact{m.What, m.Edge, m.Container, m.Attempt, m.Probe} }

// had returns the last moment that recorded the same.
func (p *record) had(m *timeline.Moment) *timeline.Moment {
	if seq, ok := p.facts[factOf(m)]; ok {
		if i, ok := p.find(seq); ok {
			return &p.h.Moments[i]
		}
	}
	return nil
}

// once adds a moment unless it was noted before, by this agent or an earlier one.
func (p *record) once(m timeline.Moment) {
	if old := p.had(&m); old == nil || fixed(m.What) && !old.At.Equal(m.At) {
		p.add(m)
	}
}

// fixed reports whether the runtime says when it happened, so that it is known again by its time.
func fixed(w timeline.What) bool {
	return w == timeline.Created || w == timeline.Running || w == timeline.Exited
}

// repeats finds the moment that m only counts up.
func (p *record) repeats(m *timeline.Moment) (int, bool) {
	switch m.What {
	case timeline.Probed:
		if old := p.had(m); old != nil && old.Failed == m.Failed {
			return p.find(old.Seq)
		}
	case timeline.Agent: // an agent that does not get far
		if n := len(p.h.Moments); n > 0 && p.h.Moments[n-1].What == timeline.Agent {
			return n - 1, true
		}
	}
	return 0, false
}

// podOf is who a pod is.
func podOf(pod *corev1.Pod) timeline.Pod {
	out := timeline.Pod{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), Node: pod.Spec.NodeName,
		Created: pod.CreationTimestamp.Time}
	for ref := range podspec.Containers(&pod.Spec) {
		out.Containers = append(out.Containers, timeline.Container{Name: ref.Container.Name, Kind: ref.Kind})
	}
	return out
}

// Pod notes a pod as the API server has it now: that it is there, and that it is being deleted.
func (r *Recorder) Pod(pod *corev1.Pod, now time.Time) {
	who := podOf(pod)
	r.with(who, func(p *record) {
		if len(p.h.Containers) != len(who.Containers) && len(who.Containers) > 0 {
			p.h.Containers, p.meta = who.Containers, true
			p.wake()
		}
		if _, known := p.facts[fact{what: timeline.Seen}]; !known {
			for _, c := range pod.Status.Conditions {
				waited := c.LastTransitionTime.Sub(pod.CreationTimestamp.Time) // both are cut to the second
				if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && waited > time.Second {
					p.add(timeline.Moment{At: c.LastTransitionTime.Time, What: timeline.Scheduled})
				}
			}
			p.add(timeline.Moment{At: now, What: timeline.Seen})
		}
		if pod.DeletionTimestamp == nil {
			return
		}
		m := timeline.Moment{At: now, What: timeline.Deleted}
		if s := pod.DeletionGracePeriodSeconds; s != nil {
			m.Text = fmt.Sprintf("with %ds of grace", *s)
		}
		old := p.had(&m)
		// the agent's last word
		own := old != nil && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
		if old == nil || old.Text != m.Text && !own {
			p.add(m)
		}
	})
}

// Removed notes that the API server has no such pod any more.
func (r *Recorder) Removed(pod *corev1.Pod, now time.Time) { r.over(pod, timeline.Removed, now) }

func (r *Recorder) over(pod *corev1.Pod, what timeline.What, now time.Time) {
	if !r.knows(string(pod.UID)) {
		return // it ended long ago
	}
	r.with(podOf(pod), func(p *record) {
		p.once(timeline.Moment{At: now, What: what})
		p.removed = p.removed || what == timeline.Removed
		p.left = p.left || what == timeline.Left
		if p.removed && p.left && !p.h.Gone {
			p.end(now)
		}
	})
}

// operations are the moments that the planner's verbs become.
var operations = map[plan.Verb]timeline.What{
	plan.PrepareVolumes: timeline.Volumes,
	plan.RunSandbox:     timeline.Sandbox,
	plan.PullImage:      timeline.Pull,
	plan.StartContainer: timeline.Start,
	plan.StopContainer:  timeline.Stop,
	plan.PostStart:      timeline.PostStart,
	plan.PreStop:        timeline.PreStop,
	plan.StopSandbox:    timeline.TakeDown,
	plan.RemoveSandbox:  timeline.CleanUp,
	plan.ReleaseVolumes: timeline.CleanUp,
	plan.RemoveLogs:     timeline.CleanUp,
}

// Trace records what a worker reports of its pod.
func (r *Recorder) Trace(pod *corev1.Pod, e work.Event) {
	switch {
	case e.Left:
		r.over(pod, timeline.Left, e.At)
	case e.Seen != nil:
		r.with(podOf(pod), func(p *record) { p.look(e.Seen, e.At) })
	case e.Op.Verb == plan.Probe:
		r.probe(pod, e)
	default:
		m, ok := momentOf(e)
		if ok {
			r.with(podOf(pod), func(p *record) { p.add(m) })
		}
	}
}

// momentOf words one edge of an operation.
func momentOf(e work.Event) (timeline.Moment, bool) {
	what, ok := operations[e.Op.Verb]
	if !ok {
		return timeline.Moment{}, false
	}
	m := timeline.Moment{At: e.At, What: what, Edge: timeline.Begin, Container: e.Op.Container, Attempt: e.Op.Attempt}
	prefix := ""
	if what == timeline.CleanUp {
		m.Text = e.Op.Verb.String()
		prefix = m.Text + ": "
	}
	if !e.Returned {
		return m, true
	}
	m.Edge = timeline.End
	switch {
	case e.Err == nil:
	case e.Cancelled:
		m.Text = prefix + "given up"
	default:
		m.Failed, m.Text = true, prefix+wordsOf(e.Err)
	}
	return m, true
}

// wordsOf is an error with the reason that the status shows for it.
func wordsOf(err error) string {
	var r interface{ Reason() string }
	if errors.As(err, &r) && r.Reason() != "" {
		return r.Reason() + ": " + err.Error()
	}
	return err.Error()
}

// probe notes a probe's answer when it counts: the first yes after a no, and each no.
func (r *Recorder) probe(pod *corev1.Pod, e work.Event) {
	var no *work.ProbeFailure
	failed := errors.As(e.Err, &no)
	if !e.Returned || e.Cancelled || failed && e.Op.Early || e.Err != nil && !failed {
		return
	}
	m := timeline.Moment{At: e.At, What: timeline.Probed, Container: e.Op.Container, Attempt: e.Op.Attempt,
		Probe: e.Op.Probe.String(), Failed: failed}
	if failed {
		m.Text = no.Message
	}
	r.with(podOf(pod), func(p *record) {
		if old := p.had(&m); !failed && old != nil && !old.Failed {
			return
		}
		p.add(m)
	})
}

// look notes what a look at the node shows that was not known.
func (p *record) look(seen *plan.Seen, now time.Time) {
	for i := range seen.Sandboxes {
		s := &seen.Sandboxes[i]
		_, stopped := p.facts[fact{what: timeline.TakeDown, edge: timeline.Begin, attempt: s.Attempt}]
		if p.ready[s.Attempt] && !s.Ready && !stopped {
			p.add(timeline.Moment{At: now, What: timeline.SandboxLost, Attempt: s.Attempt})
		}
		p.ready[s.Attempt] = s.Ready
	}
	for i := range seen.Containers {
		c := &seen.Containers[i]
		m := timeline.Moment{Container: c.Name, Attempt: c.Attempt}
		note := func(at time.Time, what timeline.What) {
			if !at.IsZero() {
				m.At, m.What = at.UTC(), what
				p.once(m)
			}
		}
		note(c.CreatedAt, timeline.Created)
		note(c.StartedAt, timeline.Running)
		if c.Exited() {
			m.Code, m.Text = c.ExitCode, reasoned(c.Reason, c.Message)
			note(c.FinishedAt, timeline.Exited)
		}
	}
}

func reasoned(reason, message string) string {
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

// StatusChanged notes what a new status shows.
func (r *Recorder) StatusChanged(pod *corev1.Pod, from, to *corev1.PodStatus, now time.Time) {
	r.with(podOf(pod), func(p *record) {
		for kind, s := range podspec.OwnStatuses(to) {
			was := statusOf(from, s.Name)
			if ref, _ := podspec.FindContainer(&pod.Spec, s.Name); kind == podspec.Main || ref.Kind == podspec.Sidecar {
				p.noteUse(was, s, now)
			}
			p.noteWait(was, s, now)
		}
		if was, is := isReady(from), isReady(to); was != is {
			p.add(timeline.Moment{At: now, What: readiness(is)})
		}
		if from.Phase != to.Phase && to.Phase != "" {
			p.add(timeline.Moment{At: now, What: timeline.Phase,
				Text: reasoned(string(to.Phase), reasoned(to.Reason, to.Message))})
		}
	})
}

func readiness(ready bool) timeline.What {
	if ready {
		return timeline.Ready
	}
	return timeline.Unready
}

func isReady(s *corev1.PodStatus) bool { return podspec.IsTrue(s, corev1.PodReady) }

func statusOf(s *corev1.PodStatus, name string) corev1.ContainerStatus {
	if c := podspec.FindStatus(s, name); c != nil {
		return *c
	}
	return corev1.ContainerStatus{}
}

// noteUse notes whether a container has started and is ready. A restart begins at neither.
func (p *record) noteUse(old corev1.ContainerStatus, s *corev1.ContainerStatus, now time.Time) {
	if old.RestartCount != s.RestartCount {
		old.Started, old.Ready = nil, false
	}
	m := timeline.Moment{At: now, Container: s.Name, Attempt: uint32(max(s.RestartCount, 0))}
	if yes(s.Started) && !yes(old.Started) {
		m.What = timeline.Started
		p.add(m)
	}
	if s.Ready != old.Ready {
		m.What = readiness(s.Ready)
		p.add(m)
	}
}

func yes(b *bool) bool { return b != nil && *b }

// noteWait notes what a container waits for, if that is trouble.
func (p *record) noteWait(old corev1.ContainerStatus, s *corev1.ContainerStatus, now time.Time) {
	w := s.State.Waiting
	if w == nil || w.Reason == "ContainerCreating" || w.Reason == "PodInitializing" {
		return
	}
	if old.State.Waiting != nil && old.State.Waiting.Reason == w.Reason && old.RestartCount == s.RestartCount {
		return
	}
	p.add(timeline.Moment{At: now, What: timeline.Waiting, Container: s.Name, Attempt: uint32(max(s.RestartCount, 0)),
		Text: reasoned(w.Reason, w.Message)})
}
