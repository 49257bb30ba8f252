// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// every is a probe of this handler, tried every second.
func every(h corev1.ProbeHandler) *corev1.Probe {
	return &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 20, ProbeHandler: h, FailureThreshold: 1} // a busy machine is not a sick container
}

// TestProbeKinds: every kind of probe, as a readiness probe: not ready while the container does not serve, ready when it does,
// not when it is sick, and ready again; a watch sees each turn (PL-04). What a kind cannot say (tcp: sick) it is not asked.
func TestProbeKinds(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	port := intstr.FromString("web")
	var mains []corev1.Container
	kinds := []string{"exec", "http", "https", "tcp", "grpc"}
	for i, h := range []corev1.ProbeHandler{
		{Exec: Exec("healthy", journalPath, "exec")},
		{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: port, HTTPHeaders: []corev1.HTTPHeader{{Name: "X-Test", Value: "yes"}}}},
		{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt(7002), Scheme: corev1.URISchemeHTTPS}},
		{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt(7003)}},
		{GRPC: &corev1.GRPCAction{Port: 7004}},
	} {
		kind := kinds[i]
		serve := []string{"", "http:7001", "https:7002", "tcp:7003", "grpc:7004"}[i]
		c := Serving(st.Act(kind, "-wait", "1200ms", "-serve", serve), every(h))
		if kind == "http" {
			c.Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: 7001}}
		}
		mains = append(mains, c)
	}
	for _, kind := range kinds {
		st.Set(kind, "sick")
	}
	turns := s.turns("p")
	s.Create(st.Pod("p", mains...))
	p := s.Wait("p", "be ready where tcp is", func(p *corev1.Pod) bool { return Status(p, "tcp") != nil && Status(p, "tcp").Ready })
	for _, kind := range kinds {
		if c := Status(p, kind); kind != "tcp" && c.Ready {
			t.Errorf("PL-04 %s is ready and sick", kind)
		}
	}
	for _, kind := range kinds {
		st.Clear(kind, "sick")
	}
	s.WaitReady("p")
	for i, kind := range kinds {
		if kind == "tcp" {
			continue
		}
		st.Set(kind, "sick")
		s.Wait("p", kind+" not to be ready", func(p *corev1.Pod) bool {
			return !Status(p, kind).Ready && Condition(p, corev1.PodReady) == corev1.ConditionFalse
		})
		s.WaitEvent("p", "Unhealthy", "Readiness probe failed: "+[]string{"tool: exec is sick", "HTTP probe failed with statuscode: 503", "HTTP probe failed with statuscode: 503", "", `service unhealthy (responded with "NOT_SERVING")`}[i])
		st.Clear(kind, "sick")
		s.WaitReady("p")
	}
	for _, kind := range kinds {
		want := []bool{false, true, false, true}
		if kind == "tcp" {
			want = []bool{false, true}
		}
		got := turns(kind)
		for i := 0; i < 100 && !slices.Equal(got, want); i++ { // this watch may be behind the one that was waited with
			time.Sleep(20 * time.Millisecond)
			got = turns(kind)
		}
		if !slices.Equal(got, want) {
			t.Errorf("PL-04 a watch saw the readiness of %s as %v, want %v", kind, got, want)
		}
	}
	for _, c := range s.Get("p").Status.ContainerStatuses {
		if c.RestartCount != 0 {
			t.Errorf("PL-04 readiness restarted %s", c.Name)
		}
	}
}

// turns watches the readiness of a pod's containers; it gives the values that one of them had, one after the other.
func (s *Space) turns(pod string) func(container string) []bool {
	s.T.Helper()
	w, err := s.Client.CoreV1().Pods(s.Namespace).Watch(s.ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", pod).String()})
	if err != nil {
		s.T.Fatal(err)
	}
	var mu sync.Mutex
	seen := map[string][]bool{}
	go func() {
		for e := range w.ResultChan() {
			p, ok := e.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			mu.Lock()
			for _, c := range p.Status.ContainerStatuses {
				if was := seen[c.Name]; len(was) == 0 || was[len(was)-1] != c.Ready {
					seen[c.Name] = append(was, c.Ready)
				}
			}
			mu.Unlock()
		}
	}()
	s.T.Cleanup(w.Stop)
	return func(container string) []bool {
		mu.Lock()
		defer mu.Unlock()
		return seen[container]
	}
}

// TestProbeThresholds: initialDelaySeconds, periodSeconds, failureThreshold, successThreshold, timeoutSeconds: counted in the
// journal of the probes themselves (PL-04).
func TestProbeThresholds(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	delayed := Healthy("delayed", "-tell", "asked")
	delayed.InitialDelaySeconds = 3
	twice := Healthy("twice", "-tell", "asked")
	twice.SuccessThreshold, twice.FailureThreshold = 3, 2
	hangs := Healthy("hangs", "-tell", "asked", "-hang", "30s")
	hangs.TimeoutSeconds, hangs.FailureThreshold = 1, 1
	st.Note("create")
	s.Create(st.Pod("p", Serving(st.Act("delayed", "-tick", "1s"), delayed), Serving(st.Act("twice"), twice), Serving(st.Act("hangs"), hangs)))
	s.WaitReady("p")
	play := st.Play()
	// The delay counts from the container's start, between the pod's creation and the container's first word, which may come late.
	play.Gap("PL-04 initialDelaySeconds", play.At("test", "create"), play.At("delayed", "asked"), 3*time.Second, soon)
	if n := play.Count("twice", "asked"); n < 3 {
		t.Errorf("PL-04 successThreshold 3: ready after %d tries", n)
	}
	st.onceASecond("delayed")
	st.Note("sick")
	st.Set("twice", "sick")
	st.Set("hangs", "sick")
	s.Wait("p", "be unready", func(p *corev1.Pod) bool { return !Status(p, "twice").Ready && !Status(p, "hangs").Ready })
	st.Note("unready")
	s.WaitEvent("p", "Unhealthy", "timed out")
	play = st.Play().After("sick")
	i := slices.IndexFunc(play.Moments, func(m Moment) bool { return m.What == "unready" })
	if n := (Play{t, play.Moments[:i]}).Count("twice", "asked"); n < 2 {
		t.Errorf("PL-04 failureThreshold 2: unready after %d tries", n)
	}
	asked := st.Play().Times("delayed", "asked")
	// Once ready there are no tries between the ticks. One alone may come late on a busy machine, and the next in time.
	if n, in := len(asked)-1, asked[len(asked)-1].Sub(asked[0]); n > int(in/time.Second)+1 {
		t.Errorf("PL-04 periodSeconds 1: %d tries within %s", n, in)
	}
}

// onceASecond: a ready container is asked once a second, by its own clock, which is as late as everything else on a busy machine. A period of
// two seconds gives five tries in nine at most, as does one of a second where each try takes two: that is looked at again.
func (st *Stage) onceASecond(container string) {
	st.T.Helper()
	for try := 1; ; try++ {
		mark := fmt.Sprintf("look-%d", try)
		st.Note(mark)
		play := st.Await(container, "tick", st.Play().Count(container, "tick")+9).After(mark)
		n, ticks := play.Count(container, "asked"), play.Count(container, "tick")
		if n >= ticks*3/4 {
			return
		}
		if try == 5 {
			st.T.Fatalf("PL-04 periodSeconds 1: %d tries while the container told %d seconds:\n%s", n, ticks, play)
		}
	}
}

// TestProbeStartupFirst: no other probe is tried before the startup probe has succeeded, and then it is tried no more (PL-04).
func TestProbeStartupFirst(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	st.Set("c", "sick")
	startup := Healthy("c", "-tell", "startup")
	startup.FailureThreshold = 100
	tells := func(what string) *corev1.Probe {
		return &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{Exec: Tells("c", what).Exec}}
	}
	s.Create(st.Pod("p", Serving(Living(Starting(st.Act("c"), startup), tells("liveness")), tells("readiness"))))
	play := st.Await("c", "startup", 4)
	play.Happened("PL-04", "c", "liveness", 0)
	play.Happened("PL-04", "c", "readiness", 0)
	if c := Status(s.Get("p"), "c"); *c.Started || c.Ready {
		t.Errorf("PL-04 %+v", c)
	}
	st.Note("well")
	st.Clear("c", "sick")
	s.WaitReady("p")
	st.Note("ready")
	play = st.Await("c", "liveness", 3)
	play.After("ready").Happened("PL-04 the startup probe is over", "c", "startup", 0)
	play.InOrder("PL-04", "test well", "c startup", "c liveness")
}

// TestProbeLiveness: a container that fails its liveness probe is stopped, within the probe's own grace period, and started again
// (PL-04); under Never the pod fails.
func TestProbeLiveness(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	own := Healthy("deaf")
	own.FailureThreshold, own.TerminationGracePeriodSeconds = 2, ptr.To[int64](1)
	pods := Healthy("heeds")
	pods.FailureThreshold = 1
	pod := graceful(st.Pod("p", Living(st.Act("deaf", "-deaf"), own), Living(PreStop(st.Act("heeds", "-term", "500ms"), Tells("heeds", "pre")), pods)), 60)
	s.Create(pod)
	s.WaitReady("p")
	st.Set("deaf", "sick")
	st.Set("heeds", "sick")
	// They are well again before they are started again: else that start would be killed too.
	st.Await("heeds", "TERM", 1)
	st.Clear("heeds", "sick")
	st.Await("deaf", "TERM", 1)
	st.Clear("deaf", "sick")
	st.Await("heeds", "start", 2)
	play := st.Await("deaf", "start", 2)
	play.Gap("PL-04 killed after the probe's grace, not the pod's", play.At("deaf", "TERM"), play.Times("deaf", "start")[1], 900*time.Millisecond, soon)
	play.InOrder("PL-04 preStop runs before", "heeds pre", "heeds pre-done", "heeds TERM", "heeds end", "heeds start")
	p := s.Wait("p", "be ready again", func(p *corev1.Pod) bool {
		return Condition(p, corev1.PodReady) == corev1.ConditionTrue && Status(p, "deaf").RestartCount == 1 && Status(p, "heeds").RestartCount == 1
	})
	if end := Ended(p, "deaf"); end.ExitCode != 137 {
		t.Errorf("PL-04 deaf ended %+v", end)
	}
	s.WaitEvent("p", "Unhealthy", "Liveness probe failed: tool: deaf is sick")
	s.WaitEvent("p", "Killing", "Container deaf failed liveness probe, will be restarted")
	t.Run("PL-04 Never", func(t *testing.T) {
		s := s.With(t)
		st := s.NewStage(t)
		live := Healthy("main")
		live.FailureThreshold = 1
		pod := WithInit(st.Pod("never", Living(st.Act("main", "-termcode", "9"), live)), Sidecar(st.Act("side")))
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		st.Set("main", "sick")
		s.Create(pod)
		s.WaitPhase("never", corev1.PodFailed)
		st.Play().InOrder("PL-04", "main TERM", "main end", "side TERM")
		st.Play().Happened("PL-04", "main", "start", 1)
	})
}
