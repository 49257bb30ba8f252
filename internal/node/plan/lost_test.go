// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestLostSight holds what becomes of a pod when the runtime cannot tell what became of a container of it, and its sandbox is gone
// too (SC-19, PL-02).
func TestLostSight(t *testing.T) {
	lost := func(f *facts) { // as the runtime shows one whose record is gone: it knows of no time
		c := &f.Seen.Containers[len(f.Seen.Containers)-1]
		c.Lost, c.CreatedAt, c.StartedAt = true, time.Time{}, time.Time{}
	}
	over := func(f *facts) { // and when it was stopped: it still knows of no start
		lost(f)
		c := &f.Seen.Containers[len(f.Seen.Containers)-1]
		c.Lost, c.FinishedAt, c.ExitCode, c.Reason = false, f.Now, 255, "Unknown"
	}
	died := func(f *facts) { f.Seen.Sandboxes[0].Ready, f.Heard.Stopped[0] = false, true }
	stored := func(f *facts) { f.Pod.Status = Next(f.Input).Status }
	created := func(f *facts) { f.container("m0", 1) }
	first := func(f *facts) { f.Seen.Containers = f.Seen.Containers[1:] } // it was removed
	moved := func(f *facts) { f.boxed().Seen.Sandboxes[1].CreatedAt = f.Now }
	for _, c := range []decided{
		{name: "it is stopped, by way of caution, before a new sandbox is made", facts: about("m", always).boxed().runs("m0", 0).but(stored).but(lost).but(died),
			ops: "StopContainer m0/0 in 30s", why: "the pod's sandbox has died"},
		{name: "then the pod starts anew", facts: about("m", always).boxed().runs("m0", 0).but(stored).but(over).but(died),
			ops: "PullImage m0/1; RunSandbox 1", status: []string{"m0=ContainerCreating", "m0.last=exit137(ContainerStatusUnknown)"}},
		{name: "what the old sandbox left is removed first, also if its number is higher than the next",
			facts: about("m", always).boxed().runs("m0", 0).but(over).but(stored).but(created).but(died).but(moved).but(first).pulled("m0", 0), ops: "RemoveContainer m0/1",
			why: "what is left of an attempt that never ran"},
		{name: "a pod that is told to have ended starts no sidecar again, though a main is found running", facts: about("sm", always).boxed().ended("s0", 0, 1, 0).runs("m1", 0).but(func(f *facts) {
			f.Pod.Status.Phase = corev1.PodFailed
		}), ops: "StopContainer m1/0 in 30s", status: []string{"Failed"}},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t) })
	}
}

// TestNeverBegan: a container that was stopped before it began, by a deletion or an eviction, ends without times; one that could not
// be started, or had begun, has them (PL-01).
func TestNeverBegan(t *testing.T) {
	never := func(f *facts) { f.Seen.Containers[0].StartedAt = time.Time{} }
	for name, c := range map[string]struct {
		facts           *facts
		began, finished bool
	}{
		"stopped before it began": {about("m", corev1.RestartPolicyNever).boxed().ended("m0", 0, 137, 0).but(never).deleted(0), false, false},
		"evicted before it began": {about("m", corev1.RestartPolicyNever).boxed().ended("m0", 0, 137, 0).but(never).but(func(f *facts) {
			f.Evicted = &Eviction{At: f.Now}
		}), false, false},
		"could not be started": {about("m", corev1.RestartPolicyNever).boxed().ended("m0", 0, 128, 0).but(never), false, true},
		"had begun":            {about("m", corev1.RestartPolicyNever).boxed().ended("m0", 0, 137, 0).deleted(0), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			end := Next(c.facts.Input).Status.ContainerStatuses[0].State.Terminated
			if end == nil || !end.StartedAt.IsZero() != c.began || !end.FinishedAt.IsZero() != c.finished {
				t.Errorf("it is told as %v", end)
			}
		})
	}
}
