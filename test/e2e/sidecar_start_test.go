// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// TestSidecarRefused: what may not be said of init containers is refused with its field path (SC-01, SC-07).
func TestSidecarRefused(t *testing.T) {
	t.Parallel()
	s := shared(t)
	const onInit = "may not be set for init containers without restartPolicy=Always"
	for name, c := range map[string]struct {
		init func(*corev1.Container)
		want []string
	}{
		"SC-01 nonsense":  {func(c *corev1.Container) { c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicy("Sometimes")) }, []string{"spec.initContainers[0].restartPolicy"}},
		"SC-07 startup":   {func(c *corev1.Container) { c.StartupProbe = Healthy("x") }, []string{"spec.initContainers[0].startupProbe", onInit}},
		"SC-07 readiness": {func(c *corev1.Container) { c.ReadinessProbe = Healthy("x") }, []string{"spec.initContainers[0].readinessProbe", onInit}},
		"SC-07 liveness":  {func(c *corev1.Container) { c.LivenessProbe = Healthy("x") }, []string{"spec.initContainers[0].livenessProbe", onInit}},
		"SC-07 hooks":     {func(c *corev1.Container) { *c = PreStop(*c, Tells("x", "y")) }, []string{"spec.initContainers[0].lifecycle", onInit}},
	} {
		t.Run(name, func(t *testing.T) {
			init := Named("i", Tool("exit", "0"))
			c.init(&init)
			_, err := s.TryCreate(WithInit(NewPod("refused", Tool("sleep")), init))
			for _, w := range c.want {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("want a refusal with %q, got %v", w, err)
				}
			}
		})
	}
}

// TestSidecarOrder: the document's pod, held at each step: inits and sidecars one after the other, the next when the one
// before has completed or started, mains together after all of them; kubectl shows what the document shows (SC-02, SC-03,
// SC-04, SC-17, PL-01).
func TestSidecarOrder(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	st.Set("sidecar-1", "sick")
	st.Set("sidecar-2", "sick")
	pod := WithInit(st.Pod("test", st.Act("main")), st.Act("init-config", "-until"),
		Starting(Sidecar(st.Act("sidecar-1")), Healthy("sidecar-1")),
		Starting(Sidecar(st.Act("sidecar-2")), Healthy("sidecar-2")))
	pod.Spec.InitContainers[1].StartupProbe.FailureThreshold = 100
	pod.Spec.InitContainers[2].StartupProbe.FailureThreshold = 100
	s.Create(pod)
	held := func(at, ready, shown string) {
		t.Helper()
		p := s.Wait("test", "run "+at, func(p *corev1.Pod) bool { c := Status(p, at); return c != nil && c.State.Running != nil })
		if at != "init-config" && *Status(p, at).Started || p.Status.Phase != corev1.PodPending || Condition(p, corev1.PodInitialized) != corev1.ConditionFalse {
			t.Errorf("SC-03 at %s it is %s, started %v", at, summary(p), *Status(p, at).Started)
		}
		st.Await(at, "up", 1)
		s.Kubectl("get", "pod", "test").Has(ready, shown)
	}
	held("init-config", "0/3", "Init:0/3")
	st.Set("init-config", "go")
	held("sidecar-1", "0/3", "Init:1/3")
	st.Note("well-1")
	st.Clear("sidecar-1", "sick")
	held("sidecar-2", "1/3", "Init:2/3") // READY counts the sidecar that is ready
	st.Note("well-2")
	st.Clear("sidecar-2", "sick")
	p := s.WaitReady("test")
	s.Kubectl("get", "pod", "test").Has("3/3", "Running")
	st.Play().InOrder("SC-02", "init-config start", "init-config end", "sidecar-1 start", "test well-1", "sidecar-2 start", "test well-2", "main start")
	for _, name := range []string{"sidecar-1", "sidecar-2", "main"} {
		if c := Status(p, name); c.Started == nil || !*c.Started || !c.Ready || c.RestartCount != 0 {
			t.Errorf("SC-03 %s: %+v", name, c)
		}
	}
}

// TestSidecarStartedIsNotReady: a sidecar has started when its startup probe has succeeded and its postStart hook is over; its
// readiness does not hold up the start, but the pod's (SC-03, SC-04, SC-08, SC-17).
func TestSidecarStartedIsNotReady(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	st.Set("unready", "sick")
	s.Create(WithInit(st.Pod("p", st.Act("x"), st.Act("y")),
		PostStart(Sidecar(st.Act("hooked")), Tells("hooked", "hook", "-for", "700ms")),
		Serving(Sidecar(st.Act("unready")), Healthy("unready")),
		st.Act("init", "-for", "1ms")))
	p := s.Wait("p", "run its mains", func(p *corev1.Pod) bool {
		return Status(p, "x") != nil && Status(p, "x").State.Running != nil && Status(p, "y").State.Running != nil
	})
	if Condition(p, corev1.ContainersReady) != corev1.ConditionFalse || Condition(p, corev1.PodReady) != corev1.ConditionFalse || Condition(p, corev1.PodInitialized) != corev1.ConditionTrue || p.Status.Phase != corev1.PodRunning {
		t.Errorf("SC-08 it is %s, %+v", summary(p), p.Status.Conditions)
	}
	s.Kubectl("get", "pod", "p").Has("3/4", "Running")
	st.Clear("unready", "sick")
	s.WaitReady("p")
	s.Kubectl("get", "pod", "p").Has("4/4", "Running")
	play := st.Play()
	// A hook is run beside the program of its container, which may write down its own start after it.
	play.InOrder("SC-03", "hooked start", "unready start")
	play.InOrder("SC-03", "hooked hook", "hooked hook-done", "unready start", "init start", "init end", "x start")
	play.InOrder("SC-04", "init end", "y start")
	x, y := play.At("x", "start"), play.At("y", "start")
	if d := x.Sub(y).Abs(); d > soon {
		t.Errorf("SC-04 the mains started %s apart", d)
	}
	st.Set("unready", "sick")
	s.Wait("p", "not be ready any more", func(p *corev1.Pod) bool { return Condition(p, corev1.PodReady) == corev1.ConditionFalse })
}

// TestSidecarStartsSoon: a sidecar with the default period of 10 s does not cost 10 s: tries between the ticks find it up
// (PL-04, SC-03), and they never count as failures.
func TestSidecarStartsSoon(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	probe := Healthy("side")
	probe.PeriodSeconds, probe.FailureThreshold = 60, 1
	probe.Exec = nil
	probe.TCPSocket = &corev1.TCPSocketAction{Port: Port(7000)}
	probe.InitialDelaySeconds = 0
	st2 := s.NewStage(t)
	// The first try comes at once and fails: with a threshold of 2 one failure kills nobody.
	probe.FailureThreshold = 2
	s.Create(WithInit(st.Pod("p", st.Act("main")), Starting(Sidecar(st.Act("side", "-wait", "600ms", "-serve", "tcp:7000")), probe)))
	readiness := Healthy("slow")
	readiness.PeriodSeconds = 120
	st2.Set("slow", "sick")
	s.Create(st2.Pod("q", Serving(st2.Act("slow"), readiness)))
	s.Wait("q", "run", func(p *corev1.Pod) bool { c := Status(p, "slow"); return c != nil && c.State.Running != nil })
	s.WaitEvent("q", "Unhealthy", "Readiness probe failed") // the first, at once
	well := time.Now()
	st2.Clear("slow", "sick")
	s.WaitReady("q")
	if d := time.Since(well); d > 60*time.Second {
		t.Errorf("PL-04 it took %s until the pod was ready, of a period of 120 s", d)
	}
	s.WaitReady("p")
	play := st.Play()
	play.Gap("PL-04 from up to the next container's start", play.At("side", "up"), play.At("main", "start"), 0, 30*time.Second)
	t.Logf("a sidecar of period 60 s: up to next start %s", play.At("main", "start").Sub(play.At("side", "up")))
	if c := Status(s.Get("p"), "side"); c.RestartCount != 0 {
		t.Errorf("PL-04 tries between ticks counted as failures: %+v", c)
	}
}

// TestSidecarAlwaysRestarts: a sidecar that ends, well or badly, is started again whatever the pod's policy, also while a later
// init runs and while mains run (SC-05), with back-off (SC-25), and its neighbours are left alone.
func TestSidecarAlwaysRestarts(t *testing.T) {
	t.Parallel()
	s := shared(t)
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure, corev1.RestartPolicyAlways} {
		t.Run("SC-05 "+string(policy), func(t *testing.T) {
			t.Parallel()
			s := s.With(t)
			st := s.NewStage(t)
			name := "p-" + strings.ToLower(string(policy))
			pod := WithInit(st.Pod(name, st.Act("main")), Sidecar(st.Act("ends", "-for", "300ms")), Sidecar(st.Act("stays")), st.Act("init", "-until"))
			pod.Spec.RestartPolicy = policy
			s.Create(pod)
			st.Await("ends", "start", 2) // while the init runs
			s.Wait(name, "show the restart", func(p *corev1.Pod) bool { c := Status(p, "ends"); return c != nil && c.RestartCount >= 1 })
			w := s.WaitWaiting(name, "ends", "CrashLoopBackOff")
			if end := w.LastTerminationState.Terminated; end == nil || end.ExitCode != 0 {
				t.Errorf("SC-05 %+v", w)
			}
			st.Note("go")
			st.Set("init", "go")
			st.Await("main", "up", 1)
			p := s.Get(name)
			if Status(p, "init").RestartCount != 0 || Status(p, "stays").RestartCount != 0 || Status(p, "main").RestartCount != 0 {
				t.Errorf("SC-05 others were restarted: %s", summary(p))
			}
			play := st.Await("ends", "start", 3) // while the main runs
			at := play.Times("ends", "start")
			ends := play.Times("ends", "end")
			play.Gap("SC-25 the second restart's back-off", ends[1], at[2], 9*time.Second, 9*time.Second+soon)
			play.Happened("SC-19", "init", "start", 1)
		})
	}
}

// TestSidecarNeverStarts: misuse 4 and 7: a sidecar that never starts holds the pod in Init, and nothing else: it is restarted
// by its startup probe, says why, and goes at once when deleted (SC-25, SC-02, PL-15).
func TestSidecarNeverStarts(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	st.Set("never", "sick")
	probe := Healthy("never")
	probe.FailureThreshold = 10 // for as many seconds it runs, in which a busy machine asks and deletes
	pod := s.Create(WithInit(st.Pod("p", st.Act("main")), Sidecar(st.Act("fine")), Starting(Sidecar(st.Act("never")), probe), st.Act("init")))
	s.WaitEvent("p", "Unhealthy", "Startup probe failed")
	p := s.WaitRestarts("p", "never", 1)
	if p.Status.Phase != corev1.PodPending || Status(p, "fine").RestartCount != 0 || Status(p, "main").State.Waiting == nil {
		t.Errorf("SC-25 it is %s", summary(p))
	}
	s.Kubectl("get", "pod", "p").Has("1/3", "Init:1/3")
	play := st.Play()
	play.Happened("SC-02", "init", "start", 0)
	play.Happened("SC-02", "main", "start", 0)
	st.Note("delete")
	s.Delete("p")
	s.WaitGone(pod)
	st.Play().After("delete").InOrder("SC-09 what has started is stopped in reverse", "never TERM", "fine TERM")
}

// TestSidecarCompletion: mains that are done for good end the pod; sidecars are stopped then and have no say in its phase, even
// if they end badly (SC-06, and misuse 1: mains dressed as sidecars around one that sleeps).
func TestSidecarCompletion(t *testing.T) {
	t.Parallel()
	s := shared(t)
	for name, c := range map[string]struct {
		policy corev1.RestartPolicy
		code   string
		phase  corev1.PodPhase
	}{
		"never-0":     {corev1.RestartPolicyNever, "0", corev1.PodSucceeded},
		"never-3":     {corev1.RestartPolicyNever, "3", corev1.PodFailed},
		"onfailure-0": {corev1.RestartPolicyOnFailure, "0", corev1.PodSucceeded},
	} {
		t.Run("SC-06 "+name, func(t *testing.T) {
			t.Parallel()
			s := s.With(t)
			st := s.NewStage(t)
			pod := WithInit(st.Pod(name, st.Act("main", "-for", "300ms", "-code", c.code)),
				Sidecar(st.Act("first", "-termcode", "5")), Sidecar(st.Act("second", "-deaf")))
			pod.Spec.RestartPolicy = c.policy
			s.Create(pod)
			p := s.WaitPhase(name, c.phase)
			play := st.Play()
			play.InOrder("SC-06", "main end", "second TERM", "first TERM", "first end")
			play.Gap("SC-09 the last main's end to the first stop signal", play.At("main", "end"), play.At("second", "TERM"), 0, soon)
			t.Logf("main's end to the sidecar's stop signal %s", play.At("second", "TERM").Sub(play.At("main", "end")))
			if a, b := Ended(p, "first"), Ended(p, "second"); a == nil || a.ExitCode != 5 || b == nil || b.ExitCode != 137 {
				t.Errorf("SC-06 %s", summary(p))
			}
			play.Happened("SC-05 no restart after the end", "first", "start", 1)
			if Condition(p, corev1.PodReady) != corev1.ConditionFalse {
				t.Error("SC-06 an ended pod is Ready")
			}
		})
	}
	t.Run("SC-06 an init fails", func(t *testing.T) {
		t.Parallel()
		s := s.With(t)
		st := s.NewStage(t)
		pod := WithInit(st.Pod("init-fails", st.Act("main")), Sidecar(st.Act("side")), st.Act("init", "-for", "100ms", "-code", "4"))
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		s.Create(pod)
		s.WaitPhase("init-fails", corev1.PodFailed)
		play := st.Play()
		play.InOrder("SC-06", "side start", "init end", "side TERM", "side end")
		play.Happened("SC-02", "main", "start", 0)
		s.Kubectl("get", "pod", "init-fails").Has("Init:Error")
	})
}

// TestSidecarScores: sidecars count for the QoS class, and a sidecar's OOM score is no higher than the lowest of the pod's mains
// (SC-13, SC-15).
func TestSidecarScores(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	memory := func(c corev1.Container, size string) corev1.Container {
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(size)}
		return c
	}
	s.Create(WithInit(st.Pod("burst", memory(st.Act("small"), "16Mi"), memory(st.Act("big"), "512Mi")),
		Sidecar(memory(st.Act("tiny"), "4Mi")), memory(st.Act("init", "-until"), "4Mi")))
	s.Wait("burst", "run its init", func(p *corev1.Pod) bool { c := Status(p, "init"); return c != nil && c.State.Running != nil })
	init := s.oomScore("burst", "init")
	st.Set("init", "go")
	p := s.WaitReady("burst")
	small, big, tiny := s.oomScore("burst", "small"), s.oomScore("burst", "big"), s.oomScore("burst", "tiny")
	if tiny > big || big >= small || init < small {
		t.Errorf("SC-13 oom_score_adj: sidecar %d, mains %d and %d, init %d", tiny, big, small, init)
	}
	if p.Status.QOSClass != corev1.PodQOSBurstable {
		t.Errorf("QoS class %s", p.Status.QOSClass)
	}
	limited := func(c corev1.Container) corev1.Container {
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi"), corev1.ResourceCPU: resource.MustParse("500m")}
		return c
	}
	st2 := s.NewStage(t)
	for name, c := range map[string]struct {
		side corev1.Container
		want corev1.PodQOSClass
	}{
		"guaranteed": {limited(st2.Act("side-g")), corev1.PodQOSGuaranteed},
		"burstable":  {st2.Act("side-b"), corev1.PodQOSBurstable},
	} {
		got := s.Create(WithInit(st2.Pod(name, limited(st2.Act("main-"+name))), Sidecar(c.side)))
		if got.Status.QOSClass != c.want {
			t.Errorf("SC-15 a pod with a %s sidecar is %s", name, got.Status.QOSClass)
		}
	}
	st3 := s.NewStage(t)
	if got := s.Create(WithInit(st3.Pod("effort", st3.Act("main")), Sidecar(memory(st3.Act("side"), "1Mi")))); got.Status.QOSClass != corev1.PodQOSBurstable {
		t.Errorf("SC-15 a BestEffort pod with a sidecar of requests is %s", got.Status.QOSClass)
	}
	s.WaitReady("guaranteed")
}

func (s *Space) oomScore(pod, container string) int {
	s.T.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(s.PIDOf(pod, container)) + "/oom_score_adj")
	if err != nil {
		s.T.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		s.T.Fatal(err)
	}
	return n
}
