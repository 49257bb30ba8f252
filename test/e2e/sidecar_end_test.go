// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// graceful sets a pod's grace period.
func graceful(p *corev1.Pod, seconds int64) *corev1.Pod {
	p.Spec.TerminationGracePeriodSeconds = ptr.To(seconds)
	return p
}

// ended deletes a pod that is ready, waits until it is gone, and gives the part of the play from the deletion on.
func (s *Space) ended(st *Stage, pod *corev1.Pod, change ...func()) Play {
	s.T.Helper()
	st.Note("delete")
	s.Delete(pod.Name)
	for _, f := range change {
		f()
	}
	s.WaitGone(pod)
	st.Note("gone")
	return st.Play().After("delete")
}

// TestTerminationSteps: SC-09 from the first step to the last: all preStop hooks at once, mains stopped each after its own hook,
// sidecars one by one from the last to the first, each after its own hook (SC-10) and after the one behind it is gone; the
// sidecars have what the mains left of the grace period (SC-12).
func TestTerminationSteps(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	pod := s.Create(graceful(WithInit(st.Pod("p",
		PreStop(st.Act("hooked", "-term", "300ms"), Tells("hooked", "pre", "-for", "600ms")),
		st.Act("plain", "-term", "800ms")),
		PreStop(Sidecar(st.Act("first", "-term", "200ms")), Tells("first", "pre")),
		st.Act("init", "-for", "1ms"),
		PreStop(Sidecar(st.Act("second", "-term", "200ms")), Tells("second", "pre", "-for", "3s")),
		Sidecar(st.Act("third", "-term", "200ms"))), 120))
	st.AwaitUp(s.WaitReady("p"))
	play := s.ended(st, pod)
	for _, name := range []string{"hooked", "first", "second"} {
		play.InOrder("SC-09 (1) preStop hooks run at once", name+" pre", "second pre-done")
		play.Happened("SC-09 (1)", name, "pre", 1)
	}
	play.InOrder("SC-09 (2) a main without hook is told at once", "plain TERM", "second pre-done")
	play.InOrder("SC-09 (2) a main is told after its own hook", "hooked pre-done", "hooked TERM", "hooked end", "third TERM")
	play.InOrder("SC-09 (3)", "plain end", "third TERM", "third end", "second TERM", "second end", "first TERM", "first end")
	play.InOrder("SC-10", "second pre-done", "second TERM")
	play.Happened("SC-09 inits are over", "init", "start", 0)
	// second's hook is the longest: third is gone by then, and nothing else is waited for.
	play.Gap("SC-09 (3) the hook's end to its sidecar's signal", play.At("second", "pre-done"), play.At("second", "TERM"), 0, soon)
	lastMain := play.At("hooked", "end")
	if plain := play.At("plain", "end"); plain.After(lastMain) {
		lastMain = plain
	}
	play.Gap("SC-09 (3) the last main's end to the first sidecar's signal", lastMain, play.At("third", "TERM"), 0, soon)
	play.Gap("SC-09 (3) a sidecar's end to the next one's signal", play.At("second", "end"), play.At("first", "TERM"), 0, soon)
	play.Gap("SC-09 (5) the last sidecar's end to the pod's", play.At("first", "end"), play.At("test", "gone"), 0, soon)
	t.Logf("signals after what they waited for: %s, %s, %s", play.At("third", "TERM").Sub(lastMain), play.At("second", "TERM").Sub(play.At("second", "pre-done")), play.At("first", "TERM").Sub(play.At("second", "end")))
}

// TestTerminationGraceOut: when grace runs out, all that still run are told to stop, and killed 2 s later; a hook that still runs
// is given up (SC-09 (4), SC-10, SC-25: misuse 6, a sidecar that would not stop; PL-10). SC-24: there is an event of it.
func TestTerminationGraceOut(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	pod := s.Create(graceful(WithInit(st.Pod("p", st.Act("deaf", "-deaf")),
		PreStop(Sidecar(st.Act("heeds")), Tells("heeds", "pre", "-for", "60s")),
		Sidecar(st.Act("deafside", "-deaf"))), 3))
	st.AwaitUp(s.WaitReady("p"))
	play := s.ended(st, pod)
	del := play.At("test", "delete")
	play.InOrder("SC-09 (2)", "deaf TERM", "heeds TERM")
	for _, name := range []string{"heeds", "deafside"} {
		play.Gap("SC-09 (4) "+name+" is told when grace is over", del, play.At(name, "TERM"), 2900*time.Millisecond, soon)
	}
	play.Happened("SC-10 the hook was given up", "heeds", "pre-done", 0)
	play.InOrder("SC-09 (4) it had time to heed its signal", "heeds TERM", "heeds end")
	play.Gap("SC-09 (4) killed 2 s after the signal", play.At("deafside", "TERM"), play.At("test", "gone"), 1800*time.Millisecond, soon)
	s.WaitEvent("p", "FailedPreStopHook", "not completed in grace period")
	s.WaitEvent("p", "ExceededGracePeriod", "are killed now")
}

// TestTerminationForced: without grace all goes at once, sidecars and mains alike (PL-10).
func TestTerminationForced(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	pod := s.Create(graceful(WithInit(st.Pod("p", st.Act("main", "-deaf")), PreStop(Sidecar(st.Act("side", "-deaf")), Tells("side", "pre", "-for", "60s"))), 60))
	st.AwaitUp(s.WaitReady("p"))
	at := time.Now()
	if err := s.Client.CoreV1().Pods(s.Namespace).Delete(s.ctx, "p", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Fatal(err)
	}
	s.AwaitNoTrace(pod)
	if d := time.Since(at); d > soon {
		t.Errorf("PL-10 it took %s", d)
	}
}

// TestSidecarDiesWhileTerminating: until it has been sent its stop signal a sidecar that exits is started again, and its probes go
// on (SC-11, SC-27); after that it is not. A pod's end is not held up by it.
func TestSidecarDiesWhileTerminating(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	live := Healthy("probed", "-tell", "asked")
	live.FailureThreshold, live.TerminationGracePeriodSeconds = 1, ptr.To[int64](1)
	// The main ends when both have been started again: within a number of seconds a machine that is busy may not come so far.
	pod := s.Create(graceful(WithInit(st.Pod("p", st.Act("main", "-deaf", "-until")),
		Living(Sidecar(st.Act("probed")), live), Serving(Sidecar(st.Act("dies")), Healthy("dies", "-tell", "asked"))), 120))
	st.AwaitUp(s.WaitReady("p"))
	st.Note("delete")
	s.Delete("p")
	st.Await("main", "TERM", 1)
	s.signal("p", "dies", "KILL")
	st.Await("dies", "start", 2)
	st.Set("probed", "sick")
	st.Await("probed", "TERM", 1)
	st.Clear("probed", "sick") // before it is asked again, which is as soon as it is up
	st.Await("probed", "start", 2)
	p := s.Wait("p", "show both restarts", func(p *corev1.Pod) bool {
		return Status(p, "dies").RestartCount == 1 && Status(p, "probed").RestartCount == 1
	})
	if Status(p, "main").State.Running == nil {
		t.Errorf("SC-11 the main is over: %s", summary(p))
	}
	st.Note("restarted")
	st.Set("main", "go")
	s.WaitGone(pod)
	st.Note("gone")
	play := st.Play().After("delete")
	play.InOrder("SC-27 the liveness probe saw it", "main TERM", "probed asked", "probed TERM", "probed end", "probed start")
	play.InOrder("SC-27 readiness is asked after the restart", "dies start", "dies asked")
	play.InOrder("SC-11", "test restarted", "main end", "dies TERM", "dies end", "probed TERM", "probed end")
	play.After("restarted").Happened("SC-11 no restart after the stop signal", "dies", "start", 0)
	play.After("restarted").Happened("SC-11 no restart after the stop signal", "probed", "start", 0)
}

// TestPreStopEndsItsSidecar: misuse: a preStop hook that makes its own sidecar exit. It is started again with back-off and the
// pod still ends in order and within its grace (SC-25, SC-11).
func TestPreStopEndsItsSidecar(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	pod := s.Create(graceful(WithInit(st.Pod("p", st.Act("main", "-term", "5s")),
		PreStop(Sidecar(st.Act("side")), Tells("side", "pre", "-term1"))), 30))
	st.AwaitUp(s.WaitReady("p"))
	play := s.ended(st, pod)
	play.InOrder("SC-25", "side pre", "side end", "side start", "main end")
	if n := play.Count("side", "start"); n > 2 {
		t.Errorf("SC-25 it was started %d times in 5 s:\n%s", n, play)
	}
	play.Gap("SC-25 the pod ends all the same", play.At("main", "end"), play.At("test", "gone"), 0, soon)
}

// TestTerminationWhileStarting: a pod deleted while its sidecars start stops what there is and starts nothing more (SC-09, SC-25).
func TestTerminationWhileStarting(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	pod := s.Create(graceful(WithInit(st.Pod("p", st.Act("main")), Sidecar(st.Act("side", "-term", "300ms")), st.Act("init", "-until", "-term", "300ms")), 20))
	st.Await("init", "up", 1)
	play := s.ended(st, pod)
	play.InOrder("SC-09 an init is stopped before the sidecars", "init TERM", "init end", "side TERM", "side end")
	play.Happened("SC-09", "main", "start", 0)
	play.Happened("SC-09", "init", "start", 0)
}
