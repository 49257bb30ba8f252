// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestWanted: PL-13, conditions of a node keep pods off it.
func TestWanted(t *testing.T) {
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue}
	foreign := corev1.Taint{Key: "own", Value: "x", Effect: corev1.TaintEffectNoExecute}
	notReady := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	for _, tc := range []struct {
		name       string
		conditions []corev1.NodeCondition
		cordoned   bool
		have       []corev1.Taint
		want       []string
	}{
		{"PL-13 ready", []corev1.NodeCondition{ready}, false, nil, nil},
		{"PL-13 ready again", []corev1.NodeCondition{ready}, false, []corev1.Taint{notReady, foreign}, []string{"own"}},
		{"PL-13 new", nil, false, nil, []string{corev1.TaintNodeNotReady}},
		{"PL-13 not ready", []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}, false, []corev1.Taint{notReady}, []string{corev1.TaintNodeNotReady}},
		{"PL-13 silent", []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}, false, nil, []string{corev1.TaintNodeUnreachable}},
		{"PL-13 cordoned", []corev1.NodeCondition{ready}, true, nil, []string{corev1.TaintNodeUnschedulable}},
		{"PL-13 under pressure", []corev1.NodeCondition{ready,
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue},
			{Type: corev1.NodePIDPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse}}, false, nil,
			[]string{corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure, corev1.TaintNodePIDPressure}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			node := &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: tc.cordoned, Taints: tc.have}, Status: corev1.NodeStatus{Conditions: tc.conditions}}
			var got []string
			for _, taint := range Wanted(node) {
				got = append(got, taint.Key)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
