// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// decided is a line of a table of decisions: from these facts, these operations and no others, and what the status must show.
type decided struct {
	name   string // with the rules it proves
	facts  *facts
	ops    string
	why    string   // part of a reason that must be given
	status []string // see shown
	lacks  []string // and must not show
}

func (c decided) check(t *testing.T) Decision {
	t.Helper()
	d := Next(c.facts.Input)
	if got := opsOf(d, c.facts.Now); got != c.ops {
		t.Errorf("wants %q, not %q", got, c.ops)
	}
	if c.why != "" && !slices.ContainsFunc(d.Why, func(r Reason) bool { return strings.Contains(r.Text, c.why) }) {
		t.Errorf("does not say why: %q is not in %+v", c.why, d.Why)
	}
	all := shown(&d.Status)
	for _, w := range c.status {
		if !slices.Contains(all, w) {
			t.Errorf("status lacks %s: %q", w, all)
		}
	}
	for _, w := range c.lacks {
		if slices.Contains(all, w) {
			t.Errorf("status shows %s: %q", w, all)
		}
	}
	return d
}

// condemned says of the newest container that it was killed because it failed.
func (f *facts) condemned() *facts {
	f.Seen.Containers[len(f.Seen.Containers)-1].Condemned = Verdict{"failed liveness probe", f.Now.Add(10 * time.Second)}
	return f
}

func imaged(f *facts) { f.Pod.Spec.Containers[0].Image = "img2" }

// TestVerdict holds what follows for a container that was killed because it failed a probe or a hook, and what of it is known by
// which facts (PL-16).
func TestVerdict(t *testing.T) {
	stop := Op{Verb: StopContainer, Container: "m0", Until: epoch.Add(2 * time.Hour), Verdict: Verdict{"failed liveness probe", epoch.Add(2 * time.Hour)}}
	forgotten := func(f *facts) { f.Seen.Containers[0].Condemned = Verdict{} }
	for _, c := range []decided{
		{name: "OnFailure: it is started again, though it exited with 0", facts: about("m", onFailure).boxed().ended("m0", 0, 0, 0).condemned().pulled("m0", 1),
			ops: "StartContainer m0/1", status: []string{"Running", "m0=ContainerCreating", "m0.last=exit0(Error)"}},
		{name: "with back-off", facts: about("m", onFailure).boxed().ended("m0", 1, 0, 4*time.Second).condemned().pulled("m0", 2),
			why: "back-off", status: []string{"Running", "m0=CrashLoopBackOff", "m0.last=exit0(Error)"}},
		{name: "with the image as it is by then", facts: about("m", onFailure).boxed().ended("m0", 0, 0, 0).condemned().but(imaged), ops: "PullImage m0/1"},
		{name: "Always: it is started again", facts: about("m", always).boxed().ended("m0", 0, 0, 0).condemned().pulled("m0", 1), ops: "StartContainer m0/1"},
		{name: "Never: it has failed, and the pod with it", facts: about("m", never).boxed().ended("m0", 0, 0, 0).condemned(),
			ops: "StopSandbox 0", status: []string{"Failed", "m0=exit0(Error)"}},
		{name: "another image does not change that", facts: about("m", never).boxed().ended("m0", 0, 0, 0).condemned().but(imaged),
			ops: "StopSandbox 0", status: []string{"Failed", "m0=exit0(Error)"}},
		{name: "one main was killed, another completed", facts: about("mm", never).boxed().ended("m1", 0, 0, 0).ended("m0", 0, 0, time.Minute).condemned(),
			ops: "StopSandbox 0", status: []string{"Failed", "m0=exit0(Error)", "m1=exit0(Completed)"}},
		{name: "another exit code stays what it is", facts: about("m", never).boxed().ended("m0", 0, 143, 0).condemned(),
			ops: "StopSandbox 0", status: []string{"Failed", "m0=exit143(Error)"}},
		{name: "a hold keeps it", facts: about("m", never).boxed().ended("m0", 0, 0, time.Minute).condemned().but(holding("10m")),
			status: []string{"Running", "reason=HeldOnFailure", "m0=exit0(Error)"}},
		{name: "a sidecar's says nothing of the pod", facts: about("sm", onFailure).boxed().ended("m1", 0, 0, 0).ended("s0", 0, 0, 0).condemned(),
			ops: "StopSandbox 0", status: []string{"Succeeded"}},

		{name: "the verdict counts while the call that carries it is out", facts: about("m", onFailure).boxed().ended("m0", 0, 0, 0).pulled("m0", 1).calling(stop),
			ops: "StopContainer m0/0 in 1h0m0s", status: []string{"Running", "m0=ContainerCreating", "m0.last=exit0(Error)"}},
		{name: "what was stored of it stays so when its file has gone with the pod's folder", facts: about("m", never).boxed().ended("m0", 0, 0, 0).condemned().told().but(forgotten).but(func(f *facts) { f.Pod.Status.Phase = corev1.PodRunning }),
			ops: "StopSandbox 0", status: []string{"Failed", "m0=exit0(Error)"}},
		{name: "and when the runtime has lost the container", facts: about("m", onFailure).boxed().ended("m0", 1, 0, 4*time.Second).condemned().told().but(func(f *facts) { f.Seen.Containers = nil }),
			why: "back-off", status: []string{"Running", "m0=CrashLoopBackOff", "m0.last=exit0(Error)"}},
		{name: "an agent that finds it running goes on to stop it", facts: about("m", onFailure).boxed().runs("m0", 0).condemned(),
			ops: "StopContainer m0/0 in 10s", why: "it failed liveness probe"},
		{name: "at once when the clock was set back meanwhile", facts: about("m", onFailure).boxed().runs("m0", 0).condemned().but(func(f *facts) { f.Now = f.Now.Add(-time.Hour) }),
			ops: "StopContainer m0/0 in 2s"},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t) })
	}
}

// TestVerdictIsCarried holds that the first operation on a container that is killed for a fault carries the verdict, whichever it
// is, and that no other operation does (PL-16).
func TestVerdictIsCarried(t *testing.T) {
	failing := func(f *facts) {
		f.Pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{}
		f.Heard.Probes[ProbeKey{"m0", 0, LivenessProbe}] = Probed{Failed: 3, Last: f.Now, Tick: f.Now, Message: "no"}
	}
	hooked := Op{Verb: PostStart, Container: "H0"}
	fails := Key{PreStop, "H0", 0, NoProbe}
	for _, c := range []struct {
		name  string
		facts *facts
		want  string
	}{
		{"a probe", about("m", always).boxed().runs("m0", 0).but(failing), "StopContainer: failed liveness probe in 30s"},
		{"a hook, behind which there is another", about("H", always).boxed().runs("H0", 0).failed(hooked, 1, 0, "", "no"), "PreStop: failed its postStart hook in 30s"},
		{"and then the stop", about("H", always).boxed().runs("H0", 0).failed(hooked, 1, 0, "", "no").but(func(f *facts) { f.Heard.Done[fails] = true }), "StopContainer: failed its postStart hook in 30s"},
		{"another image is no fault", about("m", always).boxed().runs("m0", 0).but(imaged), "StopContainer:  in 30s"},
		{"nor is a deletion", about("m", always).boxed().runs("m0", 0).deleted(0), "StopContainer:  in 30s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			for _, o := range Next(c.facts.Input).Ops {
				got += fmt.Sprintf("%v: %s in %v", o.Verb, o.Verdict.Fault, o.Until.Sub(c.facts.Now))
			}
			if got != c.want {
				t.Errorf("wants %q, want %q", got, c.want)
			}
		})
	}
}
