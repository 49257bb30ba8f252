// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// DC-14: a node is looked at from its own namespaces; what a profile gives is given, and one that does not fit is refused.
func TestNodePod(t *testing.T) {
	p, err := NodePod("vm", "", 0)
	if err != nil || p.Spec.NodeName != "vm" || !p.Spec.HostNetwork || !p.Spec.HostPID || !p.Spec.HostIPC || p.Spec.ActiveDeadlineSeconds != nil ||
		p.Spec.Volumes[0].HostPath.Path != "/" || p.Spec.Containers[0].SecurityContext != nil {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err = NodePod("vm", "sysadmin", 90*time.Second); err != nil || !*p.Spec.Containers[0].SecurityContext.Privileged || *p.Spec.ActiveDeadlineSeconds != 90 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err = NodePod("vm", "restricted", 0); err == nil {
		t.Error("restricted is taken")
	}
}

// A pod that cannot start is not waited for.
func TestNodePodUp(t *testing.T) {
	for name, c := range map[string]struct {
		state corev1.ContainerStatus
		phase corev1.PodPhase
		up    bool
		fails bool
	}{
		"starting": {waiting("debugger", "ContainerCreating", nil), corev1.PodPending, false, false},
		"running":  {running("debugger"), corev1.PodRunning, true, false},
		"no image": {waiting("debugger", "ErrImageNeverPull", nil), corev1.PodPending, false, true},
		"refused":  {corev1.ContainerStatus{}, corev1.PodFailed, false, true},
	} {
		p := podOf([]corev1.ContainerStatus{c.state})
		p.Status.Phase = c.phase
		if up, err := NodePodUp(p); up != c.up || (err != nil) != c.fails {
			t.Errorf("%s: %t, %v", name, up, err)
		}
	}
}
