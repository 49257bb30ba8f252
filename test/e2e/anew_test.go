// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestInitialisedAnew: a pod whose sandbox is lost shows itself as one that comes up until its main runs again: phase Pending, not
// initialised, in kubectl's words Init:0/2; all that ran runs again, in order, and is counted (PL-39, SC-19).
func TestInitialisedAnew(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	// The sandbox's process is found by the processes that it shares its namespace with. The init lasts until it is let go.
	pod := WithInit(st.Pod("p", st.Act("main")), st.Act("init", "-until"), Sidecar(st.Act("side")))
	share := true
	pod.Spec.ShareProcessNamespace = &share
	st.Set("init", "go")
	s.Create(pod)
	st.AwaitUp(s.WaitReady("p"))
	st.Clear("init", "go")
	st.Note("killed")
	kill(t, s.pauseOf("p", "main"))
	p := s.Wait("p", "be initialised anew", func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodPending && Status(p, "init").State.Running != nil && Status(p, "init").RestartCount == 1
	})
	if Condition(p, corev1.PodInitialized) != corev1.ConditionFalse || Condition(p, corev1.PodReady) != corev1.ConditionFalse {
		t.Errorf("PL-39 it is %s", summary(p))
	}
	for _, name := range []string{"side", "main"} {
		c := Status(p, name)
		if c.State.Waiting == nil || c.State.Waiting.Reason != "PodInitializing" || c.LastTerminationState.Terminated == nil {
			t.Errorf("PL-39 %s is %+v", name, c)
		}
	}
	s.Kubectl("get", "pod", "p").Has("Init:0/2").HasNot("Error")
	st.Set("init", "go")
	p = s.Wait("p", "be ready again", func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodRunning && Condition(p, corev1.PodReady) == corev1.ConditionTrue && Condition(p, corev1.PodInitialized) == corev1.ConditionTrue
	})
	for _, name := range []string{"init", "side", "main"} {
		if c := Status(p, name); c.RestartCount != 1 {
			t.Errorf("PL-39 %s was restarted %d times, want 1", name, c.RestartCount)
		}
	}
	st.Await("main", "start", 2).After("killed").InOrder("SC-19", "init start", "init end", "side start", "main start")
}

// TestNeverInitialisedTwice: an init that has succeeded is not run again in a pod with restartPolicy Never, whose sandbox is lost before
// its main has started; such a pod can come to nothing any more and fails with that for its reason (PL-39, PL-02).
func TestNeverInitialisedTwice(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	side := Sidecar(st.Act("side"))
	side.StartupProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1000,
		ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(9)}}} // nobody listens: the main does not start
	pod := WithInit(st.Pod("p", st.Act("main")), st.Act("init", "-until"), side)
	share := true
	pod.Spec.ShareProcessNamespace, pod.Spec.RestartPolicy = &share, corev1.RestartPolicyNever
	st.Set("init", "go")
	s.Create(pod)
	s.Wait("p", "have its sidecar running", func(p *corev1.Pod) bool {
		c := Status(p, "side")
		return c != nil && c.State.Running != nil
	})
	kill(t, s.pauseOf("p", "side"))
	p := s.WaitPhase("p", corev1.PodFailed)
	if p.Status.Reason != "SandboxLost" || !strings.Contains(p.Status.Message, "Init container init would have to run again") {
		t.Errorf("PL-39 it failed for %q: %s", p.Status.Reason, p.Status.Message)
	}
	if c := Status(p, "init"); c == nil || c.RestartCount != 0 || c.State.Terminated == nil || c.State.Terminated.ExitCode != 0 {
		t.Errorf("PL-02 the init is %+v", c)
	}
	if c := Status(p, "main"); c == nil || c.State.Running != nil || c.State.Terminated != nil {
		t.Errorf("the main is %+v", c)
	}
}
