// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/controllers/scheduler/fit"
	"github.com/wherryproject/wherry/internal/podspec"
)

// preempted is what the condition of a pod says that goes for another.
const preempted = Name + ": preempting to accommodate a higher priority pod"

// makeRoom has pods of lower priority go, if that lets a pod in that fits nowhere, and promises their node to it
// (WL-07). While some of them are still going, nobody else goes for the same pod.
func (r *run) makeRoom(w *waiting) (do func(context.Context)) {
	if r.state.stillGoing(w) {
		return nil
	}
	p, ok := fit.Preempt(w.pod, r.state.cluster, w.budgets)
	if ok && w.budgets == nil {
		return r.askBudgets(w)
	}
	w.budgets = nil // the next time they are others
	if !ok {
		if w.nominated == "" {
			return nil
		}
		w.nominated = ""
		pod := w.pod
		return func(ctx context.Context) { r.nominate(ctx, pod, "") }
	}
	w.nominated, w.victims = p.Node, p.Victims
	pod, less := w.pod, r.state.unpromise(p.Node, podspec.Priority(w.pod))
	return func(ctx context.Context) {
		r.nominate(ctx, pod, p.Node)
		for _, victim := range p.Victims {
			if !r.preempt(ctx, victim, pod, p.Node) {
				r.box.send(func() { r.state.spared(pod.UID, time.Now().Add(firstRetry)) })
			}
		}
		for _, other := range less {
			r.nominate(ctx, other, "")
		}
	}
}

// askBudgets reads the disruption budgets for a pod that would make others go, and has it tried again with them. They
// are read when they are needed: that is rare, and nothing has to be kept of them.
func (r *run) askBudgets(w *waiting) (do func(context.Context)) {
	if w.asking {
		return nil
	}
	w.asking = true
	uid := w.pod.UID
	return func(ctx context.Context) {
		list, err := r.client.PolicyV1().PodDisruptionBudgets("").List(ctx, metav1.ListOptions{})
		if err != nil {
			if ctx.Err() == nil {
				r.log.Warn("cannot read the disruption budgets of pods that would go for others", "err", err)
			}
			r.box.send(func() { r.state.budgetsUnknown(uid, time.Now().Add(firstRetry)) })
			return
		}
		budgets := make([]fit.Budget, 0, len(list.Items))
		for i := range list.Items {
			budgets = append(budgets, fit.NewBudget(&list.Items[i]))
		}
		r.box.send(func() { r.state.budgetsKnown(uid, budgets) })
	}
}

// preempt ends a pod for another, and reports whether it has. Who waits for it learns why.
func (r *run) preempt(ctx context.Context, victim, pod *corev1.Pod, node string) bool {
	log := r.log.With("pod", victim.Namespace+"/"+victim.Name, "for", pod.Namespace+"/"+pod.Name)
	log.Info("pod goes for one of higher priority", "node", node)
	condition := map[string]any{"type": corev1.DisruptionTarget, "status": corev1.ConditionTrue,
		"reason": corev1.PodReasonPreemptionByScheduler, "message": preempted, "lastTransitionTime": metav1.Now(),
		"observedGeneration": victim.Generation}
	err := r.patchStatus(ctx, victim, map[string]any{"conditions": []any{condition}})
	if err != nil && !apierrors.IsNotFound(err) {
		log.Warn("cannot tell why a pod goes", "err", err)
	}
	err = r.client.CoreV1().Pods(victim.Namespace).Delete(ctx, victim.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &victim.UID}})
	switch {
	case err == nil:
		r.events.Eventf(victim, corev1.EventTypeNormal, "Preempted", "Preempted by pod %s on node %s", pod.UID, node)
	case ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err):
		log.Warn("cannot end a pod for one of higher priority", "err", err)
		return false
	}
	return true
}

// nominate publishes which node a pod is promised; "" takes it back.
func (r *run) nominate(ctx context.Context, pod *corev1.Pod, node string) {
	var name any
	if node != "" {
		name = node
	}
	err := r.patchStatus(ctx, pod, map[string]any{"nominatedNodeName": name})
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		r.log.Warn("cannot publish which node a pod is promised", "pod", pod.Namespace+"/"+pod.Name, "err", err)
	}
}

// patchStatus changes a pod's status; the uid keeps it from a namesake.
func (r *run) patchStatus(ctx context.Context, pod *corev1.Pod, status map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	_, err = r.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	return err
}

// promised are the pods that wait for a node to be free for them, by node.
func (s *state) promised() map[string][]*corev1.Pod {
	var all map[string][]*corev1.Pod
	for _, w := range s.waiting {
		if w.nominated != "" && !w.binding {
			if all == nil {
				all = map[string][]*corev1.Pod{}
			}
			all[w.nominated] = append(all[w.nominated], w.pod)
		}
	}
	return all
}

// unpromise takes a node back from those of lower priority, who may find another.
func (s *state) unpromise(node string, priority int32) (from []*corev1.Pod) {
	for _, w := range s.waiting {
		if w.nominated == node && podspec.Priority(w.pod) < priority {
			w.nominated, w.try = "", true
			from = append(from, w.pod)
		}
	}
	return from
}

// stillGoing reports whether somebody who goes for a pod is there yet. After a restart it is anybody who goes from its
// node and is of lower priority.
func (s *state) stillGoing(w *waiting) bool {
	if w.nominated == "" {
		return false
	}
	for _, v := range w.victims {
		if _, there := s.where[v.UID]; there {
			return true
		}
	}
	n := s.cluster.Nodes[w.nominated]
	return n != nil && n.Leaving(podspec.Priority(w.pod))
}

// spared has a pod tried again for which somebody could not be made to go.
func (s *state) spared(uid types.UID, again time.Time) {
	if w, ok := s.waiting[uid]; ok {
		w.victims, w.try, w.retry = nil, true, again
	}
}

// budgetsKnown has a pod tried again that asked for them.
func (s *state) budgetsKnown(uid types.UID, budgets []fit.Budget) {
	if w, ok := s.waiting[uid]; ok {
		w.asking, w.budgets, w.try = false, budgets, true
	}
}

// budgetsUnknown has a pod ask for them again later.
func (s *state) budgetsUnknown(uid types.UID, again time.Time) {
	if w, ok := s.waiting[uid]; ok {
		w.asking, w.try, w.retry = false, true, again
	}
}
