// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// numbered is what `tool lines` prints.
func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintln(&b, "line", i)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// TestLogs: kubectl logs of running and of ended containers with its options (PL-09).
func TestLogs(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(WithInit(Never("talk", Tool("lines", "20"), Tool("sleep")), Named("setup", Tool("lines", "2"))))
	p := s.Wait("talk", "have talked", func(p *corev1.Pod) bool { return Ended(p, "main") != nil && Status(p, "second").State.Running != nil })
	eachKubectl(t, s, func(t *testing.T, s *Space) {
		s.Kubectl("logs", "talk").Is(numbered(1, 20))
		s.Kubectl("logs", "talk", "-c", "second").Is("sleeping 24h0m0s")
		s.Kubectl("logs", "talk", "-c", "setup").Is(numbered(1, 2))
		s.Kubectl("logs", "talk", "--tail", "3").Is(numbered(18, 20))
		s.Kubectl("logs", "talk", "--tail", "0").Is("")
		s.Kubectl("logs", "talk", "--tail", "100").Is(numbered(1, 20))
		s.Kubectl("logs", "talk", "--limit-bytes", "10").Is("line 1\nlin")
		s.Kubectl("logs", "talk", "--since", "1h").Is(numbered(1, 20))
		s.Kubectl("logs", "talk", "--since-time", time.Now().Add(time.Hour).UTC().Format(time.RFC3339)).Is("")
		s.Kubectl("logs", "-l", "app=talk", "-c", "main", "--tail", "1").Is("line 20")
		s.Kubectl("logs", "talk", "--all-containers", "--prefix").Has("[pod/talk/main] line 1\n", "[pod/talk/second] sleeping", "[pod/talk/setup] line 2\n")
		stamped := s.Kubectl("logs", "talk", "--timestamps", "--tail", "1").Lines()[0]
		stamp, text, _ := strings.Cut(stamped, " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil || text != "line 20" || at.Before(p.CreationTimestamp.Time) || at.After(time.Now()) {
			t.Errorf("a line with its time is %q (%v)", stamped, err)
		}
		s.Kubectl("logs", "-f", "talk").Is(numbered(1, 20)) // of an ended container -f ends
		s.KubectlFails("logs", "talk", "-c", "nosuch").Says("container nosuch is not valid for pod talk")
		s.KubectlFails("logs", "talk", "--previous").Says(`previous terminated container "main" in pod "talk" not found`)
		s.KubectlFails("logs", "nosuch").Says(`pods "nosuch" not found`)
	})
}

// TestLogsSince: --since leaves out what is older (PL-09).
func TestLogsSince(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	s.Create(NewPod("slow", Sh("echo old; sleep 3; echo new; "+Idle)))
	s.WaitReady("slow")
	f := s.Start("logs", "-f", "slow", "--timestamps")
	_, last, _ := strings.Cut(f.Out.Await("new\n"), "old\n")
	at, _, _ := strings.Cut(last, " ")
	s.Kubectl("logs", "slow", "--since-time", at).Is("new")
	s.Kubectl("logs", "slow", "--since", "1s").HasNot("old") // which is three seconds old by now
	s.Kubectl("logs", "slow", "--since", "1h").Is("old\nnew")
	s.Kubectl("logs", "slow").Is("old\nnew")
}

// TestLogsFollow: -f gives what is written as it is written, and ends when the container ends, not before (PL-09).
func TestLogsFollow(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(Never("count", Tool("lines", "30", "50ms")))
	s.Wait("count", "run", func(p *corev1.Pod) bool { c := Status(p, "main"); return c != nil && c.State.Running != nil })
	f := s.Start("logs", "-f", "count")
	f.Out.Await("line 2\n")
	if code := f.Wait(); code != 0 || strings.TrimSpace(f.Out.Text()) != numbered(1, 30) {
		t.Errorf("kubectl logs -f ended with %d and\n%s%s", code, f.Out.Text(), f.Err.Text())
	}

	// From a container that is deleted meanwhile it gets the last words too.
	s.Create(NewPod("leaver", Tool("sleep")))
	pod := s.WaitReady("leaver")
	f = s.Start("logs", "-f", "leaver")
	f.Out.Await("sleeping")
	s.Delete("leaver")
	f.Out.Await("got terminated")
	f.Wait()
	s.WaitGone(pod)
}

// TestLogsPrevious: --previous is the log of the attempt before, of a container that crashed and of one that runs again
// (PL-09, PL-02).
func TestLogsPrevious(t *testing.T) {
	t.Parallel()
	s := shared(t)
	pod := NewPod("twice", Tool("once", "/mark/here", "5"), Tool("sleep"))
	pod.Spec.Volumes = []corev1.Volume{{Name: "mark", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "mark", MountPath: "/mark"}}
	s.Create(pod)
	s.WaitRestarts("twice", "main", 1)
	waiting := s.WaitWaiting("twice", "main", "CrashLoopBackOff")
	if waiting.RestartCount < 1 {
		t.Fatalf("restarts: %d", waiting.RestartCount)
	}
	s.Kubectl("logs", "twice", "-c", "main").Is("been here before")
	s.signal("twice", "second", "KILL")
	s.Wait("twice", "have second running again", func(p *corev1.Pod) bool {
		c := Status(p, "second")
		return c.RestartCount == 1 && c.State.Running != nil
	})
	s.Kubectl("logs", "twice", "-c", "second", "--previous").Is("sleeping 24h0m0s")
	s.Kubectl("logs", "twice", "-c", "second").Is("sleeping 24h0m0s")
}
