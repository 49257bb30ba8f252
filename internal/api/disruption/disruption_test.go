// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/policy"
)

func guarded(phase corev1.PodPhase, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"app": "web"}},
		Status: corev1.PodStatus{Phase: phase, Conditions: []corev1.PodCondition{{Type: corev1.PodReady,
			Status: ready}}}}
}

func guard(change func(*policy.PodDisruptionBudget)) []policy.PodDisruptionBudget {
	b := policy.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "b", Generation: 2},
		Spec: policy.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
		Status: policy.PodDisruptionBudgetStatus{ObservedGeneration: 2, DisruptionsAllowed: 1, CurrentHealthy: 3,
			DesiredHealthy: 2}}
	if change != nil {
		change(&b)
	}
	return []policy.PodDisruptionBudget{b}
}

// TestJudgeEviction proves WL-05 and PL-10: when a budget lets a pod go, at what cost, and why not.
func TestJudgeEviction(t *testing.T) {
	running := guarded(corev1.PodRunning, corev1.ConditionTrue)
	unready := guarded(corev1.PodRunning, corev1.ConditionFalse)
	none := func(b *policy.PodDisruptionBudget) { b.Status.DisruptionsAllowed, b.Status.CurrentHealthy = 0, 2 }
	always := policy.AlwaysAllow
	for name, row := range map[string]struct {
		pod     *corev1.Pod
		budgets []policy.PodDisruptionBudget
		as      bool
		charged bool
		code    int32
		cause   string
	}{
		"no budget": {pod: running},
		"another's budget": {pod: running, budgets: guard(func(b *policy.PodDisruptionBudget) {
			b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
		})},
		"no selector": {pod: running,
			budgets: guard(func(b *policy.PodDisruptionBudget) { b.Spec.Selector = nil })},
		"room":        {pod: running, budgets: guard(nil), charged: true},
		"finished":    {pod: guarded(corev1.PodSucceeded, corev1.ConditionFalse), budgets: guard(none)},
		"not started": {pod: guarded(corev1.PodPending, corev1.ConditionFalse), budgets: guard(none), as: true},
		"no room": {pod: running, budgets: guard(none), code: 429,
			cause: "needs 2 healthy pods and has 2 currently"},
		"not seen yet": {pod: running, budgets: guard(func(b *policy.PodDisruptionBudget) { b.Generation = 3 }),
			code: 429, cause: "still being processed"},
		"negative": {pod: running,
			budgets: guard(func(b *policy.PodDisruptionBudget) { b.Status.DisruptionsAllowed = -1 }), code: 403,
			cause: "negative"},
		"two budgets":      {pod: running, budgets: append(guard(nil), guard(nil)...), code: 500},
		"unready, healthy": {pod: unready, budgets: guard(none), as: true},
		"unready, unhealthy": {pod: unready,
			budgets: guard(func(b *policy.PodDisruptionBudget) { none(b); b.Status.CurrentHealthy = 1 }), code: 429,
			cause: "has 1 currently"},
		"unready, always": {pod: unready, budgets: guard(func(b *policy.PodDisruptionBudget) {
			b.Status.CurrentHealthy, b.Spec.UnhealthyPodEvictionPolicy = 0, &always
		}), as: true},
		"failed to be counted": {pod: running, budgets: guard(func(b *policy.PodDisruptionBudget) {
			none(b)
			b.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition,
				Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: "no scale"}}
		}), code: 429, cause: "failed sync: no scale"},
	} {
		t.Run(name, func(t *testing.T) {
			how, err := Judge(row.pod, row.budgets, time.Unix(1, 0))
			if how.Unchanged != row.as || (how.Budget != nil) != row.charged {
				t.Errorf("%+v", how)
			}
			if how.Budget != nil && (how.Budget.Status.DisruptionsAllowed != 0 ||
				!how.Budget.Status.DisruptedPods["p"].Time.Equal(time.Unix(1, 0)) ||
				len(row.budgets[0].Status.DisruptedPods) > 0) {
				t.Errorf("%+v", how.Budget.Status)
			}
			if (err == nil) != (row.code == 0) {
				t.Fatal(err)
			}
			status, ok := err.(apierrors.APIStatus) //nolint:errorlint // Judge's own
			if err == nil || ok && status.Status().Code == row.code && (row.cause == "" ||
				strings.Contains(status.Status().Details.Causes[0].Message, row.cause) &&
					status.Status().Details.Causes[0].Type == policyv1.DisruptionBudgetCause) {
				return
			}
			t.Errorf("%+v", err)
		})
	}
}
