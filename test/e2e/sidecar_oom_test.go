// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestSidecarOutOfMemory: a sidecar that takes more than its limit is reported OOMKilled, it alone, and started again, also in a
// pod that is never restarted (SC-05, SC-21, PL-08).
func TestSidecarOutOfMemory(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	limit := func(c corev1.Container) corev1.Container {
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("48Mi")}
		return c
	}
	pod := WithInit(st.Pod("p", limit(st.Act("main", "-until"))), Sidecar(limit(st.Act("greedy", "-alloc", "100"))), Sidecar(limit(st.Act("modest"))))
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	s.Create(pod)
	p := s.Wait("p", "have greedy restarted", func(p *corev1.Pod) bool {
		c := Status(p, "greedy")
		return c != nil && c.RestartCount >= 1 && Ended(p, "greedy") != nil
	})
	if end := Ended(p, "greedy"); end.Reason != "OOMKilled" || end.ExitCode != 137 {
		t.Errorf("PL-08 it ended %+v", end)
	}
	st.Await("main", "up", 1)
	st.Set("main", "go")
	p = s.WaitPhase("p", corev1.PodSucceeded)
	for _, name := range []string{"main", "modest"} {
		if end := Ended(p, name); end == nil || end.Reason == "OOMKilled" || Status(p, name).RestartCount != 0 {
			t.Errorf("PL-08 its neighbour %s ended %+v", name, end)
		}
	}
}
