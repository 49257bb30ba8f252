// SPDX-License-Identifier: Apache-2.0

package tainteviction

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Decision is when a pod goes.
type Decision struct {
	Goes  bool
	After time.Duration // from when it first had to tolerate the taints; 0: at once
}

// Decide judges a pod by the taints of its node: it goes at once if it does not tolerate one of those that drive pods
// away, and after the shortest time for which it tolerates them, if that is limited.
func Decide(pod *corev1.Pod, taints []corev1.Taint) Decision {
	var d Decision
	for _, t := range taints {
		if t.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		i := slices.IndexFunc(pod.Spec.Tolerations, func(by corev1.Toleration) bool { return tolerates(by, t) })
		if i < 0 {
			return Decision{Goes: true}
		}
		seconds := pod.Spec.Tolerations[i].TolerationSeconds
		if seconds == nil {
			continue
		}
		after := time.Duration(max(0, *seconds)) * time.Second
		if !d.Goes || after < d.After {
			d = Decision{Goes: true, After: after}
		}
	}
	return d
}

// tolerates is the rule of taints: the same key (or any), the same value (or any), the same effect (or any).
func tolerates(by corev1.Toleration, t corev1.Taint) bool {
	switch {
	case by.Effect != "" && by.Effect != t.Effect, by.Key != "" && by.Key != t.Key:
		return false
	case by.Operator == corev1.TolerationOpExists:
		return true
	}
	return by.Key != "" && (by.Operator == "" || by.Operator == corev1.TolerationOpEqual) && by.Value == t.Value
}
