// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestPostStartHoldsUp holds which mains wait for the postStart hooks of others (PL-17).
func TestPostStartHoldsUp(t *testing.T) {
	post := func(attempt uint32) Op { return Op{Verb: PostStart, Container: "H0", Attempt: attempt} }
	done := func(f *facts) { f.Heard.Done[post(0).Key()] = true }
	both := func() *facts { return about("Hm", always).boxed().pulled("H0", 0).pulled("m1", 0) }
	for _, c := range []decided{
		{name: "the first with a hook starts, the one behind waits", facts: both(),
			ops: "StartContainer H0/0", why: "waits for the postStart hook of container H0", status: []string{"m1=ContainerCreating"}},
		{name: "its image is pulled meanwhile", facts: about("Hm", always).boxed(), ops: "PullImage H0/0; PullImage m1/0"},
		{name: "while it starts", facts: both().calling(Op{Verb: StartContainer, Container: "H0"}), ops: "StartContainer H0/0", why: "waits for the postStart hook of container H0"},
		{name: "while its hook runs", facts: both().runs("H0", 0), ops: "PostStart H0/0", why: "waits for the postStart hook of container H0"},
		{name: "until that is done", facts: both().runs("H0", 0).but(done), ops: "StartContainer m1/0"},
		{name: "or has failed", facts: both().runs("H0", 0).failed(post(0), 1, 0, "", "no"), ops: "PreStop H0/0 in 30s; StartContainer m1/0"},
		{name: "a startup probe holds up nothing", facts: both().runs("H0", 0).but(done).but(func(f *facts) { f.Pod.Spec.Containers[0].StartupProbe = &corev1.Probe{} }), ops: "Probe H0/0; StartContainer m1/0"},
		{name: "one that backs off does not hold up", facts: both().ended("H0", 1, 1, time.Second).pulled("H0", 2), ops: "StartContainer m1/0", why: "back-off"},
		{name: "one that is due does again", facts: both().ended("H0", 1, 1, 10*time.Second).pulled("H0", 2), ops: "StartContainer H0/2"},
		{name: "one whose image cannot be had does not", facts: about("Hm", always).boxed().pulled("m1", 0).failed(Op{Verb: PullImage, Container: "H0"}, 1, time.Second, reasonErrPull, "no"), ops: "StartContainer m1/0"},
		{name: "nor one that cannot be started", facts: both().failed(Op{Verb: StartContainer, Container: "H0"}, 2, time.Second, reasonCreateError, "no"), ops: "StartContainer m1/0"},
		{name: "nor one that is held", facts: both().ended("H0", 0, 1, time.Second).but(holding("1m")), ops: "StartContainer m1/0"},
		{name: "nor one that has ended for good", facts: about("Hm", never).boxed().ended("H0", 0, 0, time.Second).pulled("m1", 0), ops: "StartContainer m1/0"},
		{name: "nor one that is being stopped", facts: both().runs("H0", 0).calling(Op{Verb: StopContainer, Container: "H0", Until: epoch.Add(time.Hour)}), ops: "StartContainer m1/0; StopContainer H0/0 in 0s"},
		{name: "nor one whose new image has it stopped", facts: both().runs("H0", 0).but(imaged), ops: "PreStop H0/0 in 30s; StartContainer m1/0"},
		{name: "a restarted agent runs the hook again, and waits again", facts: both().runs("H0", 0), ops: "PostStart H0/0"},
		{name: "unless it is stored that the main had started", facts: both().runs("H0", 0).but(done).told().but(func(f *facts) { f.Heard.Done = nil }), ops: "StartContainer m1/0"},
		{name: "those that run already are looked after as ever", facts: about("Hm", always).boxed().pulled("H0", 1).ended("H0", 0, 1, 0).runs("m1", 0), ops: "StartContainer H0/1", status: []string{"m1=running"}},
		{name: "mains without hooks do not wait for one another", facts: about("mmH", always).boxed().pulled("m1", 0).pulled("H2", 0), ops: "PullImage m0/0; StartContainer H2/0; StartContainer m1/0"},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t) })
	}
}

// TestPreStopGoesOn holds that a preStop hook that is under way goes on to the end of its container, also when the time is over
// for which the stop signal waits (PL-18).
func TestPreStopGoesOn(t *testing.T) {
	pre := Op{Verb: PreStop, Container: "H0", Until: epoch.Add(time.Hour)} // which is now
	stop := Op{Verb: StopContainer, Container: "H0", Until: epoch.Add(time.Hour + 2*time.Second)}
	started := func(f *facts) { f.Heard.Done[Key{PostStart, "H0", 0, NoProbe}] = true }
	up := func() *facts { return about("H", always).boxed().runs("H0", 0).but(started) }
	for _, c := range []decided{
		{name: "within the grace the stop signal waits for it", facts: up().calling(pre).deleted(10 * time.Second), ops: "PreStop H0/0 in 20s"},
		{name: "when that is over the container is told to stop beside it", facts: up().calling(pre).deleted(30 * time.Second), ops: "PreStop H0/0 in 0s; StopContainer H0/0 in 2s"},
		{name: "and both go on", facts: up().calling(pre).calling(stop).deleted(31 * time.Second), ops: "PreStop H0/0 in 0s; StopContainer H0/0 in 2s"},
		{name: "it ends with its container", facts: about("H", always).boxed().ended("H0", 0, 137, 0).calling(pre).deleted(31 * time.Second), ops: "StopSandbox 0"},
		{name: "none is begun when the time is over", facts: up().deleted(30 * time.Second), ops: "StopContainer H0/0 in 2s"},
		{name: "of a container that failed too", facts: up().but(func(f *facts) {
			f.Seen.Containers[0].Condemned = Verdict{"failed liveness probe", f.Now}
		}).calling(pre), ops: "PreStop H0/0 in 0s; StopContainer H0/0 in 2s"},
		{name: "and while that is stopped", facts: up().calling(pre).calling(stop), ops: "PreStop H0/0 in 0s; StopContainer H0/0 in 2s"},
		{name: "when the sandbox dies under it", facts: up().calling(pre).but(func(f *facts) { f.Seen.Sandboxes[0].Ready = false }), ops: "PreStop H0/0 in 0s; StopContainer H0/0 in 30s"},
		{name: "without a record of the pod", facts: up().calling(pre).but(func(f *facts) { f.Removed, f.Heard.LeftAt = true, f.Now.Add(-2*time.Second) }),
			ops: "PreStop H0/0 in 0s; StopContainer H0/0 in 2s"},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t) })
	}
}

// TestReadinessGoesOn holds which probes are tried of a container that is being stopped (PL-19), or whose postStart hook has not completed
// (PL-17).
func TestReadinessGoesOn(t *testing.T) {
	probed := func(f *facts) {
		for i := range f.Pod.Spec.Containers {
			f.Pod.Spec.Containers[i].LivenessProbe, f.Pod.Spec.Containers[i].ReadinessProbe = &corev1.Probe{}, &corev1.Probe{}
		}
	}
	failing := func(f *facts) {
		f.Heard.Probes[ProbeKey{"m0", 0, LivenessProbe}] = Probed{Failed: 3, Last: f.Now, Tick: f.Now.Add(-time.Minute), Message: "no"}
	}
	up := func() *facts { return about("m", always).boxed().runs("m0", 0).but(probed) }
	stop := Op{Verb: StopContainer, Container: "m0", Until: epoch.Add(2 * time.Hour)}
	for _, c := range []struct {
		name  string
		facts *facts
		want  []ProbeKind
	}{
		{"all of one that runs", up(), []ProbeKind{ReadinessProbe, LivenessProbe}},
		{"readiness of one that has failed", up().but(failing), []ProbeKind{ReadinessProbe}},
		{"while it is stopped", up().but(failing).calling(stop), []ProbeKind{ReadinessProbe}},
		{"also for another image", up().but(imaged), []ProbeKind{ReadinessProbe}},
		{"and with its pod", up().deleted(0).calling(stop), []ProbeKind{ReadinessProbe}},
		{"none before the startup probe has succeeded", up().but(func(f *facts) {
			f.Pod.Spec.Containers[0].StartupProbe = &corev1.Probe{}
			f.Heard.Probes[ProbeKey{"m0", 0, StartupProbe}] = Probed{Failed: 3, Last: f.Now, Tick: f.Now, Message: "no"}
		}), nil},
		{"none while its postStart hook runs, the startup probe neither", about("H", always).boxed().runs("H0", 0).but(probed).but(func(f *facts) {
			f.Pod.Spec.Containers[0].StartupProbe = &corev1.Probe{}
		}), nil},
		{"all when that is done", about("H", always).boxed().runs("H0", 0).but(probed).but(func(f *facts) {
			f.Heard.Done[Key{PostStart, "H0", 0, NoProbe}] = true
		}), []ProbeKind{ReadinessProbe, LivenessProbe}},
		{"none of one that has ended", about("m", always).boxed().ended("m0", 0, 0, 0).but(probed).calling(stop), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []ProbeKind
			for _, o := range Next(c.facts.Input).Ops {
				if o.Verb == Probe {
					got = append(got, o.Probe)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("tries %v, want %v", got, c.want)
			}
		})
	}
}
