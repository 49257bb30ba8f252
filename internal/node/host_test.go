// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/work"
)

// PL-36: one can exec into a container that runs at once after a restart of the agent, before its worker has looked.
func TestContainerID(t *testing.T) {
	p := &corev1.Pod{}
	p.Name = "p"
	p.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "runs", ContainerID: "containerd://old", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		{Name: "waits", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}}
	box := plan.Seen{Sandboxes: []plan.Sandbox{{ID: "box"}}}
	both := box
	both.Containers = []plan.Container{{ID: "new", Name: "runs"}}
	for _, tt := range []struct {
		name, container string
		seen            plan.Seen
		want, says      string
	}{
		{"nobody has looked", "runs", plan.Seen{}, "old", ""},
		{"somebody has", "runs", both, "new", ""},
		{"it is gone", "runs", box, "", `container "runs" in pod "p" is waiting to start: ContainerCreating`},
		{"it did not run", "waits", plan.Seen{}, "", `container "waits" in pod "p" is waiting to start: PodInitializing`},
	} {
		got, err := containerID(work.View{Pod: p, Seen: tt.seen}, tt.container)
		if got != tt.want || tt.says == "" && err != nil || tt.says != "" && (err == nil || err.Error() != tt.says) {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
}
