// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PL-20: what is bound to the node past the scheduler and does not fit is refused by the node, in Kubernetes' words; what was there
// first stays, over a kill of the server too.
func TestNodeAdmission(t *testing.T) {
	t.Parallel()
	s := own(t, ServerOptions{Args: []string{"--allowed-unsafe-sysctls", "kernel.msg*,user.*,kernel.domainname"}})
	k := kitOn(t, s)
	patch := func(what string, sub ...string) {
		t.Helper()
		_, err := k.Client.CoreV1().Nodes().Patch(k.ctx(), s.NodeName, types.StrategicMergePatchType, []byte(what), metav1.PatchOptions{}, sub...)
		k.must(err)
	}
	port := strconv.Itoa(FreePort(t))
	bound := func(name, spec, container string) *corev1.Pod {
		t.Helper()
		return k.pod("{metadata: {name: " + name + "}, spec: {nodeName: " + s.NodeName + ", " + spec + " containers: [{name: c, command: [sh, -c, IDLE]" + container + "}]}}")
	}
	refused := func(name, spec, container, reason, message string) {
		t.Helper()
		bound(name, spec, container)
		p := k.Wait(name, "be refused", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
		if p.Status.Reason != reason || !strings.HasPrefix(p.Status.Message, "Pod was rejected: "+message) {
			t.Errorf("PL-20 %s: %q: %s; want %q: %s", name, p.Status.Reason, p.Status.Message, reason, message)
		}
		k.WaitEvent(name, reason, message)
		if len(p.Status.ContainerStatuses) > 0 {
			t.Errorf("PL-20 %s: it has statuses of containers: %+v", name, p.Status.ContainerStatuses)
		}
		if row := k.Kubectl("get", "pod", name, "--no-headers").Out; !regexp.MustCompile(`^` + name + ` +0/1 +` + regexp.QuoteMeta(reason) + ` `).MatchString(row) {
			t.Errorf("PL-20 %s: kubectl get shows %q", name, row)
		}
	}
	requests := func(name, amount string) string {
		return ", resources: {requests: {" + name + ": " + amount + "}, limits: {" + name + ": " + amount + "}}"
	}

	patch(`{"metadata": {"labels": {"disk": "ssd"}}}`)
	patch(`{"status": {"capacity": {"example.com/dongle": "2"}, "allocatable": {"example.com/dongle": "2"}}}`, "status")
	first := bound("first", "", requests("example.com/dongle", "2")+", ports: [{containerPort: 80, hostPort: "+port+"}]")
	k.WaitReady("first")
	bound("tuned", `securityContext: {sysctls: [{name: kernel.msgmax, value: "65530"}]},`, "")
	k.WaitReady("tuned")
	k.says("tuned", "c", "cat /proc/sys/kernel/msgmax", "65530")
	bound("users", `hostUsers: false, securityContext: {sysctls: [{name: user.max_user_namespaces, value: "17"}]},`, "")
	k.WaitReady("users")
	k.says("users", "c", "cat /proc/sys/user/max_user_namespaces", "17")
	bound("domain", `securityContext: {sysctls: [{name: kernel.domainname, value: pods.example}]},`, "")
	k.WaitReady("domain")
	k.says("domain", "c", "cat /proc/sys/kernel/domainname", "pods.example")
	waits := bound("waits", "nodeSelector: {disk: ssd}, volumes: [{name: v, secret: {secretName: late}}],", ", volumeMounts: [{name: v, mountPath: /v}]")
	k.WaitEvent("waits", "FailedMount", "late")

	cpus := k.nodeNow().Status.Allocatable.Cpu().MilliValue()
	refused("cpu", "", ", resources: {requests: {cpu: 1000000}}", "OutOfcpu",
		fmt.Sprintf("Node didn't have enough resource: cpu, requested: 1000000000, used: 0, capacity: %d", cpus))
	refused("memory", "", ", resources: {requests: {memory: 1Pi}}", "OutOfmemory", "Node didn't have enough resource: memory, requested: 1125899906842624")
	refused("dongle", "", requests("example.com/dongle", "1"), "OutOfexample.com/dongle", "Node didn't have enough resource: example.com/dongle, requested: 1, used: 2, capacity: 2")
	refused("port", "", ", ports: [{containerPort: 80, hostPort: "+port+"}]", "NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports")
	refused("label", "nodeSelector: {disk: hdd},", "", "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector")
	refused("users-shared", `securityContext: {sysctls: [{name: user.max_user_namespaces, value: "17"}]},`, "", "SysctlForbidden",
		`forbidden sysctl: "user.max_user_namespaces" not allowed with host User enabled`)
	refused("domain-shared", `hostNetwork: true, securityContext: {sysctls: [{name: kernel.domainname, value: pods.example}]},`, "", "SysctlForbidden",
		`forbidden sysctl: "kernel.domainname" not allowed with host UTS enabled`)
	if name, err := os.ReadFile("/proc/sys/kernel/domainname"); err != nil || strings.Contains(string(name), "pods.example") {
		t.Errorf("PL-20 the machine's domain name is %q, %v", name, err)
	}
	refused("sysctl", `securityContext: {sysctls: [{name: kernel.shmmax, value: "65536"}]},`, "", "SysctlForbidden", `forbidden sysctl: "kernel.shmmax" not allowlisted`)

	// No taint: it would be a race between the node that refuses a pod and the controller that evicts it (WL-07).
	patch(`{"metadata": {"labels": {"disk": null}}}`)
	s.Kill()
	k.must(s.Start(context.Background()))
	refused("late-port", "", ", ports: [{containerPort: 80, hostPort: "+port+"}]", "NodePorts", "Predicate NodePorts failed")
	if now := k.Get("waits"); now.Status.Phase != corev1.PodPending || now.UID != waits.UID {
		t.Errorf("PL-20 the pod that was taken and had not begun is %s (%s: %s)", now.Status.Phase, now.Status.Reason, now.Status.Message)
	}
	k.secret("late", map[string]string{"a": "b"})
	k.WaitReady("waits")
	if now := k.Get("first"); now.UID != first.UID || now.Status.Phase != corev1.PodRunning || now.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("PL-20 the first pod is %s", facts(now))
	}
	k.Delete("first")
	k.WaitGone(first)
	bound("next", "", requests("example.com/dongle", "2")+", ports: [{containerPort: 80, hostPort: "+port+"}]")
	k.WaitReady("next")
}

// nodeNow is the server's node.
func (k *kit) nodeNow() *corev1.Node {
	k.t.Helper()
	n, err := k.Client.CoreV1().Nodes().Get(k.ctx(), k.NodeName, metav1.GetOptions{})
	k.must(err)
	return n
}

// PL-20: a critical pod that is bound to a full node gets room from one of lower priority, and begins when that has gone.
func TestCriticalPodMakesRoom(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := own(t)
	k := kitOn(t, s)
	_, err := k.Client.CoreV1().Nodes().Patch(k.ctx(), s.NodeName, types.StrategicMergePatchType,
		[]byte(`{"status": {"capacity": {"example.com/dongle": "2"}, "allocatable": {"example.com/dongle": "2"}}}`), metav1.PatchOptions{}, "status")
	k.must(err)
	pod := func(name, spec, command string, dongles int) *corev1.Pod {
		t.Helper()
		amount := fmt.Sprintf("{example.com/dongle: %d}", dongles)
		return k.pod("{metadata: {name: " + name + "}, spec: {nodeName: " + s.NodeName + ", " + spec + " containers: [{name: c, command: [sh, -c, " +
			strconv.Quote(command) + "], resources: {requests: " + amount + ", limits: " + amount + "}}]}}")
	}
	pod("first", "", "trap 'sleep 2; exit 0' TERM; IDLE & wait", 2)
	k.WaitReady("first")
	pod("toobig", "priorityClassName: system-node-critical,", "IDLE", 3)
	if p := k.WaitPhase("toobig", corev1.PodFailed); p.Status.Reason != "OutOfexample.com/dongle" {
		t.Errorf("PL-20 more than there is: %s: %s", p.Status.Reason, p.Status.Message)
	}
	pod("agent", "priorityClassName: system-node-critical,", "IDLE", 1)
	agent := k.WaitReady("agent")
	gone := k.WaitPhase("first", corev1.PodFailed)
	if gone.Status.Reason != "Preempting" || gone.Status.Message != "Preempted in order to admit critical pod" {
		t.Errorf("PL-20 the pod that made room: %s: %s", gone.Status.Reason, gone.Status.Message)
	}
	k.WaitEvent("first", "Preempting", "Preempted in order to admit critical pod")
	ended, began := gone.Status.ContainerStatuses[0].State.Terminated, agent.Status.ContainerStatuses[0].State.Running
	if ended == nil || began == nil || began.StartedAt.Before(&ended.FinishedAt) {
		t.Errorf("PL-20 the critical pod began before there was room: %+v, %+v", ended, began)
	}
}
