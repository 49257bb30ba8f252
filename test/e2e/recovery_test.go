// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

// again starts the server again. Its API may have another port then.
func (k *kit) again() {
	k.t.Helper()
	k.must(k.Server.Start(context.Background()))
}

// the states of containers that must be the same before and after
func facts(p *corev1.Pod) string {
	var out []string
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, s := range list {
			state := "waiting"
			switch {
			case s.State.Running != nil:
				state = "since " + s.State.Running.StartedAt.UTC().String()
			case s.State.Terminated != nil:
				state = fmt.Sprintf("ended %d at %s", s.State.Terminated.ExitCode, s.State.Terminated.FinishedAt.UTC())
			}
			out = append(out, fmt.Sprintf("%s %s %s restarts=%d ready=%v", s.Name, s.ContainerID, state, s.RestartCount, s.Ready))
		}
	}
	return fmt.Sprintf("%s %s %s\n  %s", p.Status.Phase, p.Status.PodIP, Condition(p, corev1.PodReady), strings.Join(out, "\n  "))
}

// shapes are pods of several kinds that stay as they are once they have come to rest.
const shapes = `
metadata: {name: plain}
spec: {containers: [{name: c, command: [sh, -c, IDLE]}]}
---
metadata: {name: inits}
spec:
  initContainers:
  - {name: one, command: [sh, -c, "echo one >>/h/log"], volumeMounts: [{name: h, mountPath: /h}]}
  - {name: two, command: [sh, -c, "echo two >>/h/log"], volumeMounts: [{name: h, mountPath: /h}]}
  containers: [{name: a, image: tool, args: [http]}, {name: b, image: tool, args: [sleep]}]
  volumes: [{name: h, hostPath: {path: DIR}}]
---
metadata: {name: restarted}
spec:
  containers: [{name: c, image: tool, args: [once, /v/f, "3"], volumeMounts: [{name: v, mountPath: /v}]}, {name: d, command: [sh, -c, IDLE]}]
  restartPolicy: OnFailure
  volumes: [{name: v, emptyDir: {}}]
---
metadata: {name: done}
spec: {restartPolicy: Never, containers: [{name: c, command: [sh, -c, "echo the end"]}]}
---
metadata: {name: failed}
spec: {restartPolicy: Never, containers: [{name: c, command: [sh, -c, "exit 7"]}, {name: d, command: ["true"]}]}
---
metadata: {name: shared}
spec: {shareProcessNamespace: true, hostNetwork: true, containers: [{name: c, command: [sh, -c, IDLE]}]}
---
metadata: {name: crashing}
spec: {containers: [{name: c, command: [sh, -c, "exit 9"]}]}
`

func atRest(p *corev1.Pod) bool {
	switch p.Name {
	case "done":
		return p.Status.Phase == corev1.PodSucceeded
	case "failed":
		return p.Status.Phase == corev1.PodFailed
	case "restarted":
		c := Status(p, "c")
		return c != nil && c.RestartCount == 1 && c.State.Terminated != nil && Status(p, "d").State.Running != nil
	case "crashing":
		c := Status(p, "c")
		return c != nil && c.RestartCount >= 2 && c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff"
	}
	return Condition(p, corev1.PodReady) == corev1.ConditionTrue
}

// SC-19, PL-10: kill -9 of the server, and an orderly stop, with pods of all kinds: nothing restarts, no init runs again, every
// status is as it was, and everything is taken up again: logs, exec, ends, deletion.
func TestRecoveryNothingRestarts(t *testing.T) {
	t.Parallel()
	srv := own(t)
	k := kitOn(t, srv)
	dir := t.TempDir()
	var names []string
	for _, text := range strings.Split(strings.ReplaceAll(shapes, "DIR", dir), "---\n") {
		names = append(names, k.pod(text).Name)
	}
	before := map[string]string{}
	for _, name := range names {
		before[name] = facts(k.Wait(name, "come to rest", atRest))
	}
	for _, end := range []struct {
		name string
		do   func()
	}{
		{"kill -9", srv.Kill},
		{"SIGTERM", func() { k.must(srv.Stop()) }},
	} {
		end.do()
		k.again()
		for _, name := range names {
			if name == "crashing" { // it goes on crashing, but not faster
				continue
			}
			if after := facts(k.Wait(name, "be at rest", atRest)); after != before[name] {
				t.Errorf("SC-19 after %s pod %s is\n  %s\nit was\n  %s", end.name, name, after, before[name])
			}
		}
	}
	if p := k.Get("crashing"); Status(p, "c").RestartCount > 3 {
		t.Errorf("PL-02 the back-off did not survive: %d restarts", Status(p, "c").RestartCount)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "log")); err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("SC-19 the inits wrote %q (%v), want each one line", text, err)
	}
	k.says("plain", "c", "echo still here", "still here")
	if got := k.log("done", "c"); got != "the end\n" {
		t.Errorf("PL-09 the log of an ended pod is %q", got)
	}
	// The agent hears of ends again.
	k.stop1("plain", "c")
	k.WaitRestarts("plain", "c", 1)
	for _, name := range names {
		pod := k.Get(name)
		k.Delete(name)
		if pod.Status.Phase == corev1.PodRunning {
			k.WaitGone(pod)
		} else { // of a pod that has ended, or never began, the object goes at once and the node follows
			k.must(k.awaitGone(k.ctx(), "pods", k.Namespace, name))
			k.AwaitNoTrace(pod)
		}
	}
}

// PL-01, PL-02, SC-19: what ends while the server is down is seen when it is back, and treated by the pod's policy.
func TestRecoveryEndsWhileDown(t *testing.T) {
	t.Parallel()
	srv := own(t)
	k := kitOn(t, srv)
	k.up(`
metadata: {name: always}
spec: {containers: [{name: c, command: [sh, -c, IDLE]}, {name: d, command: [sh, -c, IDLE]}]}
`)
	k.up(`
metadata: {name: never}
spec: {restartPolicy: Never, containers: [{name: c, command: [sh, -c, 'trap "echo bye; exit 4" TERM; sleep 1000 & wait']}]}
`)
	k.up(`
metadata: {name: boxless}
spec: {containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	c, n, box := k.hostPID("always", "c"), k.hostPID("never", "c"), k.pausePID("boxless")
	srv.Kill()
	for _, pid := range []int{c, n} {
		k.must(syscall.Kill(pid, syscall.SIGTERM))
		awaitDeath(t, pid)
	}
	k.must(syscall.Kill(box, syscall.SIGKILL))
	awaitDeath(t, box)
	k.again()
	p := k.WaitRestarts("always", "c", 1)
	if s := Ended(p, "c"); s == nil || s.ExitCode != 0 || Status(p, "d").RestartCount != 0 {
		t.Errorf("pod always is %s", summary(p))
	}
	p = k.WaitPhase("never", corev1.PodFailed)
	if s := Ended(p, "c"); s.ExitCode != 4 {
		t.Errorf("PL-11 pod never ended with %d, want 4", s.ExitCode)
	}
	p = k.Wait("boxless", "run in a new sandbox", func(p *corev1.Pod) bool {
		return Status(p, "c").RestartCount > 0 && Condition(p, corev1.PodReady) == corev1.ConditionTrue
	})
	k.says("boxless", "c", "ip -o -4 addr show dev eth0 | grep -c "+p.Status.PodIP, "1")
}

// PL-10, SC-19: kill -9 in the middle of starting ten pods and of deleting ten pods: all converge, inits run once in each
// sandbox, and nothing is left.
// ATTACK C2, C3.
func TestRecoveryInTheMiddle(t *testing.T) {
	t.Parallel()
	srv := own(t)
	k := kitOn(t, srv)
	dir := t.TempDir()
	create := func(i int) string {
		name := fmt.Sprintf("p%d", i)
		k.pod(strings.NewReplacer("NAME", name, "DIR", dir).Replace(`
metadata: {name: NAME}
spec:
  initContainers: [{name: i, command: [sh, -c, "echo ran >>/h/NAME"], volumeMounts: [{name: h, mountPath: /h}]}]
  containers: [{name: c, command: [sh, -c, IDLE]}, {name: d, image: tool, args: [http]}]
  volumes: [{name: h, hostPath: {path: DIR}}, {name: m, emptyDir: {medium: Memory}}]
`))
		return name
	}
	const n = 10
	var names []string
	for i := range n {
		names = append(names, create(i))
	}
	// The first one runs: the others are at all stages.
	first := make(chan string, n)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(k.Context())
	for _, name := range names {
		wg.Go(func() {
			w, err := k.Client.CoreV1().Pods(k.Namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: "0"})
			if err != nil {
				return
			}
			defer w.Stop()
			for e := range w.ResultChan() {
				if p, ok := e.Object.(*corev1.Pod); ok && p.Status.Phase == corev1.PodRunning {
					first <- name
					return
				}
			}
		})
	}
	<-first
	srv.Kill()
	cancel()
	wg.Wait()
	k.again()
	var pods []*corev1.Pod
	for _, name := range names {
		p := k.WaitReady(name)
		pods = append(pods, p)
		boxes := 1 + k.boxAttempt(p)
		text, err := os.ReadFile(filepath.Join(dir, name))
		if ran := strings.Count(string(text), "ran"); err != nil || ran < 1 || ran > boxes {
			t.Errorf("SC-19 the init of %s ran %d times in %d sandboxes (%v)", name, ran, boxes, err)
		}
	}
	for _, name := range names {
		k.Delete(name)
	}
	k.must(k.awaitAnyGone(names))
	srv.Kill()
	k.again()
	for _, p := range pods {
		k.WaitGone(p)
	}
}

// awaitAnyGone waits until the first of the pods is gone.
func (k *kit) awaitAnyGone(names []string) error {
	ctx, cancel := context.WithCancel(k.ctx())
	defer cancel()
	done := make(chan error, len(names))
	for _, name := range names {
		go func() { done <- k.awaitGone(ctx, "pods", k.Namespace, name) }()
	}
	return <-done
}

// PL-10, PL-15: the death of a container's shim is the death of its containers; the pod recovers by its policy and leaves
// nothing when it is deleted.
// ATTACK C6.
func TestRecoveryShimKilled(t *testing.T) {
	t.Parallel()
	srv := own(t)
	k := kitOn(t, srv)
	pod := k.up(`
metadata: {name: p}
spec: {containers: [{name: c, command: [sh, -c, IDLE]}, {name: d, image: tool, args: [sleep]}]}
`)
	k.must(syscall.Kill(parentOf(t, k.pausePID("p")), syscall.SIGKILL))
	k.Wait("p", "run again", func(p *corev1.Pod) bool {
		return Status(p, "c").ContainerID != Status(pod, "c").ContainerID && Status(p, "d").ContainerID != Status(pod, "d").ContainerID &&
			Condition(p, corev1.PodReady) == corev1.ConditionTrue
	})
	k.says("p", "c", "echo here", "here")
	p := k.Get("p")
	k.Delete("p")
	k.WaitGone(p)
	k.NoTrace(pod)
}

// A server that is told to stop while it starts ends well, whatever it was at.
func TestRecoveryStopWhileStarting(t *testing.T) {
	t.Parallel()
	srv := own(t, ServerOptions{NoImages: true})
	for stage := range 6 {
		if err := srv.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := srv.spawn(filepath.Join(t.TempDir(), "nobody")); err != nil {
			t.Fatal(err)
		}
		srv.aLittleLater(t, stage)
		if err := srv.Stop(); err != nil {
			t.Error(err)
		}
	}
	if err := srv.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// hostPID is the machine's number of a container's first process.
func (k *kit) hostPID(pod, container string) int {
	k.t.Helper()
	id := strings.TrimPrefix(Status(k.Get(pod), container).ContainerID, "containerd://")
	client, err := k.CRI(k.ctx())
	k.must(err)
	defer client.Close()
	s, err := client.Runtime.ContainerStatus(k.ctx(), &runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: true})
	k.must(err)
	return pidIn(k.t, s.Info["info"])
}

// pausePID is that of a pod's sandbox.
func (k *kit) pausePID(pod string) int {
	k.t.Helper()
	client, err := k.CRI(k.ctx())
	k.must(err)
	defer client.Close()
	s, err := client.Runtime.PodSandboxStatus(k.ctx(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: k.box(client, k.Get(pod)).Id, Verbose: true})
	k.must(err)
	return pidIn(k.t, s.Info["info"])
}

// box is the newest sandbox of a pod.
func (k *kit) box(client *cri.Client, pod *corev1.Pod) *runtimeapi.PodSandbox {
	k.t.Helper()
	list, err := client.Runtime.ListPodSandbox(k.ctx(), &runtimeapi.ListPodSandboxRequest{
		Filter: &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{cri.LabelPodUID: string(pod.UID)}}})
	k.must(err)
	var newest *runtimeapi.PodSandbox
	for _, b := range list.Items {
		if newest == nil || b.Metadata.Attempt > newest.Metadata.Attempt {
			newest = b
		}
	}
	if newest == nil {
		k.t.Fatalf("pod %s has no sandbox", pod.Name)
	}
	return newest
}

func (k *kit) boxAttempt(pod *corev1.Pod) int {
	k.t.Helper()
	client, err := k.CRI(k.ctx())
	k.must(err)
	defer client.Close()
	return int(k.box(client, pod).Metadata.Attempt)
}
