// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/ociimage"
	"github.com/wherryproject/wherry/test/images"
)

// TestHooks: postStart and preStop by exec, HTTP and sleep; a container is ready only after its postStart, and is told to stop
// only after its preStop, well or not (PL-04, SC-03, SC-10).
func TestHooks(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	// Who is asked by HTTP is a pod that serves already: a hook may come before its own container's program listens, which fails it.
	s.Create(st.Pod("ear", Serving(st.Act("ear", "-serve", "http:7001"), &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt(7001)}}})))
	ear := s.WaitReady("ear").Status.PodIP
	get := func(what string) *corev1.LifecycleHandler {
		return &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/tell/" + what, Host: ear, Port: intstr.FromInt(7001)}}
	}
	https := get("plainly")
	https.HTTPGet.Scheme = corev1.URISchemeHTTPS // which the ear does not speak
	sleeps := &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 2}}
	pod := s.Create(graceful(st.Pod("p",
		PreStop(PostStart(st.Act("exec"), Tells("exec", "post", "-for", "1s")), Tells("exec", "pre", "-for", "1s")),
		PreStop(PostStart(st.Act("http"), get("post")), get("pre")),
		PostStart(st.Act("https"), https),
		PreStop(PostStart(st.Act("sleep"), sleeps), sleeps),
		PreStop(st.Act("fails"), Tells("fails", "pre", "-code", "3"))), 30))
	p := s.WaitReady("p")
	st.Note("ready")
	for _, c := range p.Status.ContainerStatuses {
		if c.RestartCount != 0 {
			t.Errorf("PL-04 %s was restarted: %+v", c.Name, c)
		}
	}
	play := st.Play()
	play.InOrder("PL-04 postStart exec", "exec post", "exec post-done", "test ready")
	play.InOrder("PL-04 postStart HTTP", "ear post", "test ready")
	play.InOrder("PL-04 postStart HTTPS, answered by HTTP", "ear plainly", "test ready")
	s.WaitEvent("p", "LifecycleHTTPFallback", ear+":7001 got HTTP response, retry with HTTP succeeded")
	play.Gap("PL-04 postStart sleep", play.At("sleep", "start"), play.At("test", "ready"), time.Second, soon) // its program begins some time after the hook
	play = s.ended(st, pod)
	play.InOrder("PL-04 preStop exec", "exec pre", "exec pre-done", "exec TERM", "exec end")
	play.InOrder("PL-04 preStop HTTP", "ear pre", "http TERM")
	play.InOrder("PL-04 a preStop that fails", "fails pre", "fails TERM")
	play.Gap("PL-04 preStop sleep", play.At("test", "delete"), play.At("sleep", "TERM"), 1900*time.Millisecond, soon)
	s.WaitEvent("p", "FailedPreStopHook", "exited with 3")
}

// TestPreStopCounts: a preStop hook's time is part of the grace period: when that is over the hook is given up, the container told
// to stop and killed 2 s later (PL-04, PL-10).
func TestPreStopCounts(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	pod := s.Create(graceful(st.Pod("p", PreStop(st.Act("c", "-deaf"), Tells("c", "pre", "-for", "60s"))), 2))
	st.AwaitUp(s.WaitReady("p"))
	play := s.ended(st, pod)
	play.Gap("PL-04 told when grace is over", play.At("test", "delete"), play.At("c", "TERM"), 1900*time.Millisecond, soon)
	play.Gap("PL-10 killed 2 s later", play.At("c", "TERM"), play.At("test", "gone"), 1800*time.Millisecond, soon)
	play.Happened("PL-04", "c", "pre-done", 0)
	s.WaitEvent("p", "FailedPreStopHook", "hook not completed in grace period")
}

// TestPreStopOutlivesGrace: a preStop hook that is not done when the grace period is over is not ended for that: it sees its
// container told to stop, and has the two seconds that the container has (PL-18).
func TestPreStopOutlivesGrace(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	pod := s.Create(graceful(st.Pod("p", PreStop(st.Act("c", "-deaf"), Tells("c", "pre", "-after", "TERM"))), 5))
	st.AwaitUp(s.WaitReady("p"))
	s.ended(st, pod).InOrder("PL-18", "c pre", "c TERM", "c pre-done")
	s.WaitEvent("p", "FailedPreStopHook", "hook not completed in grace period")
}

// TestPostStartFails: a container whose postStart hook fails is stopped and started again, with back-off; its neighbours are not
// (PL-04, PL-15).
func TestPostStartFails(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	s.Create(st.Pod("p", PostStart(st.Act("bad"), Tells("bad", "post", "-code", "7")), st.Act("good")))
	s.WaitEvent("p", "FailedPostStartHook", "exited with 7")
	s.WaitWaiting("p", "bad", "CrashLoopBackOff")
	p := s.Get("p")
	if Status(p, "good").RestartCount != 0 || Condition(p, corev1.PodReady) != corev1.ConditionFalse {
		t.Errorf("PL-04 it is %s", summary(p))
	}
	st.Play().InOrder("PL-04", "bad start", "bad post", "bad TERM", "bad end", "bad start", "bad post", "bad TERM")
}

// TestPostStartHoldsUp: a main is started when the postStart hooks of those before it are done, though not all that they run for is
// up; one whose hook fails keeps nobody waiting (PL-17).
func TestPostStartHoldsUp(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	st.Set("first", "sick") // its startup probe holds up nothing
	starts := Healthy("first")
	starts.FailureThreshold = 1000
	s.Create(st.Pod("p", PostStart(Starting(st.Act("first"), starts), Tells("first", "post", "-for", "2s")),
		PostStart(st.Act("second"), Tells("second", "post", "-for", "1s")), st.Act("third"), st.Act("fourth")))
	st.Await("third", "start", 1)
	st.Await("fourth", "start", 1)
	st.Clear("first", "sick")
	s.WaitReady("p")
	play := st.Play()
	play.InOrder("PL-17", "first post", "first post-done", "second start")
	play.InOrder("PL-17", "second post", "second post-done", "third start")
	play.InOrder("PL-17", "second post-done", "fourth start")

	st = s.NewStage(t)
	s.Create(st.Pod("fails", PostStart(st.Act("bad", "-term", "2s"), Tells("bad", "post", "-code", "7")), st.Act("good")))
	st.Await("good", "start", 1).InOrder("PL-17 a hook that fails is over too", "bad post", "good start")
}

// TestStopSignals: the signal that stops a container is the spec's, else the image's, else SIGTERM; the status says which (PL-04).
func TestStopSignals(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	tool := s.quitImage()
	spec := st.Act("spec")
	spec.Lifecycle = &corev1.Lifecycle{StopSignal: ptr.To(corev1.SIGUSR1)}
	both := st.Act("both")
	both.Image, both.Lifecycle = tool, &corev1.Lifecycle{StopSignal: ptr.To(corev1.SIGUSR2)}
	image := st.Act("image")
	image.Image = tool
	side := Sidecar(st.Act("side"))
	side.Lifecycle = &corev1.Lifecycle{StopSignal: ptr.To(corev1.SIGHUP)}
	pod := WithInit(st.Pod("p", spec, image, both, st.Act("plain")), side)
	pod.Spec.OS = &corev1.PodOS{Name: corev1.Linux}
	pod = s.Create(graceful(pod, 20))
	p := s.WaitReady("p")
	st.AwaitUp(p)
	for name, want := range map[string]corev1.Signal{"spec": corev1.SIGUSR1, "image": corev1.SIGQUIT, "both": corev1.SIGUSR2, "plain": corev1.SIGTERM, "side": corev1.SIGHUP} {
		if c := Status(p, name); c.StopSignal == nil || *c.StopSignal != want {
			t.Errorf("PL-04 status of %s: stop signal %v, want %s", name, ptr.Deref(c.StopSignal, "none"), want)
		}
	}
	play := s.ended(st, pod)
	for name, want := range map[string]string{"spec": "USR1", "image": "QUIT", "both": "USR2", "plain": "TERM", "side": "HUP"} {
		play.InOrder("PL-04 "+name, name+" "+want, name+" end")
		if want != "TERM" {
			play.Happened("PL-04", name, "TERM", 0)
		}
	}
}

// quitImage imports an image of the tool that wants to be stopped by SIGQUIT.
func (s *Space) quitImage() string {
	s.T.Helper()
	const ref = "wherry.test/quit:1"
	tool := s.World.Images[images.ToolRef]
	config, err := tool.ConfigFile()
	if err != nil {
		s.T.Fatal(err)
	}
	quits := config.Config
	quits.StopSignal = "SIGQUIT"
	img, err := mutate.Config(tool, quits)
	if err != nil {
		s.T.Fatal(err)
	}
	archive, err := os.Create(filepath.Join(s.T.TempDir(), "quit.tar"))
	if err != nil {
		s.T.Fatal(err)
	}
	defer archive.Close()
	if err := ociimage.WriteTar(archive, img, ref); err != nil {
		s.T.Fatal(err)
	}
	if out, err := s.Wherry(s.ctx, "image", "import", archive.Name()).CombinedOutput(); err != nil {
		s.T.Fatalf("import: %v: %s", err, out)
	}
	return ref
}
