// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"cmp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// DC-08 DC-09: a session that was ended from outside says by what; one whose command ended says nothing.
func TestWhyEnded(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second)) }
	stop := func(seconds int, by string) podspec.DebugRun {
		when := at(seconds)
		return podspec.DebugRun{StopAt: &when, StoppedBy: by}
	}
	limited := func(asked int) (run podspec.DebugRun) { // a minute
		run.Limit(time.Minute, at(asked).Time)
		return run
	}
	stopped := func(run podspec.DebugRun, when metav1.Time, by string) podspec.DebugRun {
		run.Stop(when.Time, by)
		return run
	}
	for name, c := range map[string]struct {
		code   int32
		reason string
		run    podspec.DebugRun
		began  int // of the run, in seconds from noon; 0 is a minute before
		change func(*corev1.Pod)
		want   string
	}{
		"its command ended":               {code: 3, run: stop(-1, "jane")},
		"killed in the shell":             {code: 137},
		"killed before its limit":         {code: 137, run: stop(60, "")},
		"its time limit":                  {code: 143, run: stop(-1, ""), want: "debug container debug reached its time limit"},
		"its time limit, in the same":     {code: 137, run: stop(1, ""), want: "time limit"},
		"its time limit, from its start":  {code: 137, run: limited(-600), want: "debug container debug reached its time limit"},
		"killed before its limit is over": {code: 137, run: limited(-30), began: -30},
		"stopped, with a limit":           {code: 137, run: stopped(limited(-600), at(-1), "jane"), want: "jane stopped debug container debug"},
		"stopped":                         {code: 137, run: stop(-2, "jane"), want: "jane stopped debug container debug"},
		"the pod goes":                    {code: 137, change: func(p *corev1.Pod) { now := at(0); p.DeletionTimestamp = &now }, want: "pod p is being deleted"},
		"out of memory":                   {code: 137, reason: "OOMKilled", want: "OOMKilled"},
		"the target ended": {code: 137, want: "container main has ended", change: func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: at(-1)}
		}},
		"the target ended long ago": {code: 137, change: func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: at(-60)}
		}},
	} {
		end := ended("debug", c.code)
		end.State.Terminated.Reason, end.State.Terminated.FinishedAt = c.reason, at(0)
		end.State.Terminated.StartedAt = at(cmp.Or(c.began, -60))
		p := podOf([]corev1.ContainerStatus{running("main")}, end)
		p.Spec.EphemeralContainers[0].TargetContainerName = "main"
		if err := podspec.SetDebugRuns(p, podspec.DebugRuns{"debug": c.run}); err != nil {
			t.Fatal(err)
		}
		if c.change != nil {
			c.change(p)
		}
		if got := WhyEnded(p, "debug"); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := WhyEnded(podOf([]corev1.ContainerStatus{running("main")}, running("debug")), "debug"); got != "" {
		t.Errorf("one that runs: %q", got)
	}
}
