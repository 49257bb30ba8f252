// SPDX-License-Identifier: Apache-2.0

package tainteviction

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TestDecide: WL-07, who does not tolerate a taint NoExecute goes at once, who tolerates it for a while goes then.
func TestDecide(t *testing.T) {
	taint := func(key, value string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Value: value, Effect: effect}
	}
	a := taint("a", "1", corev1.TaintEffectNoExecute)
	b := taint("b", "", corev1.TaintEffectNoExecute)
	by := func(key, value string, op corev1.TolerationOperator, seconds *int64) corev1.Toleration {
		return corev1.Toleration{Key: key, Value: value, Operator: op, TolerationSeconds: seconds,
			Effect: corev1.TaintEffectNoExecute}
	}
	exists := corev1.TolerationOpExists
	for name, row := range map[string]struct {
		taints []corev1.Taint
		by     []corev1.Toleration
		want   Decision
	}{
		"no taint":                {nil, nil, Decision{}},
		"one that only keeps out": {[]corev1.Taint{taint("a", "", corev1.TaintEffectNoSchedule)}, nil, Decision{}},
		"not tolerated":           {[]corev1.Taint{a}, nil, Decision{Goes: true}},
		"another value":           {[]corev1.Taint{a}, []corev1.Toleration{by("a", "2", "", nil)}, Decision{Goes: true}},
		"tolerated for ever":      {[]corev1.Taint{a}, []corev1.Toleration{by("a", "1", "", nil)}, Decision{}},
		"whatever there is":       {[]corev1.Taint{a, b}, []corev1.Toleration{by("", "", exists, nil)}, Decision{}},
		"for a while": {[]corev1.Taint{a}, []corev1.Toleration{by("a", "", exists, ptr.To[int64](5))},
			Decision{true, 5 * time.Second}},
		"below zero": {[]corev1.Taint{a}, []corev1.Toleration{by("a", "", exists, ptr.To[int64](-1))}, Decision{Goes: true}},
		"the shortest": {[]corev1.Taint{a, b}, []corev1.Toleration{by("a", "", exists, ptr.To[int64](9)),
			by("b", "", exists, ptr.To[int64](4))}, Decision{true, 4 * time.Second}},
		"one of two": {[]corev1.Taint{a, b}, []corev1.Toleration{by("a", "", exists, ptr.To[int64](9))}, Decision{Goes: true}},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: row.by}}
		if got := Decide(pod, row.taints); got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}
