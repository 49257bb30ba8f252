// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// resize asks for other resources of one container; what is not to change is "".
func (k *kit) resize(pod, list, container, requests, limits string) (*corev1.Pod, error) {
	patch := fmt.Sprintf(`{"spec":{%q:[{"name":%q,"resources":{"requests":{%s},"limits":{%s}}}]}}`, list, container, requests, limits)
	return k.resizePatch(pod, patch)
}

func (k *kit) resizePatch(pod, patch string) (*corev1.Pod, error) {
	return k.Client.CoreV1().Pods(k.Namespace).Patch(k.ctx(), pod, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "resize")
}

// settled waits until nothing of a resize is left to do, and the status tells of the newest spec.
func (k *kit) settled(name string) *corev1.Pod {
	k.t.Helper()
	return k.Wait(name, "be resized", func(p *corev1.Pod) bool {
		return p.Status.ObservedGeneration == p.Generation && Condition(p, corev1.PodReady) == corev1.ConditionTrue &&
			resizeCondition(p, corev1.PodResizePending) == nil && resizeCondition(p, corev1.PodResizeInProgress) == nil
	})
}

func resizeCondition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// gives reads what the cgroups of a pod and of one of its containers give: shares, quota and memory of each.
func (k *kit) gives(p *corev1.Pod, container string) string {
	k.t.Helper()
	cpu, memory := k.cgroupOf("cpu", p), k.cgroupOf("memory", p)
	_, id, _ := strings.Cut(Status(p, container).ContainerID, "://")
	var all []string
	for _, below := range []string{"", id} {
		all = append(all, k.value(filepath.Join(cpu, below), "cpu.shares"), k.value(filepath.Join(cpu, below), "cpu.cfs_quota_us"),
			k.value(filepath.Join(memory, below), "memory.limit_in_bytes"))
	}
	return strings.Join(all, " ")
}

func (k *kit) wantGives(p *corev1.Pod, container, want string) {
	k.t.Helper()
	if got := k.gives(p, container); got != want {
		k.t.Errorf("PL-14 the cgroups of pod %s and container %s give %s, want %s", p.Name, container, got, want)
	}
}

// TestResize: CPU and memory of running containers go up and down in place; the cgroups, the status and the events say so (PL-14).
func TestResize(t *testing.T) {
	t.Parallel()
	needV1(t)
	k := newKit(t)
	p := k.up(`
metadata: {name: p}
spec:
  initContainers:
  - {name: side, restartPolicy: Always, command: [sh, -c, IDLE], resources: {requests: {cpu: 20m, memory: 32Mi}, limits: {cpu: 20m, memory: 32Mi}}}
  containers:
  - {name: c, command: [sh, -c, IDLE], resources: {requests: {cpu: 100m, memory: 32Mi}, limits: {cpu: 100m, memory: 32Mi}}}
`)
	id := Status(p, "c").ContainerID
	k.wantGives(p, "c", "122 12000 67108864 102 10000 33554432")

	if _, err := k.resize("p", "containers", "c", `"cpu":"200m"`, `"cpu":"200m"`); err != nil {
		t.Fatal(err)
	}
	p = k.settled("p")
	k.wantGives(p, "c", "225 22000 67108864 204 20000 33554432")
	k.settled("p")
	k.resizeTimes()
	k.WaitEvent("p", "ResizeStarted", `Pod resize started: {"initContainers":`)
	k.WaitEvent("p", "ResizeCompleted", `"generation":2`)

	for _, step := range []struct{ list, container, amounts, pod, c string }{
		{"containers", "c", `"memory":"64Mi"`, "225 22000 100663296", "204 20000 67108864"},
		{"containers", "c", `"memory":"40Mi","cpu":"50m"`, "71 7000 75497472", "51 5000 41943040"},
		{"initContainers", "side", `"cpu":"300m"`, "358 35000 75497472", "307 30000 33554432"},
	} {
		if _, err := k.resize("p", step.list, step.container, step.amounts, step.amounts); err != nil {
			t.Fatal(err)
		}
		p = k.settled("p")
		k.wantGives(p, step.container, step.pod+" "+step.c)
	}
	s := Status(p, "c")
	if s.RestartCount != 0 || s.ContainerID != id || Status(p, "side").RestartCount != 0 {
		t.Errorf("PL-14 a container was restarted: %s", summary(p))
	}
	if got := s.AllocatedResources.Memory().String() + s.Resources.Limits.Memory().String(); got != "40Mi40Mi" {
		t.Errorf("PL-21 the status tells %s", got)
	}
	if a := p.Status.AllocatedResources.Cpu().String(); a != "350m" {
		t.Errorf("PL-21 the pod's status tells that %s are allocated", a)
	}

	// below what is in use
	if _, err := k.resize("p", "containers", "c", `"memory":"10Ki"`, `"memory":"10Ki"`); err != nil {
		t.Fatal(err)
	}
	p = k.Wait("p", "say that its memory is in use", func(p *corev1.Pod) bool {
		c := resizeCondition(p, corev1.PodResizeInProgress)
		return c != nil && c.Reason == corev1.PodReasonError && strings.Contains(c.Message, "memory limit (10240) below current usage (")
	})
	if got := Status(p, "c").Resources.Limits.Memory().String(); got != "40Mi" {
		t.Errorf("PL-21 the status tells a limit of %s, which nobody gave", got)
	}
	k.WaitEvent("p", "ResizeError", "below current usage")
	if _, err := k.resize("p", "containers", "c", `"memory":"48Mi"`, `"memory":"48Mi"`); err != nil {
		t.Fatal(err)
	}
	p = k.settled("p")
	k.wantGives(p, "c", "358 35000 83886080 51 5000 50331648")
	k.Kubectl("patch", "pod", "p", "--subresource", "resize", "-p", `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"60m"},"limits":{"cpu":"60m"}}}]}}`)
	k.settled("p")

	// more than the node has
	_, err := k.resize("p", "containers", "c", `"cpu":"1000"`, `"cpu":"1000"`)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "node didn't have enough allocatable resources: cpu, requested: 1000300, allocatable:") {
		t.Errorf("PL-14 more than the node has: %v", err)
	}
	_, err = k.resize("p", "containers", "c", `"cpu":"10m"`, "")
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "Pod QOS Class may not change as a result of resizing") {
		t.Errorf("PL-14 another class: %v", err)
	}
}

// resizeTimes tells how long resizes of CPU take, up and down, until the cgroup and the status have them.
func (k *kit) resizeTimes() {
	k.t.Helper()
	var all []time.Duration
	for i := range 12 {
		cpu := int64(210 - 10*(i%2)) // ends at 200m
		want := fmt.Sprintf(`"cpu":"%dm"`, cpu)
		began := time.Now()
		if _, err := k.resize("p", "containers", "c", want, want); err != nil {
			k.t.Fatal(err)
		}
		p := k.Wait("p", "say what it is given", func(p *corev1.Pod) bool { return Status(p, "c").Resources.Limits.Cpu().MilliValue() == cpu })
		all = append(all, time.Since(began))
		if got := k.gives(p, "c"); !strings.Contains(got, fmt.Sprintf(" %d %d ", cpu*1024/1000, cpu*100)) {
			k.t.Errorf("PL-14 the status tells of %dm, and the cgroup gives %s", cpu, got)
		}
		k.settled("p")
	}
	slices.Sort(all)
	k.t.Logf("a resize of CPU is in the cgroup and in the status after %v (median; quickest %v, slowest %v)", all[len(all)/2], all[0], all[len(all)-1])
}

// TestResizeByRestart: a container whose resize policy asks for it is started again, once, with its new size, though it ends well and
// its pod restarts only what fails; one that has completed stays so. An init that runs is resized in place (PL-14).
func TestResizeByRestart(t *testing.T) {
	t.Parallel()
	needV1(t)
	k := newKit(t)
	k.pod(`
metadata: {name: p}
spec:
  restartPolicy: OnFailure
  initContainers:
  - {name: init, command: [sh, -c, "while [ ! -e /tmp/go ]; do sleep 0.1; done"], resources: {requests: {cpu: 20m, memory: 32Mi}, limits: {cpu: 30m, memory: 32Mi}}}
  containers:
  - name: c
    command: [sh, -c, IDLE]
    resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}, {resourceName: memory, restartPolicy: RestartContainer}]
    resources: {requests: {cpu: 100m, memory: 32Mi}, limits: {cpu: 100m, memory: 32Mi}}
  - {name: other, command: [sh, -c, IDLE], resources: {requests: {cpu: 20m}}}
`)
	k.Wait("p", "run its init", func(p *corev1.Pod) bool { s := Status(p, "init"); return s != nil && s.State.Running != nil })
	if _, err := k.resize("p", "initContainers", "init", `"cpu":"40m"`, `"cpu":"50m"`); err != nil {
		t.Fatal(err)
	}
	p := k.Wait("p", "have its init resized", func(p *corev1.Pod) bool {
		s := Status(p, "init")
		return s.Resources.Limits.Cpu().String() == "50m" && s.AllocatedResources.Cpu().String() == "40m"
	})
	if got := k.gives(p, "init"); !strings.HasSuffix(got, " 40 5000 33554432") {
		t.Errorf("PL-14 the init is given %s", got)
	}
	k.Kubectl("exec", "p", "-c", "init", "--", "touch", "/tmp/go")
	k.settled("p")
	if _, err := k.resize("p", "containers", "c", `"cpu":"150m"`, `"cpu":"150m"`); err != nil {
		t.Fatal(err)
	}
	if p = k.settled("p"); Status(p, "c").RestartCount != 0 {
		t.Errorf("PL-14 it was restarted for CPU: %s", summary(p))
	}
	for i, memory := range []string{"64Mi", "40Mi"} {
		if _, err := k.resize("p", "containers", "c", `"memory":"`+memory+`"`, `"memory":"`+memory+`"`); err != nil {
			t.Fatal(err)
		}
		k.WaitRestarts("p", "c", int32(i+1))
		p = k.settled("p")
		if Status(p, "c").RestartCount != int32(i+1) || Status(p, "other").RestartCount != 0 || Status(p, "init").RestartCount != 0 {
			t.Errorf("PL-14 restarted: %s", summary(p))
		}
	}
	if got := k.gives(p, "c"); !strings.HasSuffix(got, " 153 15000 41943040") {
		t.Errorf("PL-14 it is given %s", got)
	}
	k.WaitEvent("p", "Killing", "Container c resize requires restart")
}

// TestResizeDeferred: a resize for which there is no room waits, also while the server is killed and started again, changes nothing
// until then, and is done when another pod has left. A server that is killed at once after one was asked for does it later, and
// restarts nothing (PL-14).
func TestResizeDeferred(t *testing.T) {
	t.Parallel()
	needV1(t)
	srv := own(t)
	k := kitOn(t, srv)
	room := k.nodeNow().Status.Allocatable.Cpu().MilliValue()
	const text = `
metadata: {name: NAME}
spec: {containers: [{name: c, command: [sh, -c, IDLE], resources: {requests: {cpu: CPUm}, limits: {cpu: CPUm}}}]}
`
	make := func(name string, cpu int64) *corev1.Pod {
		return k.up(strings.NewReplacer("NAME", name, "CPU", fmt.Sprint(cpu)).Replace(text))
	}
	big := make("big", room*6/10)
	p := make("p", 100)
	id := Status(p, "c").ContainerID
	want := fmt.Sprintf(`"cpu":"%dm"`, room*7/10)
	if _, err := k.resize("p", "containers", "c", want, want); err != nil {
		t.Fatal(err)
	}
	deferred := func(p *corev1.Pod) bool {
		c := resizeCondition(p, corev1.PodResizePending)
		return c != nil && c.Reason == corev1.PodReasonDeferred && c.ObservedGeneration == 2 &&
			strings.HasPrefix(c.Message, "Node didn't have enough resource: cpu, requested: ")
	}
	p = k.Wait("p", "say that its resize is put off", deferred)
	k.WaitEvent("p", "ResizeDeferred", "Pod resize Deferred: ")
	given := k.gives(p, "c")
	srv.Kill()
	if err := srv.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	k.up(`{metadata: {name: later}, spec: {containers: [{name: c, command: [sh, -c, IDLE]}]}}`) // the agent has begun to work
	p = k.Get("p")
	if got := k.gives(p, "c"); got != given || !deferred(p) || Status(p, "c").AllocatedResources.Cpu().String() != "100m" {
		t.Errorf("PL-14 after the server was killed it is given %s, was %s: %s", got, given, summary(p))
	}
	k.Delete("big")
	k.WaitGone(big)
	p = k.settled("p")
	if got := Status(p, "c").Resources.Limits.Cpu().MilliValue(); got != room*7/10 {
		t.Errorf("PL-14 it has %dm", got)
	}
	for i, cpu := range []int64{200, 300, 250} {
		want := fmt.Sprintf(`"cpu":"%dm"`, cpu)
		if _, err := k.resize("p", "containers", "c", want, want); err != nil {
			t.Fatal(err)
		}
		srv.Kill()
		if err := srv.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
		p = k.Wait("p", "be resized", func(p *corev1.Pod) bool {
			return p.Status.ObservedGeneration == int64(i+3) && Status(p, "c").Resources.Limits.Cpu().MilliValue() == cpu
		})
		if got := k.gives(p, "c"); !strings.Contains(got, fmt.Sprintf(" %d %d ", cpu*1024/1000, cpu*100)) {
			t.Errorf("PL-14 it is given %s, want %dm", got, cpu)
		}
	}
	if s := Status(p, "c"); s.RestartCount != 0 || s.ContainerID != id {
		t.Errorf("PL-14 it was restarted: %s", summary(p))
	}
}

// TestPodResources: resources of the pod as a whole bound its cgroup and those of containers without limits, decide its class, are what
// the downward API tells, and are resized in place (PL-23).
func TestPodResources(t *testing.T) {
	t.Parallel()
	needV1(t)
	k := newKit(t)
	p := k.up(`
metadata: {name: p}
spec:
  resources: {requests: {cpu: 200m, memory: 64Mi}, limits: {cpu: 200m, memory: 64Mi}}
  containers:
  - name: c
    command: [sh, -c, IDLE]
    env: [{name: MEMORY, valueFrom: {resourceFieldRef: {resource: limits.memory}}}]
  - {name: d, command: [sh, -c, IDLE], resources: {limits: {memory: 32Mi}}}
`)
	if p.Status.QOSClass != corev1.PodQOSGuaranteed {
		t.Errorf("PL-23 its class is %s", p.Status.QOSClass)
	}
	k.wantGives(p, "c", "204 20000 67108864 204 20000 67108864")
	k.says("p", "c", "echo $MEMORY", "67108864")
	if _, err := k.resizePatch("p", `{"spec":{"resources":{"requests":{"cpu":"300m","memory":"96Mi"},"limits":{"cpu":"300m","memory":"96Mi"}}}}`); err != nil {
		t.Fatal(err)
	}
	p = k.settled("p")
	k.wantGives(p, "c", "307 30000 100663296 307 30000 100663296")
	if got := k.gives(p, "d"); !strings.HasSuffix(got, " 33554432") {
		t.Errorf("PL-23 a container with a limit of its own is given %s", got)
	}
	if r := p.Status.Resources; r == nil || r.Limits.Cpu().String() != "300m" || r.Requests.Memory().String() != "96Mi" ||
		p.Status.AllocatedResources.Cpu().String() != "300m" {
		t.Errorf("PL-23 the status tells %v, %v", p.Status.Resources, p.Status.AllocatedResources)
	}
	if Status(p, "c").RestartCount+Status(p, "d").RestartCount != 0 {
		t.Errorf("PL-23 restarted: %s", summary(p))
	}
	_, err := k.resizePatch("p", `{"spec":{"resources":{"limits":{"cpu":null}}}}`)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.resources.limits: Forbidden: pod-level resource limits cannot be removed") {
		t.Errorf("PL-23 a limit is taken away: %v", err)
	}
}
