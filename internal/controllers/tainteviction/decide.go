// SPDX-License-Identifier: Apache-2.0

package tainteviction

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
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
		i := slices.IndexFunc(pod.Spec.Tolerations, func(by corev1.Toleration) bool {
			return podspec.TolerationOf(by, t)
		})
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
