// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

// beforeElsewhere is the history of sessions beside the pods of a cluster that has debug.wherry.dev: by their events,
// which the cluster keeps for an hour by default.
func beforeElsewhere(ctx context.Context, c *reach.Client, namespace, pod string) (*debugrun.DebugRunList, error) {
	which := fields.Set{"involvedObject.kind": "Pod"}
	if pod != "" {
		which["involvedObject.name"] = pod
	}
	events, err := c.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: which.String()})
	if err != nil {
		return nil, err
	}
	return runsOf(events.Items), nil
}

// runsOf reads sessions out of events. Of one whose beginning is forgotten already, the end says what it was.
func runsOf(events []corev1.Event) *debugrun.DebugRunList {
	list := &debugrun.DebugRunList{}
	at := map[string]int{}
	for i := range events {
		e := &events[i]
		n, ok := wire.ParseNoted(e.Annotations[wire.AnnotationNoted])
		if !ok || e.Reason != wire.EventStarted && e.Reason != wire.EventEnded {
			continue
		}
		which, known := at[n.ID]
		if !known {
			which = len(list.Items)
			at[n.ID] = which
			list.Items = append(list.Items, runOf(e, n))
		}
		r := &list.Items[which]
		if e.Reason == wire.EventStarted {
			r.CreationTimestamp, r.Status.StartedAt = e.FirstTimestamp, e.FirstTimestamp.DeepCopy()
			continue
		}
		r.Status.FinishedAt, r.Status.ExitCode, r.Status.Reason = e.FirstTimestamp.DeepCopy(), n.ExitCode, n.Why
	}
	slices.SortStableFunc(list.Items,
		func(a, b debugrun.DebugRun) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return list
}

// runOf is a session as a record of a run.
func runOf(e *corev1.Event, n wire.Noted) debugrun.DebugRun {
	r := debugrun.DebugRun{
		ObjectMeta: metav1.ObjectMeta{Name: n.ID, Namespace: e.InvolvedObject.Namespace,
			CreationTimestamp: e.FirstTimestamp},
		Spec: debugrun.DebugRunSpec{Kind: kindOf(n.As), Image: n.Image, Command: n.Command, Target: n.Container,
			Writable: n.Writable, User: n.By,
			Pod: debugrun.PodReference{Name: e.InvolvedObject.Name, UID: e.InvolvedObject.UID}},
	}
	if r.Spec.Image == "" {
		r.Spec.Image = debugask.ToolboxImage
	}
	return r
}

// kindOf is what a session beside a pod is in a record.
func kindOf(as string) debugrun.Kind {
	switch as {
	case wire.Shell:
		return "Shell"
	case wire.Files:
		return "Files"
	}
	return debugrun.ImageExec
}
