// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/apis/policy"
)

// mostDisrupted is how many evicted pods a budget may hold that its controller has not seen go.
const mostDisrupted = 2000

// violates is what every refusal for a budget's sake begins with: kubectl drain shows it, and tries again.
const violates = "Cannot evict pod as it would violate the pod's disruption budget."

// internalServerError is a code of HTTP, whose package makes calls.
const internalServerError = 500

// Way is how a pod is evicted.
type Way struct {
	Unchanged bool                        // only as it was looked at: had it changed, a budget might hold for it
	Budget    *policy.PodDisruptionBudget // to be written before; nil: none is charged
}

// Judge says how a pod may be evicted, under the budgets of its namespace, or why not.
func Judge(pod *corev1.Pod, budgets []policy.PodDisruptionBudget, now time.Time) (Way, error) {
	switch {
	case pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed,
		pod.DeletionTimestamp != nil:
		return Way{}, nil // it is no loss any more
	case pod.Status.Phase == corev1.PodPending:
		return Way{Unchanged: true}, nil // it is no loss yet
	}
	var of []*policy.PodDisruptionBudget
	for i := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(budgets[i].Spec.Selector)
		if err == nil && selector.Matches(labels.Set(pod.Labels)) {
			of = append(of, &budgets[i])
		}
	}
	switch {
	case len(of) == 0:
		return Way{}, nil
	case len(of) > 1:
		return Way{}, severalBudgets()
	}
	b := of[0]
	if !ready(pod) && unreadyMayGo(b) {
		return Way{Unchanged: true}, nil
	}
	if err := refusedBy(b); err != nil {
		return Way{}, err
	}
	return Way{Budget: charge(b, pod.Name, now)}, nil
}

func ready(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// unreadyMayGo reports whether a pod that is not ready, and so is not counted, may go without being charged.
func unreadyMayGo(b *policy.PodDisruptionBudget) bool {
	if p := b.Spec.UnhealthyPodEvictionPolicy; p != nil && *p == policy.AlwaysAllow {
		return true
	}
	return b.Status.DesiredHealthy > 0 && b.Status.CurrentHealthy >= b.Status.DesiredHealthy
}

// charge is the budget with one more pod away.
func charge(b *policy.PodDisruptionBudget, pod string, now time.Time) *policy.PodDisruptionBudget {
	b = b.DeepCopy()
	b.Status.DisruptionsAllowed--
	if b.Status.DisruptionsAllowed == 0 {
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: policyv1.DisruptionAllowedCondition,
			Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason,
			ObservedGeneration: b.Status.ObservedGeneration, LastTransitionTime: metav1.NewTime(now)})
	}
	if b.Status.DisruptedPods == nil {
		b.Status.DisruptedPods = map[string]metav1.Time{}
	}
	b.Status.DisruptedPods[pod] = metav1.NewTime(now)
	return b
}

// refusedBy says why no pod may go now.
func refusedBy(b *policy.PodDisruptionBudget) error {
	forbidden := func(why, cause string) error {
		return because(apierrors.NewForbidden(policy.Resource("poddisruptionbudget"), b.Name, errors.New(why)),
			fmt.Sprintf("The disruption budget %s does not allow evicting pods currently: %s", b.Name, cause))
	}
	switch {
	case b.Status.ObservedGeneration < b.Generation:
		return beingProcessed(b.Name)
	case b.Status.DisruptionsAllowed < 0:
		return forbidden("pdb disruptions allowed is negative", "pdb disruptions allowed is negative")
	case len(b.Status.DisruptedPods) > mostDisrupted:
		return forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller",
			"too many pending evictions not confirmed by PDB controller")
	case b.Status.DisruptionsAllowed == 0:
		return because(apierrors.NewTooManyRequests(violates, 0), exhausted(b))
	}
	return nil
}

// exhausted says why a budget allows none.
func exhausted(b *policy.PodDisruptionBudget) string {
	c := meta.FindStatusCondition(b.Status.Conditions, policyv1.DisruptionAllowedCondition)
	told := c != nil && c.Status == metav1.ConditionFalse && c.Message != ""
	switch {
	case told && c.Reason == policyv1.SyncFailedReason:
		return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently because it failed sync: %s",
			b.Name, c.Message)
	case b.Status.CurrentHealthy <= b.Status.DesiredHealthy:
		return fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.Name,
			b.Status.DesiredHealthy, b.Status.CurrentHealthy)
	case told:
		return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently (%s): %s", b.Name, c.Reason,
			c.Message)
	}
	return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently", b.Name)
}

// beingProcessed asks to come again: the budget's figures are of before, or change all the time.
func beingProcessed(name string) error {
	return because(apierrors.NewTooManyRequests(violates, 10),
		fmt.Sprintf("The disruption budget %s is still being processed by the server.", name))
}

func because(err *apierrors.StatusError, cause string) error {
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes,
		metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: cause})
	return err
}

func severalBudgets() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure,
		Code: internalServerError, Reason: metav1.StatusReasonInternalError,
		Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}}
}
