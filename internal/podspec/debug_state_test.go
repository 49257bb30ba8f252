// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// live is a pod on a node whose main containers run.
func live(mains ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	for _, name := range mains {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
	return p
}

// DC-14: what each profile gives, as kubectl's do; DC-04: terminal and standard input are those asked for.
func TestDebugProfiles(t *testing.T) {
	for profile, want := range map[string]*corev1.SecurityContext{
		"":         {Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_PTRACE"}}},
		"general":  {Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_PTRACE"}}},
		"netadmin": {Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN", "NET_RAW"}}},
		"sysadmin": {Privileged: new(true)},
		"restricted": {RunAsNonRoot: new(true), AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		"baseline": nil,
		"legacy":   nil,
	} {
		c, err := NewDebugContainer(live("main"), DebugContainer{Name: "d", Image: "i", Profile: profile, TTY: true, Stdin: true, Command: []string{"sh"}})
		if err != nil || !equality.Semantic.DeepEqual(c.SecurityContext, want) || !c.TTY || !c.Stdin || !slices.Equal(c.Command, []string{"sh"}) {
			t.Errorf("%q: %+v, %v", profile, c, err)
		}
		if profile != "" && !slices.Contains(debugask.Profiles(), profile) {
			t.Errorf("%q is not listed", profile)
		}
	}
	if _, err := NewDebugContainer(live("main"), DebugContainer{Profile: "root"}); err == nil || !strings.Contains(err.Error(), "choose one of general") {
		t.Errorf("an unknown profile: %v", err)
	}
}

// DC-15: the one main container is the target when nobody says which, if there is something to join.
func TestDebugTarget(t *testing.T) {
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		but  func(*corev1.Pod)
		want string
	}{
		"one main":      {live("main"), nil, "main"},
		"two mains":     {live("a", "b"), nil, ""},
		"shared":        {live("main"), func(p *corev1.Pod) { p.Spec.ShareProcessNamespace = new(true) }, ""},
		"the machine's": {live("main"), func(p *corev1.Pod) { p.Spec.HostPID = true }, ""},
		"not running":   {live("main"), func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = corev1.ContainerState{} }, ""},
		"nothing known": {live("main"), func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }, ""},
		"and an init":   {live("main"), func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "i"}} }, "main"},
	} {
		if c.but != nil {
			c.but(c.pod)
		}
		if got := DebugTarget(c.pod); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if c, _ := NewDebugContainer(live("a", "b"), DebugContainer{Target: "b"}); c.TargetContainerName != "b" {
		t.Errorf("one that is asked for: %q", c.TargetContainerName)
	}
}

// DC-01: the toolbox is never asked of a registry.
func TestDebugDefaults(t *testing.T) {
	p := live("main")
	for image, want := range map[string]corev1.PullPolicy{
		debugask.ToolboxImage: corev1.PullIfNotPresent, debugask.ToolboxImage + ":latest": corev1.PullIfNotPresent, debugask.ToolboxImage + "s": corev1.PullAlways, "busybox": corev1.PullAlways,
	} {
		p := live("main")
		p.Spec.Containers[0].Image = image
		SetDefaults(p)
		if got := p.Spec.Containers[0].ImagePullPolicy; got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
	if c, _ := NewDebugContainer(p, DebugContainer{Image: debugask.ToolboxImage, PullPolicy: corev1.PullNever}); c.ImagePullPolicy != corev1.PullNever {
		t.Errorf("one that is asked for: %q", c.ImagePullPolicy)
	}
}

// debugged is a live pod with a debug container d whose wanted run and status are given; run of the status -1 is none.
func debugged(want, run int, state corev1.ContainerState) *corev1.Pod {
	p := live("main")
	p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d", Image: "old"}}}
	if want > 0 {
		_ = SetDebugRuns(p, DebugRuns{"d": {Run: want}})
	}
	if run >= 0 {
		p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "d", RestartCount: int32(run), State: state}}
	}
	return p
}

var (
	isRunning = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	hasEnded  = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error"}}
)

func waits(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "words"}}
}

// DC-06: a status of an earlier run says nothing about the wanted one.
func TestDebugState(t *testing.T) {
	for name, c := range map[string]struct {
		pod   *corev1.Pod
		want  DebugPhase
		begun bool
	}{
		"none":                     {live("main"), DebugAbsent, false},
		"no word yet":              {debugged(0, -1, corev1.ContainerState{}), DebugPending, false},
		"on its way":               {debugged(0, 0, waits("ContainerCreating")), DebugPending, true},
		"behind inits":             {debugged(0, 0, waits("PodInitializing")), DebugPending, true},
		"no image":                 {debugged(0, 0, waits("ErrImagePull")), DebugFailing, true},
		"running":                  {debugged(0, 0, isRunning), DebugRunning, true},
		"ended":                    {debugged(0, 0, hasEnded), DebugEnded, true},
		"an earlier run has ended": {debugged(1, 0, hasEnded), DebugPending, false},
		"this run has ended":       {debugged(1, 1, hasEnded), DebugEnded, true},
		"this run runs":            {debugged(3, 3, isRunning), DebugRunning, true},
	} {
		if got := DebugStateOf(c.pod, "d"); got.Phase != c.want || got.Begun != c.begun {
			t.Errorf("%s: %+v, want phase %d, begun %t", name, got, c.want, c.begun)
		}
	}
	if s := DebugStateOf(debugged(0, 0, waits("ErrImagePull")), "d"); s.Reason != "ErrImagePull" || s.Message != "words" {
		t.Errorf("%+v", s)
	}
}

// DC-05 DC-06 EC-09: a debug container is added where its name is free, replaces one that has ended, and is refused otherwise, in
// words that say what to do; a refused pod is unchanged.
func TestAddDebugContainer(t *testing.T) {
	static := live("main")
	static.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	leaving := live("main")
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	over := live("main")
	over.Status.Phase = corev1.PodSucceeded
	homeless := live("main")
	homeless.Spec.NodeName = ""
	for name, c := range map[string]struct {
		pod   *corev1.Pod
		want  string // container name; d unless given
		aim   string
		run   int
		words string
		taken bool
	}{
		"free name":                      {pod: live("main")},
		"pending pods too":               {pod: func() *corev1.Pod { p := live("main"); p.Status.Phase = corev1.PodPending; return p }()},
		"used once":                      {pod: debugged(0, 0, hasEnded), run: 1},
		"used twice":                     {pod: debugged(1, 1, hasEnded), run: 2},
		"running":                        {pod: debugged(0, 0, isRunning), taken: true, words: "is running: attach to it"},
		"about to start":                 {pod: debugged(0, -1, corev1.ContainerState{}), taken: true, words: "has not started yet: stop it"},
		"its next run is about to start": {pod: debugged(1, 0, hasEnded), taken: true, words: "has not started yet"},
		"failing":                        {pod: debugged(0, 0, waits("ErrImagePull")), taken: true, words: "has not started yet (ErrImagePull)"},
		"a main's name":                  {pod: live("d"), taken: true, words: "taken by spec.containers[0]"},
		"static":                         {pod: static, words: "static pod"},
		"leaving":                        {pod: leaving, words: "is being deleted"},
		"over":                           {pod: over, words: "has ended (Succeeded)"},
		"on no node":                     {pod: homeless, words: "does not have a host assigned"},
		"target runs":                    {pod: live("main"), aim: "main"},
		"target does not run": {pod: func() *corev1.Pod {
			p := live("main")
			p.Status.ContainerStatuses[0].State = hasEnded
			return p
		}(), aim: "main", words: "is not running (exit code 2, Error)"},
		"unknown target is for validation": {pod: live("main"), aim: "nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.pod.DeepCopy()
			stop := &metav1.Time{Time: time.Unix(100, 0)}
			run, err := AddDebugContainer(c.pod, corev1.EphemeralContainer{TargetContainerName: c.aim,
				EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d", Image: "new"}}, DebugRun{StopAt: stop})
			if c.words != "" {
				var refused *DebugRefusal
				if !errors.As(err, &refused) || refused.Taken != c.taken || !strings.Contains(err.Error(), c.words) {
					t.Errorf("%v", err)
				}
				if !equality.Semantic.DeepEqual(before, c.pod) {
					t.Error("the pod has changed")
				}
				return
			}
			if err != nil || run != c.run {
				t.Fatalf("run %d, %v", run, err)
			}
			list := c.pod.Spec.EphemeralContainers
			if len(list) != 1 || list[0].Image != "new" {
				t.Errorf("containers %+v", list)
			}
			if got := DebugRunsOf(c.pod)["d"]; got.Run != c.run || !got.StopAt.Equal(stop) {
				t.Errorf("wanted %+v", got)
			}
			if s := DebugStateOf(c.pod, "d"); s.Phase != DebugPending || s.Begun {
				t.Errorf("its state is that of the run before: %+v", s)
			}
		})
	}
	p := live("main")
	if _, err := AddDebugContainer(p, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d"}}, DebugRun{}); err != nil || len(p.Annotations) != 0 {
		t.Errorf("one that nothing is wanted of leaves a word: %v %v", p.Annotations, err)
	}
}

// DC-06 EC-04 EC-05: exec++ may replace the entry of its name and write what is wanted of it, and nothing else.
func TestValidateDebugContainerUpdate(t *testing.T) {
	had := func(p *corev1.Pod) {
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{debugger("old"), debugger("other")}
	}
	update := func(now, was *corev1.Pod) errs { return ValidateDebugContainerUpdate(now, was, "old") }
	checkChanged(t, update, []changed{
		{"DC-06 replaced", had, func(p *corev1.Pod) {
			p.Spec.EphemeralContainers[0].Image = "x"
			p.Annotations = map[string]string{DebugAnnotation: `{"old":{"run":1}}`}
		}, "", "", ""},
		{"another one", had, func(p *corev1.Pod) { p.Spec.EphemeralContainers[1].Image = "x" }, "spec.ephemeralContainers", forbiddenErr, `"other" may not be changed`},
		{"removed", had, func(p *corev1.Pod) { p.Spec.EphemeralContainers = p.Spec.EphemeralContainers[1:] }, "spec.ephemeralContainers", forbiddenErr, `"old" may not be removed`},
		{"EC-05 what it says", had, func(p *corev1.Pod) { p.Spec.EphemeralContainers[0].Lifecycle = &corev1.Lifecycle{} }, "spec.ephemeralContainers[0].lifecycle", forbiddenErr, ""},
		{"the rest of the spec", had, func(p *corev1.Pod) { mainOf(p).Image = "x" }, "spec", forbiddenErr, "spec.containers[0].image"},
		{"another annotation", had, func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }, "metadata.annotations", forbiddenErr, ""},
		{"no sense", had, func(p *corev1.Pod) { p.Annotations = map[string]string{DebugAnnotation: "{"} }, "metadata.annotations[wherry.dev/debug]", invalidErr, ""},
	})
}

// DC-06: an ordinary update cannot write what is wanted of debug containers.
func TestDebugAnnotationIsKept(t *testing.T) {
	had := func(p *corev1.Pod) { p.Annotations = map[string]string{DebugAnnotation: `{"d":{"run":1}}`} }
	const path = "metadata.annotations[wherry.dev/debug]"
	checkChanged(t, ValidateUpdate, []changed{
		{"added", nil, had, path, forbiddenErr, "is managed by the API server"},
		{"changed", had, func(p *corev1.Pod) { p.Annotations = map[string]string{DebugAnnotation: `{"d":{"run":2}}`} }, path, forbiddenErr, ""},
		{"removed", had, func(p *corev1.Pod) { p.Annotations = nil }, path, forbiddenErr, ""},
		{"left alone", had, func(p *corev1.Pod) { p.Labels["a"] = "b" }, "", "", ""},
	})
}
