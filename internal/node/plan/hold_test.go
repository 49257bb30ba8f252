// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// holding gives the pod the annotation.
func holding(d string) func(*facts) {
	return func(f *facts) { f.Pod.Annotations = map[string]string{podspec.HoldAnnotation: d} }
}

// TestHoldOnFailure holds what the annotation wherry.dev/hold-on-failure does, for the sake of whom IX-09 is for: those who want
// to look at what failed.
func TestHoldOnFailure(t *testing.T) {
	const until = "held for debugging until 2026-01-02T04:13:05Z by annotation wherry.dev/hold-on-failure"
	const event = "HeldOnFailure[m0] Container m0 failed with exit code 3 and is " + until
	failed := func(policy corev1.RestartPolicy) *facts {
		return about("m", policy).boxed().ended("m0", 0, 3, time.Minute).pulled("m0", 1)
	}
	told := func(f *facts) { f.told() }
	debug := debugging("", podspec.DebugRun{})
	for _, c := range []struct {
		name   string
		facts  *facts
		ops    string
		status []string // see shown
		wake   time.Duration
		events string
	}{
		{name: "a main that failed is not started again", facts: failed(always).but(holding("10m")),
			status: []string{"Running", "m0=HeldOnFailure", "m0:" + until, "m0.last=exit3(Error)", "m0.restarts=0"}, wake: 9 * time.Minute, events: event},
		{name: "until the time is over", facts: failed(always).but(holding("1m")), ops: "StartContainer m0/1", status: []string{"Running", "m0=exit3(Error)"}},
		{name: "or the annotation is gone", facts: failed(always).but(holding("10m")).but(told).but(func(f *facts) { f.Pod.Annotations = nil }),
			ops: "StartContainer m0/1", status: []string{"Running", "m0=exit3(Error)"}},
		{name: "or the feature is off", facts: failed(always).but(holding("10m")).but(told).but(func(f *facts) { f.Node.NoHold = true }),
			ops: "StartContainer m0/1", status: []string{"Running", "m0=exit3(Error)"}},
		{name: "or shortened", facts: failed(always).but(holding("10m")).but(told).but(holding("30s")), ops: "StartContainer m0/1"},
		{name: "or another image is set", facts: failed(always).but(holding("10m")).but(func(f *facts) { f.Pod.Spec.Containers[0].Image = "img2" }), ops: "PullImage m0/1"},
		{name: "a success is not held", facts: about("m", always).boxed().ended("m0", 0, 0, time.Minute).pulled("m0", 1).but(holding("10m")), ops: "StartContainer m0/1"},
		{name: "what failed before its sandbox died is not held", facts: about("m", always).boxed().ended("m0", 0, 3, time.Minute).boxed().pulled("m0", 1).but(holding("10m")), ops: "StartContainer m0/1"},
		{name: "when the clock was set back nobody knows how long it has been held", facts: about("m", always).boxed().ended("m0", 0, 3, -time.Hour).pulled("m0", 1).but(holding("10m")), ops: "StartContainer m0/1"},
		{name: "it is held after a restart of the agent too", facts: failed(always).but(holding("10m")).but(told).but(func(f *facts) { f.Heard = Heard{Prepared: true} }),
			status: []string{"m0=HeldOnFailure", "m0:" + until}, wake: 9 * time.Minute, events: event},
		{name: "a pod that never restarts does not fail meanwhile: its sandbox stays", facts: failed(never).but(holding("10m")),
			status: []string{"Running", "reason=HeldOnFailure", "m0=exit3(Error)"}, wake: 9 * time.Minute, events: event},
		{name: "and fails when the hold is over", facts: failed(never).but(holding("10m")).but(told).but(func(f *facts) { f.Now = f.Now.Add(9 * time.Minute) }),
			ops: "StopSandbox 0", status: []string{"Failed", "m0=exit3(Error)"}},
		{name: "one main failed, the other has ended well since", facts: about("mm", never).boxed().ended("m0", 0, 3, time.Minute).ended("m1", 0, 0, 0).but(holding("10m")),
			status: []string{"Running", "reason=HeldOnFailure", "m0=exit3(Error)", "m1=exit0(Completed)"}, wake: 9 * time.Minute, events: event},
		{name: "its sidecars stay up", facts: about("ms", never).boxed().ended("m0", 0, 3, time.Minute).runs("s1", 0).but(holding("10m")),
			status: []string{"Running", "s1=running"}, wake: 9 * time.Minute, events: event},
		{name: "and have their grace when the hold is over", facts: about("ms", never).boxed().ended("m0", 0, 3, time.Hour).runs("s1", 0).but(holding("1h")),
			ops: "StopContainer s1/0 in 30s", events: "Killing[s1] Stopping container s1"},
		{name: "a failed init is held, and the pod with it", facts: about("im", never).boxed().ended("i0", 0, 3, time.Minute).but(holding("10m")),
			status: []string{"Pending", "reason=HeldOnFailure", "i0=exit3(Error)"}, wake: 9 * time.Minute, events: "HeldOnFailure[i0] Container i0 failed with exit code 3 and is " + until},
		{name: "also where it would be tried again", facts: about("im", always).boxed().ended("i0", 2, 3, time.Minute).but(holding("10m")),
			status: []string{"Pending", "i0=HeldOnFailure", "i0:" + until}, wake: 9 * time.Minute, events: "HeldOnFailure[i0] Container i0 failed with exit code 3 and is " + until},
		{name: "a sidecar is held while the main runs", facts: about("sm", always).boxed().ended("s0", 0, 3, time.Minute).runs("m1", 0).but(holding("10m")),
			status: []string{"Running", "s0=HeldOnFailure", "m1=running"}, wake: 9 * time.Minute, events: "HeldOnFailure[s0] Container s0 failed with exit code 3 and is " + until},
		{name: "a sidecar that is held does not hold up completion", facts: about("sm", never).boxed().ended("s0", 0, 3, time.Minute).ended("m1", 0, 0, 0).but(holding("10m")),
			ops: "StopSandbox 0", status: []string{"Succeeded"}},
		{name: "debug containers start in a pod that is held", facts: failed(never).pulled("d", 0).but(debug).but(holding("10m")),
			ops: "StartContainer d/0", wake: 9 * time.Minute, events: event},
		{name: "and are not held themselves", facts: about("m", always).boxed().runs("m0", 0).ended("d", 0, 1, time.Minute).but(debug).but(holding("10m"))},
		{name: "a deletion ends the hold", facts: failed(never).but(holding("10m")).but(told).deleted(0), ops: "StopSandbox 0", status: []string{"Failed", "m0=exit3(Error)"}},
		{name: "a deadline too", facts: failed(never).but(holding("10m")).but(told).but(func(f *facts) { f.deadline(60) }), ops: "StopSandbox 0", status: []string{"Failed", "reason=DeadlineExceeded"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Next(c.facts.Input)
			if got := opsOf(d, c.facts.Now); got != c.ops {
				t.Errorf("wants %q, not %q", got, c.ops)
			}
			all := shown(&d.Status)
			for _, w := range c.status {
				if !slices.Contains(all, w) {
					t.Errorf("status lacks %s: %q", w, all)
				}
			}
			if d.Status.Phase == corev1.PodFailed && d.Status.Reason == reasonHeld {
				t.Error("the hold is over, and the status still gives it as the reason")
			}
			if got := d.Wake.Sub(c.facts.Now); c.wake != 0 && got != c.wake {
				t.Errorf("wakes after %v, want %v", got, c.wake)
			}
			if got := eventsOf(d); got != c.events {
				t.Errorf("tells\n%s\nwant\n%s", got, c.events)
			}
		})
	}
}
