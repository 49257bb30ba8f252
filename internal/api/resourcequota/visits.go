// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/wherryproject/wherry/internal/api/quota"
	"github.com/wherryproject/wherry/internal/api/registry"
)

// Visit charges an image exec in a pod that has ended: it gets a sandbox with the pod's limits, for as long as it lasts
// (RS-05). The attributes are those of the equivalent update of the pod, which is a new one of this namespace. leave is
// called once, when it is over.
//
// Who visits is known here and not read from the records: those of a server that was killed are completed late, and can
// be deleted. A session does not outlive the server that it goes through.
func (q *Quotas) Visit(ctx context.Context, a admission.Attributes, pod *corev1.Pod) (leave func(), err error) {
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		return func() {}, nil
	}
	has, err := q.ruled.Has(ctx, pod.Namespace)
	if err != nil {
		return nil, err
	}
	if has {
		done, err := q.turn(ctx, pod.Namespace)
		if err != nil {
			return nil, err
		}
		defer done()
		if err := q.chargeVisit(ctx, a, pod); err != nil {
			return nil, err
		}
	}
	q.enter(pod, 1)
	return func() {
		q.enter(pod, -1)
		q.changed(pod)
	}, nil
}

func (q *Quotas) chargeVisit(ctx context.Context, a admission.Attributes, pod *corev1.Pod) error {
	for {
		old := q.item(q.stores["pods"].Kind, pod)
		item := charging{now: old, old: &old,
			why: "an image exec in a pod that has ended takes what the pod took while it ran"}
		item.now.Visits++
		err := q.charge(ctx, a, item, &creation{namespace: pod.Namespace})
		if !apierrors.IsConflict(err) || ctx.Err() != nil {
			return err
		}
		if _, err := q.recount(ctx, pod.Namespace, true); err != nil && !apierrors.IsConflict(err) {
			return err
		}
	}
}

// item is an object as quotas count it.
func (q *Quotas) item(k *registry.Kind, obj runtime.Object) quota.Item {
	item := quota.Item{Resource: k.Resource(), Object: obj}
	if pod, ok := obj.(*corev1.Pod); ok {
		q.mu.Lock()
		defer q.mu.Unlock()
		item.Visits = q.visits[pod.UID]
	}
	return item
}

func (q *Quotas) enter(pod *corev1.Pod, by int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.visits[pod.UID] += by; q.visits[pod.UID] <= 0 {
		delete(q.visits, pod.UID)
	}
}
