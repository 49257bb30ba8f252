// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestRestartPolicies: what becomes of a container that exits 0 or 3 under each policy (PL-02).
func TestRestartPolicies(t *testing.T) {
	t.Parallel()
	s := shared(t)
	for _, c := range []struct {
		policy  corev1.RestartPolicy
		code    int
		restart bool
		phase   corev1.PodPhase
	}{
		{corev1.RestartPolicyNever, 0, false, corev1.PodSucceeded},
		{corev1.RestartPolicyNever, 3, false, corev1.PodFailed},
		{corev1.RestartPolicyOnFailure, 0, false, corev1.PodSucceeded},
		{corev1.RestartPolicyOnFailure, 3, true, corev1.PodRunning},
		{corev1.RestartPolicyAlways, 0, true, corev1.PodRunning},
		{corev1.RestartPolicyAlways, 3, true, corev1.PodRunning},
	} {
		t.Run(fmt.Sprintf("PL-02 %s exit %d", c.policy, c.code), func(t *testing.T) {
			t.Parallel()
			s := s.With(t)
			name := fmt.Sprintf("p-%s-%d", map[corev1.RestartPolicy]string{"Never": "n", "OnFailure": "f", "Always": "a"}[c.policy], c.code)
			pod := NewPod(name, Tool("exit", fmt.Sprint(c.code)))
			pod.Spec.RestartPolicy = c.policy
			s.Create(pod)
			reason := map[bool]string{true: "Completed", false: "Error"}[c.code == 0]
			if !c.restart {
				p := s.WaitPhase(name, c.phase)
				end := Status(p, "main").State.Terminated
				if end == nil || int(end.ExitCode) != c.code || end.Reason != reason || Status(p, "main").RestartCount != 0 || Condition(p, corev1.PodReady) != corev1.ConditionFalse {
					t.Errorf("it is %s", summary(p))
				}
				s.Kubectl("get", "pod", name).Has("0/1", reason)
				return
			}
			p := s.WaitRestarts(name, "main", 1)
			if end := Ended(p, "main"); end == nil || int(end.ExitCode) != c.code || end.Reason != reason {
				t.Errorf("it is %s; it ended before with %+v", summary(p), end)
			}
			waiting := s.WaitWaiting(name, "main", "CrashLoopBackOff")
			if !regexp.MustCompile(`^back-off \d+s restarting failed container=main pod=` + name + `_` + s.Namespace).MatchString(waiting.State.Waiting.Message) {
				t.Errorf("it waits because %q", waiting.State.Waiting.Message)
			}
			if p := s.Get(name); p.Status.Phase != c.phase {
				t.Errorf("phase %s", p.Status.Phase)
			}
		})
	}
}

// TestCrashLoop: the back-off of a container that ends at once is 10 s, 20 s, and shows as CrashLoopBackOff with its count and
// age in kubectl get pods and in the events (PL-02, PL-01).
func TestCrashLoop(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(NewPod("crash", Tool("exit", "1")))
	ended := map[int32]time.Time{} // by restart count
	started := map[int32]time.Time{}
	s.Wait("crash", "have been restarted 2 times", func(p *corev1.Pod) bool {
		c := Status(p, "main")
		if c == nil {
			return false
		}
		for _, end := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if end != nil && end == c.State.Terminated {
				ended[c.RestartCount], started[c.RestartCount] = end.FinishedAt.Time, end.StartedAt.Time
			} else if end != nil && c.State.Waiting != nil {
				ended[c.RestartCount], started[c.RestartCount] = end.FinishedAt.Time, end.StartedAt.Time
			}
		}
		return c.RestartCount >= 2 && (c.State.Waiting != nil || c.State.Terminated != nil)
	})
	// The first restart is at once (there is nothing to back off from yet), the second after 10 s; times have whole seconds.
	if wait := started[2].Sub(ended[1]); wait < 9*time.Second || wait > 9*time.Second+soon {
		t.Errorf("the second restart came %s after the end before, want 10s", wait)
	}
	p := s.WaitWaiting("crash", "main", "CrashLoopBackOff")
	if p.RestartCount < 2 {
		t.Errorf("restart count %d", p.RestartCount)
	}
	row := s.Kubectl("get", "pod", "crash")
	if !regexp.MustCompile(`crash +0/1 +CrashLoopBackOff +2 \(\d+s ago\) +\d+s`).MatchString(row.Out) {
		t.Errorf("kubectl get pod printed\n%s", row.Out)
	}
	s.WaitEvent("crash", "BackOff", "Back-off restarting failed container main in pod crash_"+s.Namespace)
	s.Kubectl("describe", "pod", "crash").Has("Reason:       CrashLoopBackOff", "Last State:     Terminated", "Exit Code:    1", "Restart Count:  2")
}

// TestMainsEndApart: a pod is Running while any of its mains runs, and Failed when all ended and one badly (PL-01, PL-02).
func TestMainsEndApart(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(Never("two", Tool("exit", "4"), Tool("sleep")))
	p := s.Wait("two", "have main ended", func(p *corev1.Pod) bool { return Ended(p, "main") != nil && Status(p, "second").State.Running != nil })
	if p.Status.Phase != corev1.PodRunning || Condition(p, corev1.PodReady) != corev1.ConditionFalse {
		t.Errorf("it is %s, ready %s", summary(p), Condition(p, corev1.PodReady))
	}
	s.Kubectl("get", "pod", "two").Has("1/2", "Error")
	s.Kubectl("exec", "two", "-c", "second", "--", "/tool", "env", "IMAGE_SAYS").Is("IMAGE_SAYS=hello")
	s.signal("two", "second", "TERM")
	p = s.WaitPhase("two", corev1.PodFailed)
	if end := Ended(p, "second"); end.ExitCode != 0 || end.Reason != "Completed" {
		t.Errorf("second ended %+v", end)
	}
}

// TestRestartedAfterKill: a container killed from outside is reported with its signal and restarted (PL-02, PL-11).
func TestRestartedAfterKill(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(NewPod("victim", Tool("stubborn"), Tool("sleep")))
	before := s.WaitReady("victim")
	s.signal("victim", "main", "KILL")
	p := s.Wait("victim", "run again", func(p *corev1.Pod) bool {
		return Status(p, "main").RestartCount == 1 && Condition(p, corev1.PodReady) == corev1.ConditionTrue
	})
	if end := Ended(p, "main"); end.ExitCode != 137 || end.Reason != "Error" {
		t.Errorf("it ended %+v", end)
	}
	if Status(p, "main").ContainerID == Status(before, "main").ContainerID {
		t.Error("the container is the same")
	}
	if Status(p, "second").ContainerID != Status(before, "second").ContainerID || Status(p, "second").RestartCount != 0 {
		t.Error("its neighbour was restarted")
	}
	if p.Status.PodIP != before.Status.PodIP {
		t.Errorf("the pod's address went from %s to %s", before.Status.PodIP, p.Status.PodIP)
	}
}
