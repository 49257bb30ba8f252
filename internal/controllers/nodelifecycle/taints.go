// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Wanted are the taints that a node should have: its own, and of those that mirror conditions the right ones.
func Wanted(node *corev1.Node) []corev1.Taint {
	out := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule && slices.Contains(mirrored, t.Key)
	})
	for _, key := range mirrored {
		if applies(node, key) {
			out = append(out, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
	}
	return out
}

// mirrored are the taints that this package gives and takes.
var mirrored = []string{
	corev1.TaintNodeNotReady,
	corev1.TaintNodeUnreachable,
	corev1.TaintNodeUnschedulable,
	corev1.TaintNodeMemoryPressure,
	corev1.TaintNodeDiskPressure,
	corev1.TaintNodePIDPressure,
	corev1.TaintNodeNetworkUnavailable,
}

func applies(node *corev1.Node, key string) bool {
	switch key {
	case corev1.TaintNodeNotReady:
		// A node that has not reported anything yet is not ready either.
		s := status(node, corev1.NodeReady)
		return s == corev1.ConditionFalse || s == ""
	case corev1.TaintNodeUnreachable:
		return status(node, corev1.NodeReady) == corev1.ConditionUnknown
	case corev1.TaintNodeUnschedulable:
		return node.Spec.Unschedulable
	case corev1.TaintNodeMemoryPressure:
		return status(node, corev1.NodeMemoryPressure) == corev1.ConditionTrue
	case corev1.TaintNodeDiskPressure:
		return status(node, corev1.NodeDiskPressure) == corev1.ConditionTrue
	case corev1.TaintNodePIDPressure:
		return status(node, corev1.NodePIDPressure) == corev1.ConditionTrue
	case corev1.TaintNodeNetworkUnavailable:
		return status(node, corev1.NodeNetworkUnavailable) == corev1.ConditionTrue
	}
	return false
}

func status(node *corev1.Node, t corev1.NodeConditionType) corev1.ConditionStatus {
	for _, c := range node.Status.Conditions {
		if c.Type == t {
			return c.Status
		}
	}
	return ""
}
