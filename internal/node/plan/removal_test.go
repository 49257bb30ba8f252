// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// PL-01: the removal of what a deleted pod has left on the node is no news of the pod: its last status is the one that was stored
// when its containers had ended, and is not stored again and again while they go.
func TestRemovalChangesNoStatus(t *testing.T) {
	f := about("im", corev1.RestartPolicyAlways).boxed().ended("i0", 0, 0, 2*time.Minute).runs("m1", 0)
	for i := range f.Seen.Containers {
		f.Seen.Containers[i].StopSignal = "SIGTERM"
	}
	f.told().deleted(time.Second)
	last := &f.Seen.Containers[1]
	last.FinishedAt, last.Reason = f.Now, "Completed"
	f.Seen.Sandboxes[0].Ready, f.Seen.Sandboxes[0].IPs = false, nil
	f.Heard.Stopped[0] = true
	f.told()
	want := f.Pod.Status.DeepCopy()
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"containers removed", func() { f.Seen.Containers = nil }},
		{"sandbox removed", func() { f.Seen.Sandboxes = nil }},
		{"volumes released", func() { f.Seen.Volumes, f.Heard.Prepared = false, false }},
		{"logs removed", func() { f.Seen.Logs = false }},
	} {
		step.do()
		got := Next(f.Input).Status
		if !equality.Semantic.DeepEqual(&got, want) {
			t.Errorf("%s: status is now\n%+v\nbut was\n%+v", step.name, got, *want)
		}
		f.told()
	}
}
