// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func disrupted(s *corev1.PodStatus) bool {
	c := find(s.Conditions, corev1.DisruptionTarget)
	return c != nil && c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonTerminationByKubelet && c.Message == s.Message
}

// TestEviction proves PL-13 and EC-18 in the planner: an evicted pod stops within the grace it was given, whatever its policy, ends
// as Failed with reason, message and condition, and goes on to do so if the agent dies in between.
func TestEviction(t *testing.T) {
	f := about("mm", corev1.RestartPolicyAlways).boxed().runs("m0", 0).ended("m1", 0, 1, time.Minute)
	f.Pod.Status.Phase = corev1.PodRunning
	f.Evicted = &Eviction{Message: "The node was low on resource: memory.", At: f.Now, Grace: time.Second}
	d := Next(f.Input)
	if len(d.Ops) != 1 || d.Ops[0].Verb != StopContainer || d.Ops[0].Container != "m0" {
		t.Fatalf("ops %+v", d.Ops)
	}
	if s := d.Status; s.Phase != corev1.PodRunning || s.Reason != "Evicted" || s.Message != f.Evicted.Message || !disrupted(&s) {
		t.Errorf("while it stops: %s %s %s %+v", s.Phase, s.Reason, s.Message, s.Conditions)
	}
	if !slices.ContainsFunc(d.Why, func(r Reason) bool { return r.Event != nil && r.Event.Reason == "Evicted" && r.Event.Warning }) {
		t.Errorf("no event: %+v", d.Why)
	}

	f.Evicted, f.Pod.Status = nil, d.Status // the agent dies
	f.Now = f.Now.Add(time.Minute)
	d = Next(f.Input)
	if len(d.Ops) != 1 || d.Ops[0].Verb != StopContainer || !d.Ops[0].Until.Equal(f.Now.Add(lastWords)) {
		t.Errorf("after a restart of the agent: ops %+v", d.Ops)
	}
	f.Pod.Status = d.Status
	f.Seen.Containers[0].FinishedAt = f.Now
	d = Next(f.Input)
	if s := d.Status; s.Phase != corev1.PodFailed || s.Reason != "Evicted" || s.Message == "" || !disrupted(&s) {
		t.Errorf("at the end: %s %s %q %+v", s.Phase, s.Reason, s.Message, s.Conditions)
	}
	for _, op := range d.Ops {
		if op.Verb == StartContainer || op.Verb == PullImage {
			t.Errorf("%v after the eviction", op.Verb)
		}
	}
}

// TestEvictionGrace: a pod's own grace bounds that of its eviction (PL-13).
func TestEvictionGrace(t *testing.T) {
	f := about("m", corev1.RestartPolicyNever).boxed().runs("m0", 0)
	f.Pod.Spec.TerminationGracePeriodSeconds = new(int64(5))
	f.Evicted = &Eviction{Message: "low", At: f.Now, Grace: time.Hour}
	d := Next(f.Input)
	if len(d.Ops) != 1 || !d.Ops[0].Until.Equal(f.Now.Add(5*time.Second)) {
		t.Errorf("ops %+v", d.Ops)
	}
}

// TestEvictionTooLate (PL-13): what has ended by itself, or is being deleted, is not evicted.
func TestEvictionTooLate(t *testing.T) {
	f := about("m", corev1.RestartPolicyNever).boxed().ended("m0", 0, 0, time.Minute)
	f.Pod.Status.Phase = corev1.PodSucceeded
	f.Evicted = &Eviction{Message: "low", At: f.Now, Grace: time.Second}
	if s := Next(f.Input).Status; s.Phase != corev1.PodSucceeded || s.Reason != "" || find(s.Conditions, corev1.DisruptionTarget) != nil {
		t.Errorf("%s %s %+v", s.Phase, s.Reason, s.Conditions)
	}
}

// TestClear proves PL-13: what an ended pod has left in the runtime goes while the disk is full, its status and logs stay; not what
// somebody looks at (IX-09).
func TestClear(t *testing.T) {
	ended := func(change func(*facts)) []Op {
		f := about("m", corev1.RestartPolicyNever).boxed().ended("m0", 0, 3, time.Minute)
		f.Seen.Sandboxes[0].Ready, f.Seen.Volumes, f.Heard.Stopped = false, false, map[uint32]bool{0: true}
		f.Pod.Status = Next(f.Input).Status
		f.Saved = true
		change(f)
		d := Next(f.Input)
		if d.Status.Phase != corev1.PodFailed || d.Status.ContainerStatuses[0].State.Terminated.ExitCode != 3 {
			t.Errorf("status %+v", d.Status)
		}
		return d.Ops
	}
	for _, row := range []struct {
		what   string
		change func(*facts)
		want   []Op
	}{
		{"there is room", func(*facts) {}, nil},
		{"the disk is full", func(f *facts) { f.Node.Full = true }, []Op{{Verb: RemoveSandbox}}},
		{"and the sandbox is gone", func(f *facts) { f.Node.Full, f.Seen.Sandboxes = true, nil }, []Op{{Verb: RemoveContainer, Container: "m0"}}},
		{"and all is", func(f *facts) { f.Node.Full, f.Seen.Sandboxes, f.Seen.Containers = true, nil, nil }, nil},
		{"its end is not stored", func(f *facts) { f.Node.Full, f.Saved = true, false }, nil},
		{"somebody looks", func(f *facts) { f.Node.Full, f.Seen.Containers[0].Held = true, true }, nil},
	} {
		if got := ended(row.change); !slices.Equal(got, row.want) {
			t.Errorf("%s: %+v, want %+v", row.what, got, row.want)
		}
	}
}

// TestHeldIsNotRemoved proves IX-09: the files of a container that somebody looks at by image exec stay when it is started again and
// again; of the others only the last that has ended does.
func TestHeldIsNotRemoved(t *testing.T) {
	f := about("m", corev1.RestartPolicyAlways).boxed().ended("m0", 0, 1, 3*time.Minute).ended("m0", 1, 1, 2*time.Minute).ended("m0", 2, 1, time.Minute).runs("m0", 3)
	f.Seen.Containers[0].Held = true
	d := Next(f.Input)
	if len(d.Ops) != 1 || d.Ops[0].Verb != RemoveContainer || d.Ops[0].Attempt != 1 {
		t.Errorf("ops %+v", d.Ops)
	}
}

// TestPreempted: a pod that makes room for a critical one ends as an evicted one does, with Kubernetes' reason, also if the agent dies in
// between (PL-20).
func TestPreempted(t *testing.T) {
	f := about("m", corev1.RestartPolicyAlways).boxed().runs("m0", 0)
	f.Pod.Status.Phase = corev1.PodRunning
	f.Evicted = &Eviction{Reason: ReasonPreempting, Message: "Preempted", At: f.Now, Grace: time.Second}
	d := Next(f.Input)
	if s := d.Status; len(d.Ops) != 1 || d.Ops[0].Verb != StopContainer || s.Reason != "Preempting" || !disrupted(&s) {
		t.Errorf("while it stops: ops %+v, %s, %+v", d.Ops, s.Reason, s.Conditions)
	}
	if !slices.ContainsFunc(d.Why, func(r Reason) bool { return r.Event != nil && r.Event.Reason == "Preempting" && r.Event.Warning }) {
		t.Errorf("no event: %+v", d.Why)
	}
	f.Evicted, f.Pod.Status = nil, d.Status // the agent dies
	f.Seen.Containers[0].FinishedAt = f.Now
	if s := Next(f.Input).Status; s.Phase != corev1.PodFailed || s.Reason != "Preempting" || s.Message != "Preempted" || !disrupted(&s) {
		t.Errorf("at the end: %s %s %q %+v", s.Phase, s.Reason, s.Message, s.Conditions)
	}
}
