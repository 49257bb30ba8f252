// SPDX-License-Identifier: Apache-2.0

package bookkeeping

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

// statusOf says what a record's status ought to be, and whether that is news. The pod is nil when it is gone. An image
// exec is finished by the server that handed its streams over; one of a time before since has lost that server.
func statusOf(run *debugrun.DebugRun, pod *corev1.Pod, since, now time.Time) (debugrun.DebugRunStatus, bool) {
	out := run.DeepCopy().Status
	end := metav1.NewTime(now)
	switch {
	case out.FinishedAt != nil:
		return out, false
	case run.Spec.Kind == debugrun.ImageExec:
		if run.CreationTimestamp.Add(time.Second).Before(since) { // it has whole seconds only
			out.FinishedAt, out.Reason, out.Message = &end, debugrun.Unwatched,
				"the server was stopped while the command ran"
		}
	case pod == nil || pod.UID != run.Spec.Pod.UID:
		out.FinishedAt, out.Reason, out.Message = &end, debugrun.PodGone, "the pod was deleted"
	default:
		settleContainer(&out, run, pod, end)
	}
	return out, !equality.Semantic.DeepEqual(out, run.Status)
}

// settleContainer takes over what a pod's status says about a run. The status counts runs as restarts (DC-06).
func settleContainer(out *debugrun.DebugRunStatus, run *debugrun.DebugRun, pod *corev1.Pod, now metav1.Time) {
	list := pod.Status.EphemeralContainerStatuses
	i := slices.IndexFunc(list, func(s corev1.ContainerStatus) bool { return s.Name == run.Spec.Container })
	if i < 0 {
		return
	}
	state, last := list[i].State, list[i].LastTerminationState.Terminated
	over := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	switch later := list[i].RestartCount - run.Spec.Run; {
	case later < 0: // it has not begun
	case later == 0 && state.Terminated != nil:
		ended(out, state.Terminated, now)
	case later == 0 && state.Running != nil:
		started := state.Running.StartedAt
		out.StartedAt, out.Reason, out.Message = &started, "", ""
	case later == 0 && state.Waiting != nil:
		out.Reason, out.Message = state.Waiting.Reason, state.Waiting.Message
		if over {
			out.FinishedAt = &now
		}
	case later == 1 && last != nil:
		ended(out, last, now)
	case later > 0:
		out.FinishedAt, out.Reason, out.Message = &now, debugrun.Unwatched,
			"its name was used again before its end was seen"
	}
}

func ended(out *debugrun.DebugRunStatus, t *corev1.ContainerStateTerminated, now metav1.Time) {
	if started := t.StartedAt; started.Unix() > 0 {
		out.StartedAt = &started
	}
	finished := t.FinishedAt
	if finished.Unix() <= 0 {
		finished = now
	}
	out.FinishedAt, out.ExitCode = &finished, new(t.ExitCode)
	out.Reason, out.Message = t.Reason, t.Message
}

// surplus are the records that go: those whose pod is gone and that are older than keep, and the oldest of those that
// are finished beyond most. next is when one will be too old, or zero.
func surplus(runs []*debugrun.DebugRun, gone func(*debugrun.DebugRun) bool, keep time.Duration, most int,
	now time.Time) (drop []*debugrun.DebugRun, next time.Time) {
	runs = slices.Clone(runs)
	// by name too, so that the same facts always name the same records
	slices.SortFunc(runs, func(a, b *debugrun.DebugRun) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	tooMany := len(runs) - most
	for _, r := range runs {
		due := r.CreationTimestamp.Add(keep)
		switch {
		case r.Status.FinishedAt == nil:
		case tooMany > 0, !now.Before(due) && gone(r):
			drop = append(drop, r)
			tooMany--
		case now.Before(due) && (next.IsZero() || due.Before(next)):
			next = due
		}
	}
	return drop, next
}
