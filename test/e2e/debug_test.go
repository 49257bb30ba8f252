// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/test/images"
)

// debugFacts is what of the ephemeral containers' statuses must stay as it is.
func debugFacts(p *corev1.Pod) string {
	var out []string
	for _, s := range p.Status.EphemeralContainerStatuses {
		state := "waiting"
		switch {
		case s.State.Running != nil:
			state = "since " + s.State.Running.StartedAt.UTC().String()
		case s.State.Terminated != nil:
			state = fmt.Sprintf("ended %d at %s", s.State.Terminated.ExitCode, s.State.Terminated.FinishedAt.UTC())
		}
		out = append(out, fmt.Sprintf("%s %s %s restarts=%d", s.Name, s.ContainerID, state, s.RestartCount))
	}
	return strings.Join(out, "\n")
}

// TestDebugWhileInit: a debug container starts while an init container runs, and while one fails (EC-10), and changes nothing about
// them (EC-12); one with a target that does not run waits for it and says so.
func TestDebugWhileInit(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	st := s.NewStage(t)
	s.Create(WithInit(st.Pod("slow", Named("main", Tool("sleep"))), st.Act("first", "-until")))
	s.Create(WithInit(NewPod("failing", Named("main", Tool("sleep"))), Named("first", Tool("exit", "3"))))
	s.Wait("slow", "run its init", func(p *corev1.Pod) bool {
		c := Status(p, "first")
		return c != nil && c.State.Running != nil
	})
	s.WaitRestarts("failing", "first", 1)
	for _, pod := range []string{"slow", "failing"} {
		s.addDebug(pod, debugger("shell", "", Sh(Idle)), debugger("later", "main", Sh(Idle)))
		s.waitDebug(pod, "shell", "running", isRunning)
		w := s.waitDebug(pod, "later", "waiting for its target", waitsFor("CreateContainerError")).State.Waiting
		if !strings.Contains(w.Message, `target container "main" is not running`) {
			t.Errorf("%s: it waits for %q", pod, w.Message)
		}
		p := s.Get(pod)
		if p.Status.Phase != corev1.PodPending || Condition(p, corev1.PodInitialized) != corev1.ConditionFalse {
			t.Errorf("EC-12 %s is %s", pod, summary(p))
		}
	}
	st.Await("first", "up", 1)
	st.Set("first", "go")
	s.WaitReady("slow")
	s.waitDebug("slow", "later", "running", isRunning)
	if c := debugStatus(s.Get("slow"), "shell"); c.State.Running == nil || c.RestartCount != 0 {
		t.Errorf("DC-09 it is %+v", c)
	}
}

// TestDebugUses: attach, exec, logs and port-forward work on a debug container (EC-14), and kubectl shows it (EC-23, DC-12); it is
// counted (EC-26); what it has published stays (DC-11).
func TestDebugUses(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	s := k.Space
	s.Create(NewPod("web", Tool("sleep")))
	s.WaitReady("web")
	server := debugger("server", "main", Tool("http", ":9999"))
	shell := debugger("shell", "main", Sh("echo begun; while read l; do echo got-$l; done; exit 7"))
	shell.Stdin = true
	s.addDebug("web", server, shell, debugger("short", "", Sh("echo one word; exit 5")), debugger("nowhere", "", corev1.Container{Image: "127.0.0.1:1/no/such:1"}),
		debugger("nothing", "", corev1.Container{Image: images.BusyboxRef, Command: []string{"/no/such/program"}}))
	s.waitDebug("web", "server", "running", isRunning)
	s.waitDebug("web", "shell", "running", isRunning)
	s.waitDebug("web", "short", "ended", hasEnded)
	eachKubectl(t, s, func(t *testing.T, s *Space) {
		s.Kubectl("exec", "web", "-c", "shell", "--", "cat", "/proc/1/comm").Is("tool")
		s.Kubectl("logs", "web", "-c", "short").Is("one word")
		f := s.KubectlCommand("port-forward", "pod/web", ":9999").StartProcess()
		at := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(f.Out.Await("Forwarding from 127.0.0.1:"))
		if body, err := fetch(s.Context(), "http://"+at+"/hostname"); err != nil || strings.TrimSpace(body) != "web" {
			t.Errorf("EC-14 through port-forward: %q, %v", body, err)
		}
		a := s.Start("attach", "web", "-c", "shell", "-i")
		if _, err := fmt.Fprintf(a.In, "%s\n", s.kubectl.Name); err != nil {
			t.Fatal(err)
		}
		a.Out.Await("got-" + s.kubectl.Name)
		s.Kubectl("describe", "pod", "web").Has("Ephemeral Containers:", "server:", "shell:", "short:", "Exit Code:    5", "echo one word", ":9999")
		s.Kubectl("get", "pod", "web", "-o", "yaml").Has("ephemeralContainers:", "ephemeralContainerStatuses:", "targetContainerName: main")
	})
	s.WaitEvent("web", "Started", "Container started")
	s.Kubectl("get", "events", "--field-selector", "involvedObject.name=web,involvedObject.fieldPath=spec.ephemeralContainers{short}").Has("Started", "Created")
	if w := s.waitDebug("web", "nowhere", "without an image", func(c *corev1.ContainerStatus) bool {
		return waitsFor("ErrImagePull")(c) || waitsFor("ImagePullBackOff")(c)
	}).State.Waiting; !strings.Contains(w.Message, "127.0.0.1:1") { // of the try the registry is told, of the wait after it the image
		t.Errorf("EC-10 the image that cannot be had: %s", w.Message)
	}
	nothing := s.waitDebug("web", "nothing", "not started", func(c *corev1.ContainerStatus) bool { return hasEnded(c) || waitsFor("RunContainerError")(c) })
	if text := nothing.State.String() + nothing.LastTerminationState.String(); !strings.Contains(text, "/no/such/program") {
		t.Errorf("EC-10 the program that is not there: %s", text)
	}
	started := k.metrics("/api/v1/nodes/" + k.NodeName + "/proxy/metrics")[`kubelet_started_containers_total{container_type="ephemeral_container"}`]
	if started == "" || started == "0" {
		t.Errorf("EC-26 kubelet_started_containers_total counts %q ephemeral containers", started)
	}
	for name, target := range map[string]string{"self": "self", "sibling": "server", "unknown": "nobody"} {
		p := s.Get("web")
		p.ResourceVersion = ""
		p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, debugger(name, target, Tool("sleep")))
		if _, err := s.Client.CoreV1().Pods(s.Namespace).UpdateEphemeralContainers(s.ctx, "web", p, metav1.UpdateOptions{}); err == nil {
			t.Errorf("EC-07 PID-08 a debug container with target %s was taken", target)
		}
	}
}

// TestDebugOverLimit: a debug container is charged to its pod; when the pod is over its limit, it is the debug container that is
// killed, and its status says so (EC-18).
func TestDebugOverLimit(t *testing.T) {
	t.Parallel()
	s := shared(t)
	main := Tool("sleep")
	main.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi"), corev1.ResourceCPU: resource.MustParse("200m")}
	s.Create(NewPod("web", main))
	before := s.WaitReady("web")
	s.addDebug("web", debugger("greedy", "", Tool("alloc", "200")))
	if end := s.waitDebug("web", "greedy", "ended", hasEnded).State.Terminated; end.Reason != "OOMKilled" || end.ExitCode != 137 {
		t.Errorf("EC-18 it ended as %+v", end)
	}
	if after := s.Get("web"); facts(after) != facts(before) {
		t.Errorf("EC-18 EC-12 the pod was\n%s\nand is\n%s", facts(before), facts(after))
	}
}

// TestDebugHundred: a hundred debug containers in one pod all run, and the pod can still be changed, read and deleted (EC-17).
func TestDebugHundred(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	s.Create(NewPod("web", Tool("sleep")))
	s.WaitReady("web")
	var all []corev1.EphemeralContainer
	for i := range 100 {
		all = append(all, debugger(fmt.Sprintf("debug-%d", i), "", Sh("trap 'exit 0' TERM; sleep 3600 & wait")))
	}
	s.addDebug("web", all...)
	s.Wait("web", "have a hundred debug containers running", func(p *corev1.Pod) bool {
		n := 0
		for i := range p.Status.EphemeralContainerStatuses {
			if isRunning(&p.Status.EphemeralContainerStatuses[i]) {
				n++
			}
		}
		return n == 100
	})
	s.Kubectl("label", "pod", "web", "debugged=much").Has("labeled")
	if _, err := s.Client.CoreV1().Pods(s.Namespace).Patch(s.ctx, "web", types.StrategicMergePatchType,
		[]byte(`{"spec":{"ephemeralContainers":[{"name":"one-more","image":"`+images.BusyboxRef+`","command":["true"]}]}}`), metav1.PatchOptions{}, "ephemeralcontainers"); err != nil {
		t.Errorf("EC-17 one more: %v", err)
	}
	s.waitDebug("web", "one-more", "ended", hasEnded)
	if p := s.Get("web"); Condition(p, corev1.PodReady) != corev1.ConditionTrue || len(p.Status.EphemeralContainerStatuses) != 101 {
		t.Errorf("EC-17 DC-11 the pod is %s, with %d debug containers", summary(p), len(p.Status.EphemeralContainerStatuses))
	}
	pod := s.Get("web")
	s.Delete("web")
	s.WaitGoneWithin(pod, 4*Timeout) // a hundred containers, on a machine that has much else to do
}

// wherryDebug runs `wherry debug` and returns what it printed and its exit code.
func (s *Space) wherryDebug(args ...string) (out string, code int) {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, Timeout)
	defer cancel()
	cmd := s.Wherry(ctx, append([]string{"debug", "-n", s.Namespace}, args...)...)
	text, err := cmd.CombinedOutput()
	code, err = exitCode(err)
	if err != nil {
		s.T.Fatalf("wherry debug %v: %v\n%s", args, err, text)
	}
	return string(text), code
}

// TestDebugRunsAgain: the name of a debug container that has ended is used again, once each time, and the run before is its last
// state (DC-06, EC-11); one is stopped on request and one when its time is over, and everybody can see why (DC-08).
func TestDebugRunsAgain(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	s.Create(NewPod("web", Tool("sleep")))
	before := s.WaitReady("web")
	for run := range 3 {
		if out, code := s.wherryDebug("-q", "web", "-c", "again", "-m", images.BusyboxRef, "--", "sh", "-c", fmt.Sprintf("echo run $((%d+0)); exit %d", run, run+3)); code != run+3 || !strings.Contains(out, fmt.Sprintf("run %d", run)) {
			t.Fatalf("DC-06 run %d ended with %d: %s", run, code, out)
		}
		c := s.waitDebug("web", "again", "ended again", func(c *corev1.ContainerStatus) bool { return int(c.RestartCount) == run && hasEnded(c) })
		if end := c.State.Terminated; int(end.ExitCode) != run+3 {
			t.Errorf("DC-06 run %d is shown as %+v", run, end)
		}
		if last := c.LastTerminationState.Terminated; (last != nil) != (run > 0) || last != nil && int(last.ExitCode) != run+2 {
			t.Errorf("DC-06 the run before run %d is shown as %+v", run, last)
		}
	}

	s.addDebug("web", debugger("idle", "", Sh(Idle)), debugger("deaf", "", Sh("trap '' TERM; while :; do sleep 1; done")))
	for _, name := range []string{"idle", "deaf"} {
		s.waitDebug("web", name, "running", isRunning)
		if out, code := s.wherryDebug("stop", "web", name); code != 0 {
			t.Fatalf("DC-08 wherry debug stop: %d %s", code, out)
		}
	}
	for name, want := range map[string]int32{"idle": 0, "deaf": 137} {
		if end := s.waitDebug("web", name, "ended", hasEnded).State.Terminated; end.ExitCode != want {
			t.Errorf("DC-08 %s was stopped and is shown as %+v", name, end)
		}
		s.WaitEvent("web", "Killing", "Stopping container "+name+": its time was up at ")
	}
	if r := s.overTime("debug", "-q", "web", "-c", "brief", "-m", images.BusyboxRef, "--", "sh", "-c", "sleep 3600"); r.Code != 137 && r.Code != 143 {
		t.Errorf("DC-08 when its time was over the command had ended with %d: %s%s", r.Code, r.Out, r.Err)
	}
	s.WaitEvent("web", "Killing", "Stopping container brief: its time was up at ")
	if after := s.Get("web"); facts(after) != facts(before) {
		t.Errorf("EC-12 the pod was\n%s\nand is\n%s", facts(before), facts(after))
	}
}

// TestDebugServerRestarts: debug containers live on when the server is killed or stopped, and are not started again, nor is one that
// has ended (EC-11), and are left alone when the feature gate is switched off (EC-24); with their sandbox they end, and a new one does not bring them back (EC-13, PID-06).
// On the way: the cap and the allow-list (EC-18, EC-19, DC-13).
// ATTACK C4.
func TestDebugServerRestarts(t *testing.T) {
	t.Parallel()
	srv := own(t, ServerOptions{Args: []string{"--debug-memory-limit", "32Mi", "--debug-cpu-limit", "200m", "--debug-image-allow", "wherry.test/*,example.com/tools/**"}})
	k := kitOn(t, srv)
	k.Create(NewPod("web", Tool("sleep")))
	k.up(`
metadata: {name: shared}
spec:
  shareProcessNamespace: true
  containers: [{name: main, command: [sh, -c, IDLE], securityContext: {capabilities: {add: [KILL]}}}]
`)
	k.WaitReady("web")
	for _, pod := range []string{"web", "shared"} {
		k.addDebug(pod, debugger("shell", "main", Sh(Idle)), debugger("done", "", Sh("exit 4")))
	}
	k.addDebug("web", debugger("greedy", "", Tool("alloc", "100")), debugger("foreign", "", corev1.Container{Image: "evil.example/tool:1"}))
	debugCapAndAllowList(t, k)

	before := map[string]string{}
	for _, pod := range []string{"web", "shared"} {
		k.waitDebug(pod, "shell", "running", isRunning)
		k.waitDebug(pod, "done", "ended", hasEnded)
		before[pod] = facts(k.Get(pod)) + "\n" + debugFacts(k.Get(pod))
	}
	for _, end := range []struct {
		name string
		do   func()
	}{
		{"kill -9", srv.Kill},
		{"SIGTERM", func() { k.must(srv.Stop()) }},
		{"the gate was switched off", func() {
			k.must(srv.Stop())
			srv.opts.Args = append(srv.opts.Args, "--feature-gates", "EphemeralContainers=false")
		}},
	} {
		end.do()
		k.again()
		for _, pod := range []string{"web", "shared"} {
			// An exec goes through the pod's worker: when it answers, the worker has taken the pod up.
			k.says(pod, "shell", "echo here", "here")
			if after := facts(k.Get(pod)) + "\n" + debugFacts(k.Get(pod)); after != before[pod] {
				t.Errorf("EC-11 after %s %s is\n%s\nand was\n%s", end.name, pod, after, before[pod])
			}
		}
	}

	if _, err := k.Client.CoreV1().Pods(k.Namespace).UpdateEphemeralContainers(k.ctx(), "web", k.Get("web"), metav1.UpdateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("EC-24 with the gate off the subresource answers %v", err)
	}

	k.exec("shared", "main", "sh", "-c", "kill -TERM 1") // pause
	k.WaitRestarts("shared", "main", 1)
	p := k.WaitReady("shared")
	if c := debugStatus(p, "shell"); c.State.Terminated == nil || c.RestartCount != 0 {
		t.Errorf("EC-13 after its sandbox has died the debug container is %+v", c)
	}
	if c := debugStatus(p, "done"); c.State.Terminated == nil || c.State.Terminated.ExitCode != 4 {
		t.Errorf("DC-11 the one that had ended is %+v", c)
	}
}

// debugCapAndAllowList: what one debug container uses is bounded beside its pod (EC-19), and an image that the node does not take is
// refused (DC-13).
func debugCapAndAllowList(t *testing.T, k *kit) {
	t.Helper()
	if end := k.waitDebug("web", "greedy", "ended", hasEnded).State.Terminated; end.Reason != "OOMKilled" {
		t.Errorf("EC-19 beyond the cap it ended as %+v", end)
	}
	if c := Status(k.Get("web"), "main"); c.State.Running == nil || c.RestartCount != 0 {
		t.Errorf("EC-19 the pod's own container is %+v", c)
	}
	w := k.waitDebug("web", "foreign", "refused", waitsFor("ImageNotAllowed")).State.Waiting
	for _, want := range []string{"evil.example/tool:1", "--debug-image-allow", "wherry.test/*", "example.com/tools/**"} {
		if !strings.Contains(w.Message, want) {
			t.Errorf("DC-13 the refusal does not say %q: %s", want, w.Message)
		}
	}
	k.WaitEvent("web", "Failed", "--debug-image-allow")
	shell := k.waitDebug("web", "shell", "running", isRunning)
	if _, err := os.Stat("/sys/fs/cgroup/memory/memory.limit_in_bytes"); err == nil { // cgroup v2 is tested by package cgroup
		pod := k.Get("web")
		id := "/" + strings.TrimPrefix(shell.ContainerID, "containerd://")
		if got := k.value(k.cgroupOf("cpu", pod)+id, "cpu.cfs_quota_us"); got != "20000" {
			t.Errorf("EC-19 the CPU quota of the debug container is %s", got)
		}
		if got := k.value(k.cgroupOf("memory", pod)+id, "memory.limit_in_bytes"); got != "33554432" {
			t.Errorf("EC-19 the memory limit of the debug container is %s", got)
		}
	}
}
