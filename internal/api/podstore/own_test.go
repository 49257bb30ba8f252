// SPDX-License-Identifier: Apache-2.0

package podstore

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/podspec"
)

// IX-08, EC-19: what a node publishes of a pod neither changes nor removes what only the server writes of it.
func TestOwnIsKept(t *testing.T) {
	tainted := corev1.PodCondition{Type: debugrun.Tainted, Status: corev1.ConditionTrue, Reason: debugrun.TaintedByExec, Message: "exec by jane into main"}
	other := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	forged := tainted
	forged.Message = "nobody"
	pod := func(added string, all ...corev1.PodCondition) *corev1.Pod {
		p := &corev1.Pod{Status: corev1.PodStatus{Conditions: all}}
		if added != "" {
			p.Annotations = map[string]string{podspec.AddedAnnotation: added}
		}
		return p
	}
	for _, row := range []struct {
		name           string
		pod, old, want *corev1.Pod
	}{
		{"kept as it was", pod("x", other, forged), pod("y", tainted), pod("y", other, tainted)},
		{"put back", pod("", other), pod("y", tainted), pod("y", other, tainted)},
		{"not brought in", pod("x", other, forged), pod("", other), pod("", other)},
	} {
		KeepOwn(row.pod, row.old)
		if len(row.pod.Annotations) == 0 {
			row.pod.Annotations = nil
		}
		if !equality.Semantic.DeepEqual(row.pod, row.want) {
			t.Errorf("%s: %+v", row.name, row.pod)
		}
	}
}
