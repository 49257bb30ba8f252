// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func running(name string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func waiting(name, reason string, last *corev1.ContainerStateTerminated) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name,
		State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
		LastTerminationState: corev1.ContainerState{Terminated: last}}
}

func ended(name string, code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
}

// podOf has main containers, and debug containers, in these states.
func podOf(mains []corev1.ContainerStatus, debug ...corev1.ContainerStatus) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	for _, s := range mains {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: s.Name})
	}
	for _, s := range debug {
		p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers,
			corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: s.Name}})
	}
	p.Status.ContainerStatuses, p.Status.EphemeralContainerStatuses = mains, debug
	return p
}

func with(p *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod { change(p); return p }

func TestChoose(t *testing.T) {
	up := []corev1.ContainerStatus{running("main")}
	crash := []corev1.ContainerStatus{waiting("main", "CrashLoopBackOff",
		&corev1.ContainerStateTerminated{ExitCode: 1})}
	starting := []corev1.ContainerStatus{waiting("main", "ContainerCreating", nil)}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		req  Request
		want Choice
		err  string
	}{
		"DC-01 the first name": {podOf(up), Request{}, Choice{Add, "debug"}, ""},
		"DC-01 the next one":   {podOf(up, running("debug")), Request{}, Choice{Add, "debug-2"}, ""},
		"DC-01 a main container has the name": {podOf([]corev1.ContainerStatus{running("debug")}), Request{},
			Choice{Add, "debug-2"}, ""},
		"DC-06 the name of one that has ended": {podOf(up, ended("debug", 0)), Request{}, Choice{Add, "debug"}, ""},
		"DC-02 the user's name": {podOf(up), Request{Name: "mine", Command: true}, Choice{Add, "mine"},
			""},
		"DC-07 one that runs": {podOf(up, running("mine")), Request{Name: "mine"},
			Choice{Attach, "mine"}, ""},
		"DC-07 also in a pod that crashes": {podOf(crash, running("mine")), Request{Name: "mine"},
			Choice{Attach, "mine"}, ""},
		"DC-06 one that runs is not replaced": {podOf(up, running("mine")), Request{Name: "mine", Image: "x"},
			Choice{}, "choose another name"},
		"DC-07 one that has ended": {podOf(up, ended("mine", 3)), Request{Name: "mine"}, Choice{},
			"has ended (exit code 3)"},
		"DC-07 how to make it again": {podOf(up, ended("mine", 3)), Request{Name: "mine"}, Choice{},
			"wherry debug -c mine -m wherry.dev/toolbox p"},
		"DC-07 a name misspelt": {podOf(up, running("mine"), ended("old", 0)), Request{Name: "mime"},
			Choice{}, "no debug container mime (running in it: mine)"},
		"DC-07 a name that nobody has": {podOf(up), Request{Name: "mine"}, Choice{},
			"(none runs in it); to make one of that name"},
		"DC-07 one that cannot start": {podOf(up, waiting("mine", "ErrImagePull", nil)), Request{Name: "mine"},
			Choice{},
			"debug container mine of pod p cannot start: ErrImagePull; to give it up: wherry debug stop p mine"},
		"DC-07 why it cannot start": {with(podOf(up, waiting("mine", "ErrImagePull", nil)), func(p *corev1.Pod) {
			p.Status.EphemeralContainerStatuses[0].State.Waiting.Message = "no such image."
		}), Request{Name: "mine"}, Choice{}, "cannot start: ErrImagePull: no such image; to"},
		"DC-07 one that is about to start": {podOf(up, waiting("mine", "ContainerCreating", nil)),
			Request{Name: "mine"}, Choice{Await, "mine"}, ""},
		"DC-07 one the node has not heard of": {podOf(up, corev1.ContainerStatus{Name: "mine"}),
			Request{Name: "mine"}, Choice{Await, "mine"}, ""},
		"DC-07 one that will not start, failed": {with(podOf(up, waiting("mine", "ContainerCreating", nil)),
			func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), Request{Name: "mine"}, Choice{},
			"never will: the pod has ended"},
		"DC-07 one that will not start, deleted": {with(podOf(up, waiting("mine", "", nil)),
			func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), Request{Name: "mine"}, Choice{},
			"never will: the pod is being deleted"},
		"DC-07 a main container's name": {podOf(up), Request{Name: "main"}, Choice{},
			"wherry debug --target main p"},
		"DC-07 of a pod that has ended": {podOf(crash), Request{Name: "mine"}, Choice{},
			"no debug container mine"},
		"DC-06 said how to make it": {podOf(up, ended("mine", 3)), Request{Name: "mine", Made: true},
			Choice{Add, "mine"}, ""},
		"not started yet":  {podOf(starting), Request{}, Choice{Add, "debug"}, ""},
		"IX-09 crash loop": {podOf(crash), Request{}, Choice{Way: Visit}, ""},
		"IX-09 crash loop of the target": {podOf(append(slices.Clone(up), crash[0])), Request{Target: "main"},
			Choice{Add, "debug"}, ""},
		"IX-09 the target is dead": {podOf([]corev1.ContainerStatus{running("other"),
			waiting("main", "CrashLoopBackOff", &corev1.ContainerStateTerminated{})}),
			Request{Target: "main"}, Choice{Way: Visit}, ""},
		"one of two runs": {podOf([]corev1.ContainerStatus{running("other"), ended("main", 1)}), Request{},
			Choice{Add, "debug"}, ""},
		"IX-09 a failed pod": {with(podOf([]corev1.ContainerStatus{ended("main", 1)}),
			func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
			Request{}, Choice{Way: Visit}, ""},
		"IX-09 a pod that succeeded": {with(podOf([]corev1.ContainerStatus{ended("main", 0)}),
			func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
			Request{}, Choice{Way: Visit}, ""},
		"IX-09 an init that crashes": {with(podOf(starting), func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{waiting("init", "CrashLoopBackOff",
				&corev1.ContainerStateTerminated{ExitCode: 3})}
		}), Request{}, Choice{Way: Visit}, ""},
		"EC-10 an init that runs, another that completed": {with(podOf(starting), func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{ended("first", 0), running("second")}
		}), Request{}, Choice{Add, "debug"}, ""},
		"a target that there is not": {podOf(up), Request{Target: "nobody"}, Choice{Add, "debug"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Choose(c.pod, c.req)
			if got != c.want || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%+v, %v; want %+v, %q", got, err, c.want, c.err)
			}
		})
	}
}

// What is known of the dead is told in words: how long ago, by what, and what they said last.
func TestEvidence(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	at := metav1.NewTime(now.Add(-90 * time.Second))
	crash := waiting("main", "CrashLoopBackOff", &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error",
		FinishedAt: at, Message: "loading\nno such table: users\n"})
	crash.RestartCount = 4
	p := podOf([]corev1.ContainerStatus{
		crash, running("fine"),
		{Name: "oom", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137,
			Reason: "OOMKilled"}}},
		{Name: "segv", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 139,
			Reason: "Error"}}},
		{Name: "bad", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 128,
			Reason: "StartError"}}},
	})
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{ended("init", 0)}
	p.Status.ContainerStatuses[2].RestartCount = 1
	if got := Dead(p); !slices.Equal(got, []string{"oom", "segv", "bad"}) {
		t.Errorf("whose last words are looked for: %v", got)
	}
	said := map[string]string{"main": "not asked for\n", "segv": "loading\n\x1b[31mbad\tpointer\r\n"}
	want := []string{
		"init: completed",
		"main: exit code 1 90s ago, restarted 4 times, now CrashLoopBackOff: no such table: users",
		"oom: out of memory (OOMKilled), restarted once",
		"segv: killed by signal 11 (segmentation fault), last log line: [31mbad pointer",
		"bad: exit code 128 (StartError)",
	}
	if got := Evidence(p, now, said); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
