// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// TestOfClaims proves PL-36: for /metrics, pods with claims are asked about at the same time, and no others: one whose
// driver answers late is waited for beside the rest. What is found is in the pods' order.
func TestOfClaims(t *testing.T) {
	pod := func(name, claim string) *corev1.Pod {
		p := &corev1.Pod{}
		p.Name = name
		v := corev1.Volume{Name: "v"}
		if claim != "" {
			v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}
		}
		p.Spec.Volumes = []corev1.Volume{v}
		return p
	}
	quick := make(chan struct{})
	got := ofClaims([]*corev1.Pod{pod("late", "a"), pod("none", ""), pod("quick", "b")}, func(p *corev1.Pod) []statsapi.VolumeStats {
		switch p.Name {
		case "late":
			<-quick // for ever, if they were asked about one after another
		case "quick":
			close(quick)
		}
		return []statsapi.VolumeStats{{Name: p.Name}}
	})
	if len(got) != 2 || got[0].Name != "late" || got[1].Name != "quick" {
		t.Errorf("PL-36: %+v", got)
	}
}
