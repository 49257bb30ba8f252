// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/node/allot"
)

// sizedTo sets amounts of CPU aside for the mains of a pod.
func (f *facts) sizedTo(milli ...int64) *facts {
	p := f.Pod.DeepCopy()
	for i, m := range milli {
		list := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(m, resource.DecimalSI)}
		p.Spec.Containers[i].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	}
	f.Pod = p
	return f
}

// fitting has everything given what is set aside.
func (f *facts) fitting() *facts {
	group := allot.Pod(f.Pod)
	f.Seen.Group = &group
	for i := range f.Seen.Containers {
		c := &f.Seen.Containers[i]
		for j := range f.Pod.Spec.Containers {
			if spec := &f.Pod.Spec.Containers[j]; spec.Name == c.Name {
				size, give := allot.SizeOf(f.Pod, spec), allot.Container(f.Pod, spec)
				c.Made, c.Given = &size, &give
			}
		}
	}
	return f
}

// unbound has the first main have CPUs to itself.
func (f *facts) unbound() *facts {
	f.Seen.Unbound, f.Seen.UnboundPod = map[string]bool{f.Pod.Spec.Containers[0].Name: true}, true
	return f
}

// TestResize proves PL-14, and PL-33 where somebody has CPUs to himself: what is wanted of a resize, in which order, and what is told of it.
func TestResize(t *testing.T) {
	up := func(letters string, milli ...int64) *facts {
		f := about(letters, corev1.RestartPolicyOnFailure).boxed().sizedTo(milli...)
		for _, c := range f.Pod.Spec.Containers {
			f.runs(c.Name, 0)
		}
		return f.fitting().told()
	}
	tight := corev1.PodReasonDeferred
	for name, row := range map[string]struct {
		f              *facts
		ops, condition string // of the condition InProgress: its reason, "" for none, "-" for no reason
		reason, event  string
		pending        string
	}{
		"nothing to do":         {f: up("n", 100)},
		"the pod grows first":   {f: up("n", 100).sizedTo(200), ops: "ResizePod", condition: "-", event: "ResizeStarted"},
		"then what is in it":    {f: up("n", 100).sizedTo(200).told().but(func(f *facts) { g := allot.Pod(f.Pod); f.Seen.Group = &g }), ops: "ResizeContainer n0/0", condition: "-", reason: "is being resized"},
		"what shrinks is first": {f: up("nn", 200, 100).sizedTo(100, 200), ops: "ResizeContainer n0/0", condition: "-", reason: "is resized when others have become smaller"},
		"the pod shrinks last": {f: up("n", 200).sizedTo(100).told().but(func(f *facts) {
			give := allot.Container(f.Pod, &f.Pod.Spec.Containers[0])
			f.Seen.Containers[0].Given = &give
		}), ops: "ResizePod", condition: "-"},
		"it is told that it is done": {f: up("n", 200).sizedTo(100).told().fitting(), event: "ResizeCompleted"},
		"a restart": {f: up("r", 200).sizedTo(100), ops: "StopContainer r0/0", condition: "-", event: "Killing",
			reason: "stops because its resize policy asks for a restart"},
		"a restart waits for the pod": {f: up("r", 100).sizedTo(200), ops: "ResizePod", condition: "-",
			reason: "is started again for its new size when the pod's cgroup has grown"},
		"a failure": {f: up("n", 200).sizedTo(100).failed(Op{Verb: ResizeContainer, Container: "n0"}, 1, 0, "", "memory limit (1) below current usage (2)"),
			condition: corev1.PodReasonError, event: "ResizeError"},
		"a start waits for the pod": {f: about("n", corev1.RestartPolicyAlways).boxed().sizedTo(100).fitting().pulled("n0", 0).sizedTo(200), ops: "ResizePod",
			condition: "-", reason: "waits for the pod's cgroup to grow"},
		"what was told is believed": {f: up("n", 200).sizedTo(100).told().but(func(f *facts) {
			c := &f.Pod.Spec.Containers[0]
			f.Heard.Given = map[Key]allot.Amounts{{Verb: ResizeContainer, Container: "n0"}: allot.Container(f.Pod, c), {Verb: ResizePod}: allot.Pod(f.Pod)}
		}), event: "ResizeCompleted"},
		"CPUs of its own": {f: up("n", 1000).unbound().but(func(f *facts) {
			group, give := f.Seen.Group.Unbound(), f.Seen.Containers[0].Given.Unbound()
			f.Seen.Group, f.Seen.Containers[0].Given, f.Seen.Containers[0].Made.Unbound = &group, &give, true
		})},
		"CPUs of its own, as it was made": {f: up("n", 1000).unbound().but(func(f *facts) {
			f.Seen.Group, f.Seen.Containers[0].Given, f.Seen.Containers[0].Made.Unbound = nil, nil, true
		})},
		"CPUs of its own from now on": {f: up("n", 1000).unbound(), ops: "ResizePod", condition: "-"},
		"CPUs of its own taken back": {f: up("n", 1000).but(func(f *facts) {
			give := f.Seen.Containers[0].Given.Unbound()
			f.Seen.Containers[0].Given = &give
		}), ops: "ResizeContainer n0/0", condition: "-"},
		"put off": {f: up("n", 100).but(func(f *facts) { f.Resize = &Resize{Reason: tight, Message: "no room"} }), pending: tight},
	} {
		t.Run(name, func(t *testing.T) {
			d := Next(row.f.Input)
			var ops []string
			for _, o := range d.Ops {
				if o.Verb != PullImage {
					ops = append(ops, strings.TrimSpace(o.Verb.String()+" "+opName(o)))
				}
			}
			if got := strings.Join(ops, ", "); got != row.ops {
				t.Errorf("wants %q, not %q", got, row.ops)
			}
			got := ""
			if c := find(d.Status.Conditions, corev1.PodResizeInProgress); c != nil {
				if got = c.Reason; got == "" {
					got = "-"
				}
			}
			if got != row.condition {
				t.Errorf("in progress: %q, want %q", got, row.condition)
			}
			pending := ""
			if c := find(d.Status.Conditions, corev1.PodResizePending); c != nil {
				pending = c.Reason
			}
			if pending != row.pending {
				t.Errorf("pending: %q, want %q", pending, row.pending)
			}
			var events, reasons []string
			for _, w := range d.Why {
				reasons = append(reasons, w.Text)
				if w.Event != nil {
					events = append(events, w.Event.Reason)
				}
			}
			if row.event != "" && !strings.Contains(strings.Join(events, " "), row.event) || row.event == "" && row.condition == "" && len(events) > 0 {
				t.Errorf("tells %v, want %q", events, row.event)
			}
			if !strings.Contains(strings.Join(reasons, "; "), row.reason) {
				t.Errorf("because %q, want %q", reasons, row.reason)
			}
		})
	}
}

func opName(o Op) string {
	if o.Container == "" {
		return ""
	}
	return o.Container + "/0"
}

// TestResizedByRestart proves PL-14: an attempt that was stopped for its size is followed by another at once, though its exit code is 0 in
// a pod that restarts what fails; one that came to its own end is not.
func TestResizedByRestart(t *testing.T) {
	for _, stopped := range []bool{true, false} {
		f := about("r", corev1.RestartPolicyOnFailure).boxed().sizedTo(200).ended("r0", 0, 0, time.Second).fitting().pulled("r0", 1).sizedTo(100)
		if stopped {
			f.Seen.Containers[0].Condemned = Verdict{"is to have another size", f.Now}
		}
		d := Next(f.Input)
		starts := false
		for _, o := range d.Ops {
			starts = starts || o.Verb == StartContainer && o.Attempt == 1
		}
		if starts != stopped {
			t.Errorf("stopped for its size: %v, started again: %v", stopped, starts)
		}
	}
}
