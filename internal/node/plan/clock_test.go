// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// clock sets the node's clock by d, forward or back. What an agent that lives on has heard goes on evenly, and so moves along;
// what the runtime and the stored status say was read from the clock before.
func (f *facts) clock(d time.Duration) *facts {
	f.Now = f.Now.Add(d)
	h := &f.Heard
	h.Failed, h.Probes = maps.Clone(h.Failed), maps.Clone(h.Probes)
	for k, x := range h.Failed {
		x.At = x.At.Add(d)
		h.Failed[k] = x
	}
	for k, x := range h.Probes {
		x.Last, x.Tick = x.Last.Add(d), x.Tick.Add(d)
		h.Probes[k] = x
	}
	if !h.LeftAt.IsZero() { // a Time of Go holds both clocks; here the deletion keeps its distance from LeftAt instead
		h.LeftAt = h.LeftAt.Add(d)
		f.Pod.DeletionTimestamp = &metav1.Time{Time: f.Pod.DeletionTimestamp.Add(d)}
	}
	return f
}

// amnesia is the death of the agent under which the clock was set by d: what it has heard is gone, and its calls are.
func (f *facts) amnesia(d time.Duration) *facts {
	f.Heard, f.Calls = Heard{Prepared: true, Pulled: f.Heard.Pulled}, nil
	if f.Pod.DeletionTimestamp != nil {
		f.Heard.LeftAt = f.Now
		f.Pod.DeletionTimestamp = &metav1.Time{Time: f.Pod.DeletionTimestamp.Add(-d)}
	}
	return f
}

// probing gives a container a liveness probe with a period of ten seconds that was tried some time ago and said yes.
func (f *facts) probing(name string, ago time.Duration) *facts {
	for i := range f.Pod.Spec.Containers {
		if c := &f.Pod.Spec.Containers[i]; c.Name == name {
			c.LivenessProbe = &corev1.Probe{PeriodSeconds: 10, InitialDelaySeconds: 5}
		}
	}
	if ago > 0 {
		f.Heard.Probes[ProbeKey{name, 0, LivenessProbe}] = Probed{Last: f.Now.Add(-ago), Tick: f.Now.Add(-ago), Passed: 1}
	}
	return f
}

// TestClockJumps sets the clock an hour forward and an hour back under pods in every part of their lives, with the agent living
// on and with one that starts anew. Nothing that runs is stopped or started twice, nothing completed runs again (SC-19), and
// nothing that is due waits for the clock to come round again (PL-02, PL-04, PL-10).
// ATTACK C34.
func TestClockJumps(t *testing.T) {
	for _, c := range []struct {
		name  string
		facts func() *facts
		ops   map[string]string // by kind of jump; "" for all the others
	}{
		{"all runs", func() *facts {
			return about("ism", always).boxed().ended("i0", 0, 0, 3*time.Minute).runs("s1", 0).runs("m2", 0).told()
		}, nil},
		{"a main with a probe that is not due", func() *facts { return about("m", always).boxed().runs("m0", 0).probing("m0", 4*time.Second).told() },
			map[string]string{"forward, new agent": "Probe m0/0", "back, new agent": "Probe m0/0"}}, // as a new agent does at any time
		{"a main with a probe that was never tried", func() *facts { return about("m", always).boxed().runs("m0", 0).probing("m0", 0) },
			map[string]string{"": "Probe m0/0"}},
		{"an init has completed, the main is not begun", func() *facts {
			return about("im", always).boxed().ended("i0", 0, 0, time.Second).pulled("m1", 0)
		}, map[string]string{"": "StartContainer m1/0"}},
		{"an init has completed and the runtime has lost it, its sandbox not", func() *facts {
			f := about("im", always).boxed().ended("i0", 0, 0, time.Second).pulled("m1", 0).told()
			f.Seen.Containers = nil
			return f.pulled("i0", 1)
		}, map[string]string{"forward": "StartContainer m1/0", "forward, new agent": "StartContainer m1/0",
			"back": "StartContainer i0/1", "back, new agent": "StartContainer i0/1"}}, // it may have been a reboot: order before economy
		{"a main is in back-off", func() *facts {
			return about("m", always).boxed().ended("m0", 3, 1, 5*time.Second).pulled("m0", 4).told()
		}, map[string]string{"": "StartContainer m0/4"}},
		{"a main has ended for good, a sidecar is stopping", func() *facts {
			return about("sm", never).boxed().runs("s0", 0).ended("m1", 0, 0, 2*time.Second).
				calling(Op{Verb: StopContainer, Container: "s0", Until: epoch.Add(time.Hour + 28*time.Second)})
		}, map[string]string{"back": "StopContainer s0/0 in 30s", "back, new agent": "StopContainer s0/0 in 30s", // which brings no call forward
			"forward": "StopContainer s0/0 in -59m32s", "forward, new agent": "StopContainer s0/0 in 2s"}}, // the call's own time
		{"a pod is being deleted", func() *facts {
			return about("sm", always).boxed().runs("s0", 0).runs("m1", 0).deleted(10 * time.Second)
		}, map[string]string{"": "StopContainer m1/0 in 20s", "back, new agent": "StopContainer m1/0 in 30s", // it has no more to go by
			"forward, new agent": "StopContainer m1/0 in 2s; StopContainer s0/0 in 2s"}},
		{"a pull has failed", func() *facts {
			return about("m", always).boxed().failed(Op{Verb: PullImage, Container: "m0"}, 1, 5*time.Second, reasonErrPull, "no")
		}, map[string]string{"forward, new agent": "PullImage m0/0", "back, new agent": "PullImage m0/0"}},
	} {
		for _, jump := range []struct {
			name string
			by   time.Duration
		}{{"forward", time.Hour}, {"back", -time.Hour}} {
			for _, agent := range []string{"", ", new agent"} {
				name := jump.name + agent
				t.Run(c.name+"/"+name, func(t *testing.T) {
					f := c.facts().clock(jump.by)
					if agent != "" {
						f.amnesia(jump.by)
					}
					want, ok := c.ops[name]
					if !ok {
						want = c.ops[""]
					}
					d := Next(f.Input)
					if got := opsOf(d, f.Now); got != want {
						t.Errorf("does %q, want %q", got, want)
					}
					if limit := f.Now.Add(5 * time.Minute); d.Wake.After(limit) {
						t.Errorf("waits for %v", d.Wake.Sub(f.Now))
					}
				})
			}
		}
	}
}

// TestClockBackWhileRebooting: the node's clock was an hour ahead when the pod's init completed, and is right after the reboot. The
// new sandbox seems to be older than the init's end, and still its order is kept from the start (SC-19).
// ATTACK C34.
func TestClockBackWhileRebooting(t *testing.T) {
	f := about("im", always).boxed().ended("i0", 0, 0, time.Minute).runs("m1", 0).told()
	f.Seen.Containers = nil
	f.clock(-time.Hour).Seen.Sandboxes[0].CreatedAt = f.Now.Add(-time.Second)
	f.pulled("i0", 1).pulled("m1", 1)
	if got := opsOf(Next(f.Input), f.Now); got != "StartContainer i0/1" {
		t.Errorf("does %q, want the init first", got)
	}
}
