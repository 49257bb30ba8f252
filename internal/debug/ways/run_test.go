// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// DC-06: how a run ended is told by the word that it was asked for with, and of no other run.
func TestEndOf(t *testing.T) {
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 5}}
	for name, c := range map[string]struct {
		kept, request   string
		run, status     int
		state           corev1.ContainerState
		known, replaced bool
	}{
		"its own":             {kept: "mine", request: "mine", state: ended, known: true},
		"somebody else's":     {kept: "theirs", request: "mine", state: ended, replaced: true},
		"one without a word":  {request: "mine", state: ended},
		"asked without":       {kept: "theirs", state: ended},
		"it runs":             {kept: "mine", request: "mine", state: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		"the run before it":   {kept: "mine", request: "mine", run: 1, state: ended},
		"its own, the second": {kept: "mine", request: "mine", run: 1, status: 1, state: ended, known: true},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{EphemeralContainers: []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}}}
		pod.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "debug", RestartCount: int32(c.status), State: c.state}}
		if err := podspec.SetDebugRuns(pod, podspec.DebugRuns{"debug": {Run: c.run, Request: c.kept}}); err != nil {
			t.Fatal(err)
		}
		if got := EndOf(pod, "debug", c.request); (got != nil) != c.known {
			t.Errorf("%s: %+v", name, got)
		}
		if got := Replaced(pod, "debug", c.request); got != c.replaced {
			t.Errorf("%s: replaced %t", name, got)
		}
	}
}
