// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// joined starts `wherry agent`, a node of its own on this machine, for the API server of another. It is a Server as far as its
// data folder goes: it has images, and is purged with the same checks.
func joined(t *testing.T, to *Server, node string) *Server {
	t.Helper()
	return joinedBy(t, to, node, "--kubeconfig", to.Kubeconfig)
}

// joinedBy is joined with other credentials.
func joinedBy(t *testing.T, to *Server, node string, credentials ...string) *Server {
	t.Helper()
	return joinedIn(t, to, nil, node, credentials...)
}

// joinedIn is joinedBy on a machine that the command enter leads to.
func joinedIn(t *testing.T, to *Server, enter []string, node string, credentials ...string) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", serverPrefix)
	if err != nil {
		t.Fatal(err)
	}
	a := &Server{World: to.World, NodeName: node, DataDir: filepath.Join(dir, "d"), base: dir, home: filepath.Join(dir, "home"), log: filepath.Join(dir, "agent.log")}
	if err := os.Mkdir(a.home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writePID(dir, ownerFile, os.Getpid()); err != nil {
		t.Fatal(err)
	}
	a.enter = enter
	a.startAgent(t, credentials...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the agent's log:\n%s", a.LogTail(60))
		}
		if err := a.Purge(context.Background()); err != nil {
			t.Error(err)
		}
	})
	ready(t, to, node)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := a.importImages(ctx); err != nil {
		t.Fatal(err)
	}
	return a
}

// ready waits until a node says that it is.
func ready(t *testing.T, on *Server, node string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	lw := cache.NewListWatchFromClient(on.Client.CoreV1().RESTClient(), "nodes", "", fields.OneTermEqualSelector("metadata.name", node))
	_, err := watchtools.UntilWithSync(ctx, lw, &corev1.Node{}, nil, func(e watch.Event) (bool, error) {
		n, ok := e.Object.(*corev1.Node)
		for i := range n.Status.Conditions {
			if c := &n.Status.Conditions[i]; ok && c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		t.Fatalf("node %s did not become ready: %v", node, err)
	}
}

// startAgent starts the agent's process, perhaps once more.
func (s *Server) startAgent(t *testing.T, credentials ...string) {
	t.Helper()
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s.cmd = s.Wherry(context.Background(), append([]string{"agent", "--data-dir", s.DataDir, "--node-name", s.NodeName, "--kubelet-port", "0"}, credentials...)...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	s.done = done
	go func() { s.err = s.cmd.Wait(); close(done) }()
	if err := writePID(s.base, serverFile, s.PID()); err != nil {
		t.Fatal(err)
	}
}

// TestServerAway: the API server is killed while a node's agent is starting a pod that it was given, and while another pod is about
// to end. The agent goes on: the sidecar's start is noticed, the init runs, then the main; what ends has ended, and what crashes
// is restarted. When the server is back it is told all of it, and nothing was done twice (SC-20, SC-02, SC-19, PL-02).
func TestServerAway(t *testing.T) {
	t.Parallel()
	srv := own(t, ServerOptions{Args: []string{"--secure-port", strconv.Itoa(FreePort(t))}}) // the same when it comes back
	agent := joined(t, srv, "wherry-away")
	k := inDefault(t, srv)
	st := agent.NewStage(t)
	on := func(p *corev1.Pod) *corev1.Pod { p.Spec.NodeName = agent.NodeName; return p }
	starts := on(WithInit(st.Pod("starts", st.Act("main")), Starting(Sidecar(st.Act("side")), Healthy("side")), st.Act("init", "-for", "50ms")))
	st.Set("side", "sick")
	k.Create(starts)
	finishes := on(st.Pod("finishes", st.Act("once", "-until", "-code", "3")))
	finishes.Spec.RestartPolicy = corev1.RestartPolicyNever
	k.Create(finishes)
	k.Create(on(st.Pod("crashes", st.Act("twice", "-until", "-code", "4"))))
	for _, name := range []string{"finishes", "crashes"} {
		k.WaitReady(name)
	}
	k.Wait("starts", "wait for its sidecar", func(p *corev1.Pod) bool { s := Status(p, "side"); return s != nil && s.State.Running != nil })
	st.Await("side", "up", 1)

	srv.Kill()
	st.Note("away")
	st.Clear("side", "sick")
	st.Await("main", "up", 1)
	st.Set("once", "go")
	st.Await("once", "end", 1)
	st.Set("twice", "go")
	st.Await("twice", "end", 1)
	st.Clear("twice", "go")
	st.Await("twice", "start", 2)
	back := st.Note("back")

	k.must(srv.Start(context.Background()))
	p := k.WaitReady("starts")
	for _, c := range []string{"side", "init", "main"} {
		if s := Status(p, c); s.RestartCount != 0 {
			t.Errorf("SC-20 %s was restarted: %s", c, summary(p))
		}
	}
	if at := Status(p, "main").State.Running.StartedAt; at.After(back) {
		t.Errorf("SC-20 the main is said to run since %v; the server came back at %v", at, back)
	}
	p = k.WaitPhase("finishes", corev1.PodFailed)
	if end := Ended(p, "once"); end == nil || end.ExitCode != 3 || end.FinishedAt.After(back) {
		t.Errorf("SC-20 it ended as %+v", end)
	}
	p = k.WaitRestarts("crashes", "twice", 1)
	if end := Ended(p, "twice"); end == nil || end.ExitCode != 4 || Status(p, "twice").RestartCount != 1 {
		t.Errorf("SC-20 it is %s", summary(p))
	}
	play := st.Play()
	play.InOrder("SC-20", "test away", "init start", "init end", "main start", "test back")
	for who, n := range map[string]int{"side": 1, "init": 1, "main": 1, "once": 1, "twice": 2} {
		play.Happened("SC-20", who, "start", n)
	}
	for _, name := range []string{"starts", "finishes", "crashes"} {
		k.Delete(name)
		k.must(k.awaitGone(k.ctx(), "pods", k.Namespace, name))
	}
}

// TestExternalRuntimeKilled: an external containerd is killed under running pods. They run on; the status says nothing else
// meanwhile; what ends while it is away has ended with its own code when it is back, and is restarted then; nothing else is
// touched, and all can be deleted without a trace (SC-19, PL-02, PL-10).
func TestExternalRuntimeKilled(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	d := StartContainerd(t)
	d.Load(t, world(t))
	srv := own(t, ServerOptions{NoImages: true, Args: []string{"--container-runtime-endpoint", "unix://" + d.socket}})
	k := inDefault(t, srv)
	st := srv.NewStage(t)
	outside := func(p *corev1.Pod) *corev1.Pod { p.Spec.HostNetwork = true; return p }
	k.Create(outside(WithInit(st.Pod("stays", st.Act("main")), st.Act("init", "-for", "10ms"), Sidecar(st.Act("side")))))
	k.Create(outside(st.Pod("ends", st.Act("brief", "-until", "-code", "3"))))
	before := k.WaitReady("stays")
	k.WaitReady("ends")
	for _, c := range []string{"main", "side", "brief"} {
		st.Await(c, "up", 1)
	}

	k.must(d.cmd.Process.Signal(syscall.SIGKILL))
	_ = d.cmd.Wait() // it was killed
	st.Note("killed")
	st.Set("brief", "go")
	st.Await("brief", "end", 1)
	st.Clear("brief", "go")
	if now := k.Get("stays"); facts(now) != facts(before) {
		t.Errorf("SC-19 without a runtime the pod is said to be %s; it was %s", facts(now), facts(before))
	}
	d.Run(t)
	p := k.WaitRestarts("ends", "brief", 1)
	if end := Ended(p, "brief"); end == nil || end.ExitCode != 3 {
		t.Errorf("SC-19 it ended as %+v", end)
	}
	p = k.WaitReady("ends")
	if now := k.Get("stays"); facts(now) != facts(before) {
		t.Errorf("SC-19 after its runtime was killed the pod is %s; it was %s", facts(now), facts(before))
	}
	for who, n := range map[string]int{"main": 1, "side": 1, "init": 1, "brief": 2} {
		st.Play().Happened("SC-19", who, "start", n)
	}
	for _, pod := range []*corev1.Pod{before, p} {
		k.Delete(pod.Name)
	}
	for _, pod := range []*corev1.Pod{before, p} {
		k.must(k.awaitGone(k.ctx(), "pods", "default", pod.Name))
		if left := d.left(t, k, pod); pod == p && len(left) > 0 {
			t.Errorf("PL-10 left:\n  %s", strings.Join(left, "\n  "))
		}
	}
}
