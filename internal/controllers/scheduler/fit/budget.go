// SPDX-License-Identifier: Apache-2.0

package fit

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Budget is what preemption minds of a PodDisruptionBudget. It is minded where there is a choice and broken where there
// is none (Kubernetes, "Pod Priority and Preemption").
type Budget struct {
	namespace string
	selector  labels.Selector
	allowed   int32
	gone      map[string]metav1.Time // pods that count as gone already, by name
}

// NewBudget reads a PodDisruptionBudget. Without a selector it protects nobody, with an empty one every pod of its
// namespace, as policy/v1 has it; one whose selector cannot be read protects nobody.
func NewBudget(b *policyv1.PodDisruptionBudget) Budget {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	return Budget{b.Namespace, selector, b.Status.DisruptionsAllowed, b.Status.DisruptedPods}
}

// split sorts out whom a budget protects, if all before were to go: those are protected for whom nothing is left of one
// of their budgets.
func split(pods []*Placed, budgets []Budget) (protected, others []*Placed) {
	left := make([]int32, len(budgets))
	for i, b := range budgets {
		left[i] = b.allowed
	}
	for _, p := range pods {
		breaks := false
		for i, b := range budgets {
			if !b.counts(p.Pod) {
				continue
			}
			left[i]--
			breaks = breaks || left[i] < 0
		}
		if breaks {
			protected = append(protected, p)
		} else {
			others = append(others, p)
		}
	}
	return protected, others
}

// counts reports whether it would cost the budget something if a pod went. One that is going has cost it already.
func (b Budget) counts(pod *corev1.Pod) bool {
	if _, gone := b.gone[pod.Name]; gone || pod.DeletionTimestamp != nil {
		return false
	}
	return b.namespace == pod.Namespace && b.selector.Matches(labels.Set(pod.Labels))
}
