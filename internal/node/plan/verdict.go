// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// sentence is why a container that runs has to be stopped, and by when. The zero sentence lets it live.
type sentence struct {
	why string
	Verdict
}

// condemned tells whether m, which runs, has to be stopped: its postStart hook or one of its probes has failed for
// good.
func (v *view) condemned(m *member) sentence {
	if f, failed := v.Heard.Failed[Key{Verb: PostStart, Container: m.spec.Name, Attempt: m.attempt()}]; failed {
		return sentence{"its postStart hook failed: " + f.Message,
			Verdict{"failed its postStart hook", f.At.Add(graceOf(v.Pod))}}
	}
	for _, k := range []ProbeKind{StartupProbe, LivenessProbe} {
		p := probeOf(m.spec, k)
		if p == nil || k == StartupProbe && v.startedUp(m) {
			continue
		}
		f := v.probed(m, k)
		if f.Failed < threshold(p.FailureThreshold, 3) {
			continue
		}
		return sentence{fmt.Sprintf("its %s probe failed: %s", k, f.Message),
			Verdict{fmt.Sprintf("failed %s probe", k), f.Last.Add(v.graceAfter(p))}}
	}
	if verdict := m.newest.Condemned; verdict.Given() { // by an agent that has died since
		grace := max(graceOf(v.Pod), v.graceAfter(m.spec.StartupProbe), v.graceAfter(m.spec.LivenessProbe))
		if v.setBack(verdict.Until.Add(-grace)) {
			verdict.Until = v.Now
		}
		return sentence{"it " + verdict.Fault, verdict}
	}
	return sentence{}
}

// graceAfter is how long a container may take to stop when it has failed this probe.
func (v *view) graceAfter(p *corev1.Probe) time.Duration {
	if p == nil || p.TerminationGracePeriodSeconds == nil {
		return graceOf(v.Pod)
	}
	return podspec.Seconds(*p.TerminationGracePeriodSeconds)
}

// verdictOn returns the verdict that m's attempt c was or is being killed for, if any. The call that carries it counts
// from when it is out, so that an end that comes before the next look at the node is not taken for the program's own.
func (v *view) verdictOn(m *member, c *Container) Verdict {
	if c.Condemned.Given() {
		return c.Condemned
	}
	for i := range v.Calls {
		if o := &v.Calls[i].Op; o.Container == c.Name && o.Attempt == c.Attempt && o.Verdict.Given() {
			return o.Verdict
		}
	}
	if m.mem != nil { // the file goes with the pod's folder, the stored status stays
		if t := terminated(m.mem); t != nil && t.ContainerID == v.containerID(c.ID) && toldCondemned(t) {
			return Verdict{Fault: t.Message}
		}
	}
	return Verdict{}
}

// reasonError is the reason of an attempt that failed, as the runtime gives it for exit codes other than 0.
const reasonError = "Error"

// tellCondemned makes an end with exit code 0 tell that the attempt has failed all the same. Nobody could make sense of
// a failed pod whose containers have all completed, and an agent that has only the stored status to go by needs it too.
func tellCondemned(t *corev1.ContainerStateTerminated, verdict Verdict) {
	t.Reason = reasonError
	if t.Message == "" {
		t.Message = "killed because it " + verdict.Fault
	}
}

// toldCondemned tells whether an end speaks of an attempt that was killed for a fault of its own and exited with 0.
func toldCondemned(t *corev1.ContainerStateTerminated) bool {
	return t.ExitCode == 0 && t.Reason == reasonError
}
