// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestInitOrder: init containers run one by one in spec order, mains start after all of them, together (SC-02, SC-04, SC-28).
func TestInitOrder(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(WithInit(NewPod("ordered", Named("a", Tool("sleep")), Named("b", Tool("sleep"))),
		Named("first", Tool("exit", "0", "300ms")), Named("second", Tool("exit", "0", "300ms")), Named("third", Tool("exit", "0"))))
	p := s.WaitReady("ordered")
	var last metav1.Time
	for i, name := range []string{"first", "second", "third"} {
		st := p.Status.InitContainerStatuses[i]
		if st.Name != name || st.State.Terminated == nil || st.State.Terminated.Reason != "Completed" || !st.Ready || st.RestartCount != 0 {
			t.Fatalf("init container %d: %+v, want %s completed", i, st, name)
		}
		if st.State.Terminated.StartedAt.Before(&last) {
			t.Errorf("%s started at %s, before the one before it ended at %s", name, st.State.Terminated.StartedAt, last)
		}
		last = st.State.Terminated.FinishedAt
	}
	for _, name := range []string{"a", "b"} {
		if started := Status(p, name).State.Running.StartedAt; started.Before(&last) {
			t.Errorf("main %s started at %s, before the inits ended at %s", name, started, last)
		}
	}
	if Condition(p, corev1.PodInitialized) != corev1.ConditionTrue {
		t.Error("Initialized is not True")
	}
	s.Kubectl("logs", "ordered", "-c", "second").Is("exiting with 0")
}

// TestInitShown: while init containers run, the pod is Pending and kubectl shows Init:1/2; mains wait with PodInitializing
// (SC-02, SC-28, PL-01).
func TestInitShown(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(WithInit(NewPod("slow", Tool("sleep")), Named("quick", Tool("exit", "0")), Named("long", Tool("sleep"))))
	p := s.Wait("slow", "have its second init running", func(p *corev1.Pod) bool {
		c := Status(p, "long")
		return c != nil && c.State.Running != nil
	})
	if p.Status.Phase != corev1.PodPending || Condition(p, corev1.PodInitialized) != corev1.ConditionFalse {
		t.Errorf("phase %s, Initialized %s", p.Status.Phase, Condition(p, corev1.PodInitialized))
	}
	if w := Status(p, "main").State.Waiting; w == nil || w.Reason != "PodInitializing" {
		t.Errorf("main is %+v", Status(p, "main").State)
	}
	s.Kubectl("get", "pod", "slow").Has("0/1", "Init:1/2")
	s.KubectlFails("logs", "slow").Says(`container "main" in pod "slow" is waiting to start: PodInitializing`)
	s.KubectlFails("exec", "slow", "-c", "main", "--", "/tool", "env").Says("container")
	s.signal("slow", "long", "TERM")
	s.WaitReady("slow")
}

// TestInitFails: a failed init container fails the pod under Never and is retried otherwise; no main ever starts, and no later
// init (SC-02, SC-28, PL-02).
func TestInitFails(t *testing.T) {
	t.Parallel()
	s := shared(t)
	t.Run("SC-28 Never", func(t *testing.T) {
		t.Parallel()
		s := s.With(t)
		s.Create(WithInit(Never("never", Tool("sleep")), Named("bad", Tool("exit", "7")), Named("later", Tool("exit", "0"))))
		p := s.WaitPhase("never", corev1.PodFailed)
		if end := Ended(p, "bad"); end == nil || end.ExitCode != 7 {
			t.Errorf("bad: %+v", end)
		}
		for _, name := range []string{"later", "main"} {
			if c := Status(p, name); c.State.Waiting == nil || c.ContainerID != "" {
				t.Errorf("%s: %+v", name, c)
			}
		}
		s.Kubectl("get", "pod", "never").Has("0/1", "Init:Error")
	})
	t.Run("SC-28 Always", func(t *testing.T) {
		t.Parallel()
		s := s.With(t)
		s.Create(WithInit(NewPod("always", Tool("sleep")), Named("bad", Tool("exit", "7"))))
		s.WaitWaiting("always", "bad", "CrashLoopBackOff")
		s.Kubectl("get", "pod", "always").Has("0/1", "Init:CrashLoopBackOff")
	})
	t.Run("SC-28 second try succeeds", func(t *testing.T) {
		t.Parallel()
		s := s.With(t)
		pod := WithInit(NewPod("again", Tool("sleep")), Named("once", Tool("once", "/shared/mark", "1")))
		pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		pod.Spec.Volumes = []corev1.Volume{{Name: "shared", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		pod.Spec.InitContainers[0].VolumeMounts = []corev1.VolumeMount{{Name: "shared", MountPath: "/shared"}}
		s.Create(pod)
		p := s.WaitReady("again")
		if c := Status(p, "once"); c.RestartCount != 1 || c.State.Terminated == nil || c.State.Terminated.ExitCode != 0 {
			t.Errorf("once: %+v", c)
		}
		s.Kubectl("logs", "again", "-c", "once").Is("been here before")
	})
}
