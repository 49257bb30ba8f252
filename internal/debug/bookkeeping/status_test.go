// SPDX-License-Identifier: Apache-2.0

package bookkeeping

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

func at(seconds int) metav1.Time { return metav1.NewTime(time.Unix(1e9+int64(seconds), 0)) }

func seconds(t *metav1.Time) string {
	if t == nil {
		return "-"
	}
	return fmt.Sprint(t.Unix() - 1e9)
}

// said is a status in short: when it started and ended, with which code, and why.
func said(s debugrun.DebugRunStatus) string {
	code := "-"
	if s.ExitCode != nil {
		code = fmt.Sprint(*s.ExitCode)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", seconds(s.StartedAt), seconds(s.FinishedAt), code, s.Reason))
}

func running(from int) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(from)}}
}

func terminated(from, to int, code int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: at(from), FinishedAt: at(to), ExitCode: code, Reason: "Error"}}
}

func waiting(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
}

func podWith(restarts int32, state, last corev1.ContainerState) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "d", RestartCount: restarts, State: state, LastTerminationState: last}}
	return p
}

// DC-06 DC-08 DC-11: a record says what its own run did, also when its container's name was used again, and that it is not known
// where nobody can know.
func TestSettle(t *testing.T) {
	var none corev1.ContainerState
	run := func(n int32) *debugrun.DebugRun {
		r := &debugrun.DebugRun{Spec: debugrun.DebugRunSpec{Kind: debugrun.EphemeralContainer, Container: "d", Run: n, Pod: debugrun.PodReference{UID: "u"}}}
		r.CreationTimestamp = at(0)
		return r
	}
	image := func(created int) *debugrun.DebugRun {
		r := run(0)
		r.Spec.Kind, r.Spec.Container, r.CreationTimestamp = debugrun.ImageExec, "", at(created)
		return r
	}
	done := run(0)
	done.Status.FinishedAt = new(at(5))
	over := podWith(0, waiting("NotStarted"), none)
	over.Status.Phase = corev1.PodFailed
	skipped := podWith(0, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at(4), ExitCode: 143, Reason: "Stopped"}}, none)
	for name, c := range map[string]struct {
		run  *debugrun.DebugRun
		pod  *corev1.Pod
		want string
	}{
		"nothing known":                     {run(0), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}, "- - -"},
		"waits":                             {run(0), podWith(0, waiting("ErrImagePull"), none), "- - - ErrImagePull"},
		"runs":                              {run(0), podWith(0, running(3), none), "3 - -"},
		"ended":                             {run(0), podWith(0, terminated(3, 8, 2), none), "3 8 2 Error"},
		"stopped before it started":         {run(0), skipped, "- 4 143 Stopped"},
		"never started in a pod that ended": {run(0), over, "- 99 - NotStarted"},
		"not yet begun":                     {run(1), podWith(0, terminated(3, 8, 2), none), "- - -"},
		"the next run waits":                {run(0), podWith(1, waiting("ContainerCreating"), terminated(3, 8, 2)), "3 8 2 Error"},
		"the next run runs":                 {run(0), podWith(1, running(9), terminated(3, 8, 2)), "3 8 2 Error"},
		"the run itself, used again":        {run(1), podWith(1, running(9), terminated(3, 8, 2)), "9 - -"},
		"two runs later":                    {run(0), podWith(2, running(9), terminated(3, 8, 2)), "- 99 - Unwatched"},
		"the pod is gone":                   {run(0), nil, "- 99 - PodGone"},
		"another pod of the name":           {run(0), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "other"}}, "- 99 - PodGone"},
		"finished is finished":              {done, nil, "- 5 -"},
		"image exec goes on":                {image(60), nil, "- - -"},
		"image exec of a server before":     {image(40), nil, "- 99 - Unwatched"},
		"image exec of this very second":    {image(50), nil, "- - -"},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.run.DeepCopy()
			got, news := statusOf(c.run, c.pod, time.Unix(1e9+50, 5e8), at(99).Time)
			if said(got) != c.want || news != !equality.Semantic.DeepEqual(got, before.Status) {
				t.Errorf("%q (news %t), want %q", said(got), news, c.want)
			}
			if !equality.Semantic.DeepEqual(before, c.run) {
				t.Error("the record itself has changed")
			}
			c.run.Status = got
			if _, news := statusOf(c.run, c.pod, time.Unix(1e9+50, 5e8), at(99).Time); news {
				t.Error("the same again is news")
			}
		})
	}
}

// DC-08: records outlive their pods by a month; of too many the oldest that are finished go, and none that is open.
func TestSurplus(t *testing.T) {
	record := func(name string, age time.Duration, finished bool) *debugrun.DebugRun {
		r := &debugrun.DebugRun{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(at(0).Add(-age))}}
		if finished {
			r.Status.FinishedAt = new(at(0))
		}
		return r
	}
	gone := func(r *debugrun.DebugRun) bool { return !strings.HasPrefix(r.Name, "kept") }
	const day = 24 * time.Hour
	runs := []*debugrun.DebugRun{
		record("new", day, true), record("old", 31*day, true), record("kept-old", 40*day, true), record("open", 50*day, false), record("young", time.Hour, true),
	}
	for most, want := range map[int]string{10: "old", 5: "old", 4: "kept-old old", 3: "kept-old old", 2: "kept-old old new", 0: "kept-old old new young"} {
		drop, next := surplus(runs, gone, 30*day, most, at(0).Time)
		var names []string
		for _, r := range drop {
			names = append(names, r.Name)
		}
		if strings.Join(names, " ") != want {
			t.Errorf("at most %d: %v, want %s", most, names, want)
		}
		if most == 10 && !next.Equal(at(0).Add(29*day)) {
			t.Errorf("next is %s", next)
		}
	}
	twins := []*debugrun.DebugRun{record("b", day, true), record("a", day, true), record("c", day, true)}
	for range twins {
		twins = append(twins[1:], twins[0])
		if drop, _ := surplus(twins, gone, 30*day, 2, at(0).Time); len(drop) != 1 || drop[0].Name != "a" {
			t.Errorf("of three of one age %v goes", drop)
		}
	}
	if !slices.IsSortedFunc(runs[:2], func(a, b *debugrun.DebugRun) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) }) {
		t.Error("the caller's list was sorted")
	}
}
