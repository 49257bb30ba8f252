// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// ProbeKind tells a container's probes apart.
type ProbeKind uint8

// The probes, in the order in which they matter to a container's life.
const (
	NoProbe ProbeKind = iota
	StartupProbe
	ReadinessProbe
	LivenessProbe
)

var probeNames = [...]string{NoProbe: "", StartupProbe: "startup", ReadinessProbe: "readiness",
	LivenessProbe: "liveness"}

// String returns the probe's name as events show it, in lower case.
func (k ProbeKind) String() string {
	if int(k) < len(probeNames) {
		return probeNames[k]
	}
	return "probe?"
}

// ProbeKey names one probe of one attempt of a container.
type ProbeKey struct {
	Container string
	Attempt   uint32
	Kind      ProbeKind
}

// Probed is what the tries of a probe have told so far.
type Probed struct {
	Last time.Time // when the last try returned
	Tick time.Time // when the last try began that counts also if it fails
	// Early is how many tries came between ticks. They count only if they succeed.
	Early          int
	Passed, Failed int // in a row: one of them is 0
	Message        string
}

// earlyDelay is the pause before the first try between two ticks; the next ones double it. A container that is ready
// after a tenth of its period does not wait for the other nine.
const earlyDelay = 50 * time.Millisecond

// probeOf returns the spec of a container's probe, or nil.
func probeOf(c *corev1.Container, k ProbeKind) *corev1.Probe {
	switch k {
	case StartupProbe:
		return c.StartupProbe
	case ReadinessProbe:
		return c.ReadinessProbe
	case LivenessProbe:
		return c.LivenessProbe
	}
	return nil
}

func (v *view) probed(m *member, k ProbeKind) Probed {
	return v.Heard.Probes[ProbeKey{m.spec.Name, m.attempt(), k}]
}

// remembers tells whether the stored status speaks of the very container that runs now.
func (v *view) remembers(m *member) bool {
	return m.mem != nil && m.newest != nil && m.mem.ContainerID == v.containerID(m.newest.ID)
}

// startedUp tells whether m's startup probe, if it has one, has succeeded.
func (v *view) startedUp(m *member) bool {
	if m.spec.StartupProbe == nil || v.probed(m, StartupProbe).Passed > 0 {
		return true
	}
	return v.remembers(m) && m.mem.Started != nil && *m.mem.Started
}

// isUp tells whether m has started in the sense of SC-03: it runs, its startup probe has succeeded and its postStart
// hook has completed. What the stored status says of this very container stays true after a restart of the agent.
func (v *view) isUp(m *member) bool {
	if !m.running() {
		return false
	}
	if v.remembers(m) && m.mem.Started != nil && *m.mem.Started {
		return true
	}
	return v.startedUp(m) && v.hooked(m)
}

// hooked reports whether m's postStart hook, if there is one, has completed.
func (v *view) hooked(m *member) bool {
	return hookOf(m.spec, PostStart) == nil ||
		v.Heard.Done[Key{Verb: PostStart, Container: m.spec.Name, Attempt: m.attempt()}]
}

// isReady tells whether m can take requests (SC-08). Between its thresholds a probe leaves things as they were.
func (v *view) isReady(m *member) bool {
	if m.kind == podspec.Init || m.kind == podspec.Ephemeral || !m.up {
		return false
	}
	p := m.spec.ReadinessProbe
	if p == nil {
		return true
	}
	switch f := v.probed(m, ReadinessProbe); {
	case f.Passed >= threshold(p.SuccessThreshold, 1):
		return true
	case f.Failed >= threshold(p.FailureThreshold, 3):
		return false
	}
	return v.remembers(m) && m.mem.Ready
}

func threshold(given int32, otherwise int) int {
	if given <= 0 {
		return otherwise
	}
	return int(given)
}

// tryProbes wants the tries that are due of these probes of m, which runs: the startup probe until it has succeeded,
// the others from then on (PL-04). While its postStart hook runs there are none: what a hook prepares must not be asked
// for before (PL-17).
func (v *view) tryProbes(m *member, kinds ...ProbeKind) {
	if !m.up && !v.hooked(m) {
		return
	}
	for _, k := range kinds {
		if p := probeOf(m.spec, k); p != nil && (k == StartupProbe) != v.startedUp(m) {
			v.tryProbe(m, k, p)
		}
	}
}

func (v *view) tryProbe(m *member, k ProbeKind, p *corev1.Probe) {
	op := Op{Verb: Probe, Container: m.spec.Name, Attempt: m.newest.Attempt, Probe: k}
	if v.isOut(op.Key()) {
		v.out.Ops = append(v.out.Ops, op)
		return
	}
	f := v.probed(m, k)
	period := time.Duration(threshold(p.PeriodSeconds, 10)) * time.Second
	tick := m.newest.StartedAt.Add(time.Duration(p.InitialDelaySeconds) * time.Second)
	if !f.Tick.IsZero() {
		tick = f.Tick.Add(period)
	} else if v.setBack(m.newest.StartedAt) {
		tick = v.Now
	}
	if !v.Now.Before(tick) {
		v.out.Ops = append(v.out.Ops, op)
		return
	}
	v.wake(tick)
	if f.Tick.IsZero() || f.Passed > 0 || k == LivenessProbe || k == ReadinessProbe && v.isReady(m) {
		return
	}
	early := f.Last.Add(min(earlyDelay<<min(f.Early, 20), period))
	if v.Now.Before(early) {
		v.wake(early)
		return
	}
	op.Early = true
	v.out.Ops = append(v.out.Ops, op)
}
