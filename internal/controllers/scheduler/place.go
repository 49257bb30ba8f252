// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/controllers/scheduler/fit"
	"github.com/wherryproject/wherry/internal/podspec"
)

const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// place decides about every pod that is due and returns what the binders have to do about it.
func (r *run) place(ctx context.Context, now time.Time) []func(context.Context) {
	var out []func(context.Context)
	r.promised = r.state.promised()
	for _, w := range r.state.due(now) {
		w.try = false
		pod := w.pod
		d, bind, known := r.decide(ctx, pod)
		if !known {
			continue // it is tried again when it is known
		}
		if d.Node == "" {
			if d.Crowded {
				if do := r.makeRoom(w); do != nil {
					out = append(out, do)
					r.promised = r.state.promised()
				}
			}
			if d.Refusal != w.shown {
				w.shown = d.Refusal
				out = append(out, func(ctx context.Context) { r.refuse(ctx, pod, d.Refusal) })
			}
			continue
		}
		w.binding = true
		if w.nominated != "" {
			r.promised = r.state.promised()
		}
		r.state.place(fit.Place(pod), d.Node)
		out = append(out, bind)
	}
	return out
}

// decide picks a node, unless the pod needs a feature that is off: no node will do then. bind is what there is to do
// when there is a node; known is false while a decision is not possible.
func (r *run) decide(ctx context.Context, pod *corev1.Pod) (d fit.Decision, bind func(context.Context), known bool) {
	if missing := r.features.Missing(pod); missing != "" {
		return fit.Decision{Refusal: "not scheduling the pod: " + missing + " at the scheduler"}, nil, true
	}
	if len(podspec.ClaimNames(pod)) == 0 {
		d = fit.DecideBeside(pod, r.state.cluster, r.promised)
		return d, func(ctx context.Context) { r.bind(ctx, pod, d.Node) }, true
	}
	d, v, known := r.decideWithClaims(ctx, pod)
	if d.Node == "" {
		return d, nil, known
	}
	node, events := r.state.cluster.Nodes[d.Node].Object, r.volumes.events
	return d, func(ctx context.Context) { r.bindWithClaims(ctx, pod, &v, node, events) }, known
}

// bind gives the pod its node; the result goes back to the owner of the state.
func (r *run) bind(ctx context.Context, pod *corev1.Pod, node string) {
	err := r.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if err == nil {
		r.events.Eventf(pod, corev1.EventTypeNormal, "Scheduled", "Successfully assigned %s/%s to %s", pod.Namespace,
			pod.Name, node)
		return // the rest comes with the pod's own change
	}
	r.box.send(func() { r.bindFailed(ctx, pod, node, err) })
}

// bindFailed takes the pod off the node again, unless the API has put it somewhere meanwhile.
func (r *run) bindFailed(ctx context.Context, pod *corev1.Pod, node string, err error) {
	w, ok := r.state.waiting[pod.UID]
	if !ok {
		return // gone, or on a node by now
	}
	r.state.unplace(pod.UID)
	w.binding = false
	w.try = true
	w.failed++
	w.retry = time.Now().Add(min(firstRetry<<min(w.failed-1, 10), lastRetry))
	if ctx.Err() != nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return // it changed under our hands; we shall hear of it
	}
	r.log.Warn("cannot bind pod", "pod", pod.Namespace+"/"+pod.Name, "node", node, "err", err)
	r.events.Eventf(pod, corev1.EventTypeWarning, "FailedScheduling", "binding rejected: %v", err)
}

// refuse publishes why the pod fits nowhere (PL-15): a condition and an event.
func (r *run) refuse(ctx context.Context, pod *corev1.Pod, why string) {
	r.events.Event(pod, corev1.EventTypeWarning, "FailedScheduling", why)
	r.report(ctx, pod, why)
}

// report publishes in the pod's condition why it has no node yet, unless that is what it says.
func (r *run) report(ctx context.Context, pod *corev1.Pod, why string) {
	if refusalIn(pod) == why {
		return
	}
	patch, err := refusalPatch(pod, why, metav1.Now())
	if err == nil {
		_, err = r.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch,
			metav1.PatchOptions{}, "status")
	}
	if err == nil || ctx.Err() != nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return
	}
	r.log.Warn("cannot report why a pod is not scheduled", "pod", pod.Namespace+"/"+pod.Name, "err", err)
	r.box.send(func() {
		if w, ok := r.state.waiting[pod.UID]; ok && w.shown == why {
			w.shown, w.try = "", true
			w.retry = time.Now().Add(lastRetry)
		}
	})
}

// refusalPatch sets PodScheduled=False; the uid keeps it from a namesake.
func refusalPatch(pod *corev1.Pod, why string, now metav1.Time) ([]byte, error) {
	since := now
	if c := podspec.Condition(&pod.Status, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		since = c.LastTransitionTime
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": corev1.PodScheduled, "status": corev1.ConditionFalse, "reason": corev1.PodReasonUnschedulable,
			"message": why, "lastTransitionTime": since, "observedGeneration": pod.Generation,
		}}},
	})
	if err != nil {
		return nil, fmt.Errorf("status of pod %s: %w", pod.Name, err)
	}
	return patch, nil
}
