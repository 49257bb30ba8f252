// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestHoldOnFailure: with the annotation wherry.dev/hold-on-failure what failed is left as it is, everybody is told why, and it can
// be looked at; when the annotation is taken away the pod goes on as it would have.
func TestHoldOnFailure(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	const hold = "wherry.dev/hold-on-failure"
	once := Never("once", Sh("echo evidence >/tmp/left; echo last words; exit 7"), Tool("sleep"))
	again := NewPod("again", Sh("exit 8"))
	for _, p := range []*corev1.Pod{once, again} {
		p.Annotations = map[string]string{hold: "1h"}
		s.Create(p)
	}

	s.WaitWaiting("again", "main", "HeldOnFailure")
	s.Kubectl("get", "pod", "again").Has("HeldOnFailure")
	s.Kubectl("describe", "pod", "again").Has("HeldOnFailure", "held for debugging until", hold)
	s.WaitEvent("again", "HeldOnFailure", "Container main failed with exit code 8 and is held for debugging until")

	s.WaitEvent("once", "HeldOnFailure", "exit code 7")
	s.Kubectl("exec", "once", "-c", "second", "--", "/tool", "exit", "0") // its neighbour goes on
	p := s.Wait("once", "say that it is held", func(p *corev1.Pod) bool { return p.Status.Reason == "HeldOnFailure" })
	s.Kubectl("get", "pod", "once").Has("HeldOnFailure")
	s.Kubectl("describe", "pod", "once").Has("HeldOnFailure", "held for debugging until")
	if p.Status.Phase != corev1.PodRunning || !strings.Contains(p.Status.Message, "[main]") || Ended(p, "main").ExitCode != 7 {
		t.Errorf("held, it is %s", summary(p))
	}
	s.addDebug("once", debugger("shell", "", Sh(Idle)))
	s.waitDebug("once", "shell", "running", isRunning)
	s.Kubectl("logs", "once", "-c", "main").Is("last words")

	s.Kubectl("annotate", "pod", "once", "again", hold+"-")
	s.WaitRestarts("again", "main", 1)
	s.Wait("once", "be held no more", func(p *corev1.Pod) bool { return p.Status.Reason == "" })
}

// TestHoldEnds: a pod that never restarts keeps its sandbox while its only container is held, and fails when the hold is over.
func TestHoldEnds(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	const hold = "wherry.dev/hold-on-failure"
	pod := Never("once", Sh("exit 7"))
	pod.Annotations = map[string]string{hold: "1h"}
	s.Create(pod)
	s.WaitEvent("once", "HeldOnFailure", "exit code 7")
	s.addDebug("once", debugger("shell", "", Sh(Idle)))
	s.waitDebug("once", "shell", "running", isRunning)
	s.Kubectl("annotate", "pod", "once", "--overwrite", hold+"=1s")
	p := s.WaitPhase("once", corev1.PodFailed)
	if c := debugStatus(p, "shell"); c.State.Terminated == nil {
		t.Errorf("EC-13 the pod has ended, and its debug container is %+v", c)
	}
	if p.Status.Reason != "" {
		t.Errorf("the pod has failed, and still says %s: %s", p.Status.Reason, p.Status.Message)
	}
}
