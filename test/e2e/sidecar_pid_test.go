// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TestSidecarSharedNamespace: sidecars are in the shared process namespace too, the first of them already (PID-02, PID-04); when
// its PID 1 is killed the pod begins again in a new sandbox, from its first init, in order, each container by its policy
// (PID-06, SC-02, SC-05).
func TestSidecarSharedNamespace(t *testing.T) {
	t.Parallel()
	s := shared(t)
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure} {
		t.Run("PID-06 "+string(policy), func(t *testing.T) {
			t.Parallel()
			s := s.With(t)
			st := s.NewStage(t)
			name := map[corev1.RestartPolicy]string{corev1.RestartPolicyAlways: "always", corev1.RestartPolicyOnFailure: "onfailure"}[policy]
			pod := WithInit(st.Pod(name, st.Act("main")), st.Act("init", "-for", "1ms"), Starting(Sidecar(st.Act("first")), Healthy("first")), Sidecar(st.Act("second")))
			pod.Spec.ShareProcessNamespace, pod.Spec.RestartPolicy = ptr.To(true), policy
			s.Create(pod)
			st.AwaitUp(s.WaitReady(name))
			ns := s.pidNamespace(name, "main")
			for _, c := range []string{"first", "second"} {
				if got := s.pidNamespace(name, c); got != ns {
					t.Errorf("PID-02 %s is in %s, the main in %s", c, got, ns)
				}
			}
			st.Note("killed")
			pause := s.pauseOf(name, "main")
			kill(t, pause)
			p := s.Wait(name, "run again", func(p *corev1.Pod) bool {
				return Status(p, "main").RestartCount > 0 && Condition(p, corev1.PodReady) == corev1.ConditionTrue
			})
			play := st.Await("main", "start", 2).After("killed")
			play.InOrder("PID-06", "init start", "init end", "first start", "second start", "main start")
			for _, c := range []string{"init", "first", "second", "main"} {
				play.Happened("PID-06", c, "start", 1)
				if n := Status(p, c).RestartCount; c != "init" && n != 1 {
					t.Errorf("PID-06 %s was restarted %d times", c, n)
				}
			}
			if got := s.pauseOf(name, "first"); got == pause { // the namespace may have the old one's number
				t.Error("PID-06 the namespace is the old one")
			}
		})
	}
	t.Run("PID-06 Never", func(t *testing.T) {
		t.Parallel()
		s := s.With(t)
		st := s.NewStage(t)
		pod := WithInit(st.Pod("never", st.Act("main")), Sidecar(st.Act("side")))
		pod.Spec.ShareProcessNamespace, pod.Spec.RestartPolicy = ptr.To(true), corev1.RestartPolicyNever
		s.Create(pod)
		st.AwaitUp(s.WaitReady("never"))
		kill(t, s.pauseOf("never", "main"))
		p := s.WaitPhase("never", corev1.PodFailed)
		if end := Ended(p, "main"); end == nil || end.ExitCode != 137 {
			t.Errorf("PID-06 the main ended %+v", end)
		}
		st.Play().Happened("PID-06", "main", "start", 1)
	})
}

// TestSidecarPauseDies: without a shared namespace a pod that loses its sandbox stops what still runs, and begins again in order,
// with no two instances of a container at once (PL-10, SC-02, SC-05).
func TestSidecarPauseDies(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	s.Create(WithInit(st.Pod("p", st.Act("main", "-term", "300ms")), st.Act("init", "-for", "1ms"), Sidecar(st.Act("side", "-term", "300ms"))))
	st.AwaitUp(s.WaitReady("p"))
	k := &kit{Space: s, t: t}
	st.Note("killed")
	kill(t, k.pausePID("p"))
	p := s.Wait("p", "run again", func(p *corev1.Pod) bool {
		return Status(p, "main").RestartCount == 1 && Condition(p, corev1.PodReady) == corev1.ConditionTrue
	})
	play := st.Await("main", "start", 2).After("killed")
	play.InOrder("SC-02", "main end", "init start", "init end", "side start", "main start")
	play.InOrder("SC-02", "side end", "init start")
	if n := Status(p, "side").RestartCount; n != 1 {
		t.Errorf("SC-05 the sidecar was restarted %d times", n)
	}
}

// pidNamespace is the process namespace of a container.
func (s *Space) pidNamespace(pod, container string) string {
	s.T.Helper()
	return readLink(s.T, s.PIDOf(pod, container), "ns/pid")
}

// pauseOf is the process that is PID 1 in a container's namespace, on the node.
func (s *Space) pauseOf(pod, container string) int {
	s.T.Helper()
	k := &kit{Space: s, t: s.T.(*testing.T)}
	pid := k.pausePID(pod)
	if readLink(s.T, pid, "ns/pid") != s.pidNamespace(pod, container) {
		s.T.Fatal("PID-04 the pod's pause is not in its containers' namespace")
	}
	return pid
}

func readLink(t testing.TB, pid int, name string) string {
	t.Helper()
	to, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return to
}
