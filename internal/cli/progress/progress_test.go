// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func at(seconds int) metav1.Time {
	return metav1.NewTime(start.Add(time.Duration(seconds) * time.Second))
}

func pod(edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "fetch"}},
		Containers:     []corev1.Container{{Name: "a"}, {Name: "b"}},
	}}
	for _, e := range edits {
		e(p)
	}
	return p
}

func main_(name string, s corev1.ContainerState, restarts int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, State: s, RestartCount: restarts})
	}
}

func init_(name string, s corev1.ContainerState) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{Name: name, State: s})
	}
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func running(sec int) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(sec)}}
}

func exited(code int32, from, to int) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, StartedAt: at(from), FinishedAt: at(to)}}
}

func phase(ph corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = ph } }

func cond(kind corev1.PodConditionType, s corev1.ConditionStatus, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: s, Reason: reason, Message: message})
	}
}

// PL-15: what a pod waits for is told in words, once, and in order.
func TestDiff(t *testing.T) {
	node := func(p *corev1.Pod) { p.Spec.NodeName = "n1" }
	ip := func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.5" }
	gone := func(p *corev1.Pod) { now := at(9); p.DeletionTimestamp = &now }
	oom := exited(137, 1, 3)
	oom.Terminated.Reason = "OOMKilled"
	const runc = "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: "
	wrong := exited(128, 0, 0)
	wrong.Terminated.Reason, wrong.Terminated.Message = "StartError", runc+`error during container init: exec: "x": not found: unknown`
	crashed := func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", State: running(9), LastTerminationState: exited(3, 1, 2), RestartCount: 1}}
	}
	cases := map[string]struct {
		old, new *corev1.Pod
		want     string
	}{
		"nothing new":        {pod(node), pod(node), ""},
		"scheduled":          {nil, pod(node), "scheduled to node n1"},
		"unschedulable":      {pod(), pod(cond("PodScheduled", "False", "Unschedulable", "0/1 nodes: too little cpu")), "waiting for a node: 0/1 nodes: too little cpu"},
		"unschedulable once": {pod(cond("PodScheduled", "False", "", "m")), pod(cond("PodScheduled", "False", "", "m")), ""},
		"sandbox":            {pod(), pod(cond("PodReadyToStartContainers", "True", "", ""), ip), "sandbox is up, address 10.0.0.5"},
		"creating is quiet":  {pod(), pod(init_("fetch", waiting("PodInitializing", "")), main_("a", waiting("ContainerCreating", ""), 0)), ""},
		"PL-15 no volume": {pod(), pod(init_("fetch", waiting("PodInitializing", "secret s not found")), main_("a", waiting("PodInitializing", "secret s not found"), 0)),
			"cannot start yet: secret s not found"},
		"no volume, still":   {pod(main_("a", waiting("ContainerCreating", "m"), 0)), pod(main_("a", waiting("ContainerCreating", "m"), 0)), ""},
		"image error":        {pod(), pod(main_("a", waiting("ErrImagePull", "no such image"), 0)), "a: ErrImagePull: no such image"},
		"the same error":     {pod(main_("a", waiting("ErrImagePull", "x"), 0)), pod(main_("a", waiting("ErrImagePull", "x"), 0)), ""},
		"init done":          {pod(init_("fetch", running(0))), pod(init_("fetch", exited(0, 0, 2))), "fetch: completed after 2s"},
		"init then main":     {pod(), pod(main_("a", running(3), 0), init_("fetch", exited(0, 2, 2))), "fetch: completed|a: started"},
		"failed":             {pod(main_("a", running(0), 0)), pod(main_("a", exited(3, 0, 5), 0)), "a: failed with exit code 3 after 5s"},
		"out of memory":      {pod(main_("a", running(0), 0)), pod(main_("a", oom, 0)), "a: killed because it used more memory than its limit (OOMKilled, exit code 137) after 2s"},
		"not startable":      {pod(), pod(main_("a", wrong, 0)), `a: could not be started (exit code 128): exec: "x": not found`},
		"not startable yet":  {pod(), pod(main_("a", waiting("RunContainerError", runc+"no room"), 0)), "a: RunContainerError: no room"},
		"restart unseen end": {pod(main_("a", running(1), 0)), pod(crashed), "a: failed with exit code 3|a: restarted (restart 1)"},
		"restart":            {pod(main_("a", exited(1, 0, 1), 0)), pod(main_("a", running(2), 1)), "a: restarted (restart 1)"},
		"ready":              {pod(), pod(cond("Ready", "True", "", ""), ip), "ready, address 10.0.0.5"},
		"reason":             {pod(), pod(func(p *corev1.Pod) { p.Status.Reason = "Evicted"; p.Status.Message = "disk" }), "Evicted: disk"},
		"deletion":           {pod(), pod(gone), "is being deleted"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, l := range Diff(c.old, c.new) {
				if l.Container != "" {
					l.Text = l.Container + ": " + l.Text
				}
				got = append(got, l.Text)
			}
			if s := strings.Join(got, "|"); s != c.want {
				t.Errorf("got  %q\nwant %q", s, c.want)
			}
		})
	}
}

func TestOutcome(t *testing.T) {
	failed := phase(corev1.PodFailed)
	cases := map[string]struct {
		pod   *corev1.Pod
		code  int
		ended bool
		why   string
	}{
		"under way":                 {pod(phase(corev1.PodRunning), main_("a", exited(4, 0, 1), 0), main_("b", running(0), 0)), 0, false, ""},
		"succeeded":                 {pod(phase(corev1.PodSucceeded), main_("a", exited(0, 0, 1), 0)), 0, true, ""},
		"the one that failed":       {pod(failed, main_("a", exited(0, 0, 1), 0), main_("b", exited(7, 0, 2), 0)), 7, true, "container b failed with exit code 7 after 2s"},
		"the first to fail":         {pod(failed, main_("a", exited(143, 0, 9), 0), main_("b", exited(7, 0, 2), 0)), 7, true, "container b failed"},
		"an init failed":            {pod(failed, init_("fetch", exited(5, 0, 1)), main_("a", waiting("PodInitializing", ""), 0)), 5, true, "init container fetch failed with exit code 5"},
		"evicted":                   {pod(failed, func(p *corev1.Pod) { p.Status.Reason = "Evicted"; p.Status.Message = "disk" }), 1, true, "Evicted: disk"},
		"a code no shell can carry": {pod(failed, main_("a", exited(256, 0, 1), 0)), 1, true, "256"},
		"nothing known":             {pod(failed), 1, true, "without saying why"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			code, why, ended := Outcome(c.pod)
			if code != c.code || ended != c.ended || !strings.Contains(why, c.why) {
				t.Errorf("got %d, %v, %q; want %d, %v, %q", code, ended, why, c.code, c.ended, c.why)
			}
		})
	}
}

// A container that crashes again and again gives its own exit code.
func TestStuckExitCode(t *testing.T) {
	p := pod(func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", State: waiting("CrashLoopBackOff", "m"), LastTerminationState: exited(3, 1, 2), RestartCount: 1}}
	})
	if got, ok := Stuck(p); !ok || got.ExitCode != 3 {
		t.Errorf("got %+v, %v", got, ok)
	}
}

func TestStuck(t *testing.T) {
	cases := map[string]struct {
		pod      *corev1.Pod
		want     string
		hopeless bool
	}{
		"on its way":    {pod(main_("a", waiting("ContainerCreating", ""), 0)), "", false},
		"never pull":    {pod(main_("a", waiting("ErrImageNeverPull", "absent"), 0)), "container a: ErrImageNeverPull: absent", true},
		"registry":      {pod(main_("a", waiting("ImagePullBackOff", "m"), 0)), "container a: ImagePullBackOff: m", false},
		"init first":    {pod(main_("a", waiting("InvalidImageName", ""), 0), init_("fetch", waiting("CrashLoopBackOff", ""))), "container fetch: CrashLoopBackOff", false},
		"no volume":     {pod(main_("a", waiting("ContainerCreating", "secret s not found"), 0)), "cannot start: secret s not found", false},
		"no CA yet":     {pod(main_("a", waiting("ContainerCreating", `configmap "kube-root-ca.crt" not found`), 0)), "", false},
		"unschedulable": {pod(cond("PodScheduled", "False", "Unschedulable", "no room")), "Unschedulable: no room", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := Stuck(c.pod)
			if ok != (c.want != "") || ok && (got.String() != c.want || got.Hopeless != c.hopeless) {
				t.Errorf("got %q (hopeless %v), want %q (%v)", got, got.Hopeless, c.want, c.hopeless)
			}
		})
	}
}

// The code of a pod that was taken away is that of its last failure, also of an attempt before.
func TestLastFailure(t *testing.T) {
	p := pod(main_("a", exited(3, 0, 5), 0), main_("b", running(6), 1))
	p.Status.ContainerStatuses[1].LastTerminationState = exited(4, 0, 6)
	if code, when := LastFailure(p); code != 4 || !when.Equal(at(6).Time) {
		t.Errorf("%d at %s", code, when)
	}
	if code, _ := LastFailure(pod(main_("a", exited(0, 0, 5), 0))); code != 0 {
		t.Errorf("nothing failed: %d", code)
	}
}
