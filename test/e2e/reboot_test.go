// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestSidecarReboot: after a power cut every pod starts from its first init, in order and once; restart counts survive; pods that
// had ended or were not to be restarted stay so, and one that was being deleted goes without starting anything (SC-19, PL-02, PL-10).
func TestSidecarReboot(t *testing.T) {
	t.Parallel()
	srv := own(t)
	s := srv.Space(t)
	order, never, done, back, leaving := s.NewStage(t), s.NewStage(t), s.NewStage(t), s.NewStage(t), s.NewStage(t)

	ready := func(c corev1.Container) corev1.Container { return Serving(c, Healthy(c.Name)) }
	s.Create(WithInit(order.Pod("order", ready(order.Act("main")), order.Act("main-2")), order.Act("init-1", "-for", "1ms"),
		Starting(Sidecar(order.Act("side-1", "-crash", "1")), Healthy("side-1")), order.Act("init-2", "-for", "1ms"),
		PostStart(Sidecar(order.Act("side-2")), Tells("side-2", "post", "-for", "300ms"))))
	p := WithInit(never.Pod("never", never.Act("main")), Sidecar(never.Act("side")))
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	s.Create(p)
	p = WithInit(done.Pod("done", done.Act("main", "-for", "1ms")), Sidecar(done.Act("side")))
	p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	s.Create(p)
	s.Create(WithInit(back.Pod("back", back.Act("main")), Sidecar(back.Act("crashes", "-crash", "1000"))))
	gone := s.Create(graceful(WithInit(leaving.Pod("leaving", leaving.Act("main", "-deaf")), Sidecar(leaving.Act("side"))), 300))

	order.AwaitUp(s.WaitReady("order"))
	never.AwaitUp(s.WaitReady("never"))
	leaving.AwaitUp(s.WaitReady("leaving"))
	s.WaitPhase("done", corev1.PodSucceeded)
	s.WaitRestarts("order", "side-1", 1)
	crashes := s.WaitRestarts("back", "crashes", 1)
	s.Delete("leaving")
	leaving.Await("main", "TERM", 1)
	all := []*Stage{order, never, done, back, leaving}
	if err := srv.PowerOff(); err != nil {
		t.Fatal(err)
	}
	for _, st := range all {
		st.Note("reboot")
	}
	if err := srv.Start(context.Background()); err != nil {
		t.Fatal(err)
	}

	after := s.Wait("order", "be ready again", func(p *corev1.Pod) bool {
		return Status(p, "main").RestartCount > 0 && Condition(p, corev1.PodReady) == corev1.ConditionTrue
	})
	order.Await("main-2", "start", 2)
	play := order.Await("main", "start", 2).After("reboot")
	play.InOrder("SC-19", "init-1 start", "init-1 end", "side-1 start", "init-2 start", "init-2 end", "side-2 start", "side-2 post-done", "main start")
	play.InOrder("SC-19", "side-2 post-done", "main-2 start")
	for _, name := range []string{"init-1", "side-1", "init-2", "side-2", "main", "main-2"} {
		play.Happened("SC-19", name, "start", 1)
	}
	for name, want := range map[string]int32{"side-1": 2, "side-2": 1, "main": 1, "main-2": 1} {
		if c := Status(after, name); c.RestartCount != want {
			t.Errorf("SC-19 %s was restarted %d times, want %d", name, c.RestartCount, want)
		}
	}
	if end := Ended(after, "main"); end == nil || end.ExitCode != 255 || end.Reason != "Unknown" { // as containerd tells of what it lost
		t.Errorf("PL-15 the main's last end is %+v", end)
	}
	s.WaitPhase("never", corev1.PodFailed)
	s.WaitGone(gone)
	if p := s.Get("done"); p.Status.Phase != corev1.PodSucceeded {
		t.Errorf("SC-19 done is %s", summary(p))
	}
	for _, st := range []*Stage{never, done, leaving} {
		play := st.Play().After("reboot")
		play.Happened("SC-19", "main", "start", 0)
		play.Happened("SC-19", "side", "start", 0)
	}
	if c := Status(s.Get("back"), "crashes"); c.RestartCount < Status(crashes, "crashes").RestartCount {
		t.Errorf("SC-19 restart count went from %d to %d", Status(crashes, "crashes").RestartCount, c.RestartCount)
	}
	if _, err := os.Stat(srv.DataDir); err != nil {
		t.Error(err)
	}
}

// TestSidecarAgentDies: kill -9 of the server in every moment of a sidecar's life. Running pods see nothing of it: not one status
// is written (readiness does not flap); a pod that was starting goes on where it was, one that was ending ends in order, and a
// sidecar that died meanwhile is started again, with the back-off it had (SC-19, SC-09, SC-11, PL-02).
func TestSidecarAgentDies(t *testing.T) {
	t.Parallel()
	srv := own(t)
	s := srv.Space(t)
	run, start, end, dies, back := s.NewStage(t), s.NewStage(t), s.NewStage(t), s.NewStage(t), s.NewStage(t)

	probed := func(c corev1.Container) corev1.Container {
		return PostStart(Living(Serving(Starting(c, Healthy(c.Name)), Healthy(c.Name, "-tell", "asked")), Healthy(c.Name)), Tells(c.Name, "post"))
	}
	s.Create(WithInit(run.Pod("run", probed(run.Act("main"))), run.Act("init", "-for", "1ms"), probed(Sidecar(run.Act("side")))))
	start.Set("side-2", "sick")
	starts := WithInit(start.Pod("start", start.Act("main")), start.Act("init", "-for", "1ms"), PostStart(Sidecar(start.Act("side-1")), Tells("side-1", "post")),
		Starting(Sidecar(start.Act("side-2")), Healthy("side-2")))
	starts.Spec.InitContainers[2].StartupProbe.FailureThreshold = 1000
	s.Create(starts)
	ending := s.Create(graceful(WithInit(end.Pod("end", end.Act("main", "-term", "6s")), Sidecar(end.Act("side-1")), Sidecar(end.Act("side-2"))), 60))
	s.Create(WithInit(dies.Pod("dies", dies.Act("main")), Sidecar(dies.Act("side"))))
	s.Create(WithInit(back.Pod("back", back.Act("main")), Sidecar(back.Act("crashes", "-crash", "1000"))))

	before := s.WaitReady("run")
	run.AwaitUp(before)
	end.AwaitUp(s.WaitReady("end"))
	dies.AwaitUp(s.WaitReady("dies"))
	s.Wait("start", "wait for its second sidecar", func(p *corev1.Pod) bool { c := Status(p, "side-2"); return c != nil && c.State.Running != nil })
	s.Wait("back", "back off", func(p *corev1.Pod) bool {
		c := Status(p, "crashes")
		return c != nil && c.RestartCount >= 1 && c.State.Waiting != nil
	})
	victim := s.PIDOf("dies", "side")
	s.Delete("end")
	end.Await("main", "TERM", 1)
	srv.Kill()
	for _, st := range []*Stage{run, start, end, dies, back} {
		st.Note("killed")
	}
	started := back.Play().Count("crashes", "start") // twice; more often where the machine took long for all the others
	start.Clear("side-2", "sick")
	kill(t, victim)
	if err := srv.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	run.Note("back")

	s.WaitReady("start")
	play := start.Play().After("killed")
	for _, name := range []string{"init", "side-1", "side-2"} {
		play.Happened("SC-19 what ran or was done is not started again", name, "start", 0)
	}
	play.Happened("SC-19 a hook that is done is done", "side-1", "post", 0)
	start.Await("main", "start", 1).Happened("SC-19", "main", "start", 1)

	s.WaitGone(ending)
	end.Play().After("killed").InOrder("SC-09 over a restart", "main end", "side-2 TERM", "side-2 end", "side-1 TERM", "side-1 end")

	s.WaitRestarts("dies", "side", 1)
	dies.Await("side", "start", 2).After("killed").Happened("SC-11", "main", "start", 0)

	// Readiness was asked twice and more since: what it says would be known by now.
	for i := 1; ; i++ {
		play := run.Play().After("back")
		if play.Count("side", "asked") >= 3 && play.Count("main", "asked") >= 3 {
			break
		}
		if i > 600 {
			t.Fatalf("SC-19 probes do not go on:\n%s", play)
		}
		time.Sleep(50 * time.Millisecond)
	}
	after := s.Get("run")
	if after.ResourceVersion != before.ResourceVersion {
		t.Errorf("SC-19 the status of a running pod was written: was\n%+v\nis\n%+v", before.Status, after.Status)
	}
	play = run.Play().After("killed")
	for _, name := range []string{"init", "side", "main"} {
		play.Happened("SC-19", name, "start", 0)
		play.Happened("SC-19", name, "post", 0)
	}
	times := back.Await("crashes", "start", started+1).Times("crashes", "start")
	backOff := 10 * time.Second << (started - 2)
	play.Gap("PL-02 the back-off survives", times[started-1], times[started], backOff-time.Second, backOff+30*time.Second)
	c := Status(s.WaitRestarts("back", "crashes", int32(started)), "crashes")
	if n := back.Play().Count("crashes", "start"); int(c.RestartCount) > n-1 {
		t.Errorf("PL-02 restart count %d after %d starts", c.RestartCount, n)
	}
}
