// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// killedAs checks that a container ended with exit code 0 and counts as failed.
func killedAs(t *testing.T, p *corev1.Pod, container, fault string) {
	t.Helper()
	want := "killed because it " + fault
	if end := Ended(p, container); end == nil || end.ExitCode != 0 || end.Reason != "Error" || end.Message != want {
		t.Errorf("PL-16 %s ended with %+v, want exit code 0, reason Error, %q", container, end, want)
	}
}

// TestKilledHasFailed: a container that is killed because it fails its liveness probe has failed, though its program
// heeds the stop signal and exits with 0: OnFailure starts it again, Never ends the pod as failed (PL-16).
func TestKilledHasFailed(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	once := func(name string) *corev1.Probe {
		p := Healthy(name)
		p.FailureThreshold = 1
		return p
	}
	again := st.Pod("again", Living(st.Act("live"), once("live")))
	again.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	s.Create(again)
	s.WaitReady("again")
	st.Set("live", "sick")
	st.Await("live", "TERM", 1)
	st.Clear("live", "sick")
	st.Await("live", "start", 2)
	p := s.Wait("again", "be ready again", func(p *corev1.Pod) bool {
		return Condition(p, corev1.PodReady) == corev1.ConditionTrue && Status(p, "live").RestartCount == 1
	})
	if p.Status.Phase != corev1.PodRunning {
		t.Errorf("PL-16 it is %s", summary(p))
	}
	killedAs(t, p, "live", "failed liveness probe")

	never := st.Pod("never", Living(st.Act("ends"), once("ends")), st.Act("done", "-for", "1ms"))
	never.Spec.RestartPolicy = corev1.RestartPolicyNever
	s.Create(never)
	st.Await("ends", "up", 1)
	st.Set("ends", "sick")
	p = s.WaitPhase("never", corev1.PodFailed)
	killedAs(t, p, "ends", "failed liveness probe")
	st.Play().InOrder("PL-16", "ends TERM", "ends end")
	st.Play().Happened("PL-16", "ends", "start", 1)
}

// TestKilledHasFailedAcrossRestart: a server that dies while a condemned container is stopped knows of the verdict when it comes
// back, though the probe would say yes by then (PL-16).
func TestKilledHasFailedAcrossRestart(t *testing.T) {
	t.Parallel()
	srv := own(t)
	s := srv.Space(t)
	st := s.NewStage(t)
	live := Healthy("main")
	live.FailureThreshold = 1
	pod := graceful(st.Pod("p", Living(PreStop(st.Act("main"), Tells("main", "pre", "-for", "10s")), live)), 300)
	pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	s.Create(pod)
	s.WaitReady("p")
	st.Set("main", "sick")
	st.Await("main", "pre", 1)
	srv.Kill()
	st.Note("killed")
	st.Clear("main", "sick")
	if err := srv.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	st.Await("main", "start", 2).After("killed").InOrder("PL-16", "main TERM", "main end", "main start")
	p := s.Wait("p", "be ready again", func(p *corev1.Pod) bool {
		return Condition(p, corev1.PodReady) == corev1.ConditionTrue && Status(p, "main").RestartCount == 1
	})
	killedAs(t, p, "main", "failed liveness probe")
}

// TestReadinessGoesOn: a container that is stopped because it fails its liveness probe is still asked whether it is ready, and not
// whether it lives (PL-19).
func TestReadinessGoesOn(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	live := Healthy("c", "-tell", "alive")
	live.FailureThreshold = 1
	ready := &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 60, ProbeHandler: corev1.ProbeHandler{Exec: Tells("c", "asked").Exec}}
	// The hook is over when the readiness probe was tried once more; without that it would last until the grace period is over.
	s.Create(graceful(st.Pod("p", PreStop(Serving(Living(st.Act("c"), live), ready), Tells("c", "pre", "-after", "asked"))), 120))
	st.AwaitUp(s.WaitReady("p"))
	st.Set("c", "sick")
	st.Await("c", "TERM", 1)
	st.Clear("c", "sick")
	play := st.Play()
	play.InOrder("PL-19", "c pre", "c asked", "c pre-done", "c TERM")
	for _, at := range play.Times("c", "alive") {
		if at.After(play.At("c", "pre")) && at.Before(play.At("c", "TERM")) {
			t.Errorf("PL-19 it is asked whether it lives while it is stopped\n%s", play)
		}
	}
}
