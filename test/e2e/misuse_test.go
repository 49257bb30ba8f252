// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestPostStartHTTPFails: an HTTP postStart hook that nobody answers is a failed one: the container is stopped and started again
// with back-off, the event names the hook, and a sidecar that has it holds the pod in Init and nothing else (PL-04, SC-03, SC-25).
func TestPostStartHTTPFails(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	nobody := &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/begin", Port: Port(9)}}
	s.Create(st.Pod("main", PostStart(st.Act("bad"), nobody), st.Act("good")))
	s.Create(WithInit(st.Pod("side", st.Act("late")), PostStart(Sidecar(st.Act("proxy")), nobody)))
	for pod, c := range map[string]string{"main": "bad", "side": "proxy"} {
		s.WaitEvent(pod, "FailedPostStartHook", "HTTP lifecycle hook (/begin) for Container \""+c+"\"")
		s.WaitEvent(pod, "Killing", "failed its postStart hook")
		s.WaitWaiting(pod, c, "CrashLoopBackOff")
	}
	if p := s.Get("main"); Status(p, "good").RestartCount != 0 || Condition(p, corev1.PodReady) != corev1.ConditionFalse {
		t.Errorf("PL-04 it is %s", summary(p))
	}
	p := s.Get("side")
	if *Status(p, "proxy").Started || Condition(p, corev1.PodInitialized) != corev1.ConditionFalse || p.Status.Phase != corev1.PodPending {
		t.Errorf("SC-03 it is %s", summary(p))
	}
	st.Play().Happened("SC-25", "late", "start", 0)
	s.Delete("side")
	s.WaitGone(p)
}

// TestSidecarIgnoresItsEnd: a sidecar that heeds no stop signal, and one whose preStop hook has no end, are killed when grace is
// over, after the main and what is behind them have ended in order (SC-25, SC-09, SC-24).
func TestSidecarIgnoresItsEnd(t *testing.T) {
	t.Parallel()
	s := shared(t)
	for name, miner := range map[string]func(*Stage) corev1.Container{
		"deaf": func(st *Stage) corev1.Container { return Sidecar(st.Act("miner", "-deaf")) },
		"endless": func(st *Stage) corev1.Container {
			return PreStop(Sidecar(st.Act("miner", "-deaf")), Tells("miner", "pre", "-for", "1h"))
		},
	} {
		t.Run("SC-25 "+name, func(t *testing.T) {
			t.Parallel()
			s := s.With(t)
			st := s.NewStage(t)
			pod := s.Create(graceful(WithInit(st.Pod(name, st.Act("main")), miner(st), Sidecar(st.Act("log"))), 4))
			st.AwaitUp(s.WaitReady(name))
			play := s.ended(st, pod)
			play.InOrder("SC-09", "main end", "log TERM", "log end", "miner TERM")
			play.Gap("SC-25", play.At("test", "delete"), play.At("test", "gone"), 3900*time.Millisecond, soon)
			play.Happened("SC-11 told once, it is not started again", "miner", "start", 0)
			s.WaitEvent(name, "ExceededGracePeriod", "[miner]")
		})
	}
}
