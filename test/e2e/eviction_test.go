// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func podCondition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// evicted waits until a pod is, and holds its status against what is documented.
func (k *kit) evicted(name string, message ...string) *corev1.Pod {
	k.t.Helper()
	p := k.WaitPhase(name, corev1.PodFailed)
	if p.Status.Reason != "Evicted" {
		k.t.Errorf("pod %s: reason %q, want Evicted", name, p.Status.Reason)
	}
	for _, m := range message {
		if !strings.Contains(p.Status.Message, m) {
			k.t.Errorf("pod %s: message %q lacks %q", name, p.Status.Message, m)
		}
	}
	if c := podCondition(p, corev1.DisruptionTarget); c == nil || c.Status != corev1.ConditionTrue ||
		c.Reason != "TerminationByKubelet" {
		k.t.Errorf("pod %s: condition DisruptionTarget is %+v", name, c)
	}
	k.WaitEvent(name, "Evicted", message[0])
	return p
}

// TestEvictionLimits: PL-13 a pod that has more on disk than its emptyDir, its container or it as a whole may is
// evicted, with the documented messages; EC-18 what its debug containers write counts, and is named; others stay.
func TestEvictionLimits(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	fill := func(at string) string { return "dd if=/dev/zero of=" + at + "/f bs=1M count=8 && IDLE" }
	k.up("metadata: {name: stays}\nspec: {containers: [{name: c, command: [sh, -c, '" + fill("/v") +
		"'], volumeMounts: [{name: v, mountPath: /v}], " +
		"resources: {limits: {ephemeral-storage: 64Mi}}}], volumes: [{name: v, emptyDir: {sizeLimit: 32Mi}}]}")
	k.up("metadata: {name: debugged}\nspec: {containers: [{name: c, command: [sh, -c, IDLE], resources: {limits: {ephemeral-storage: 4Mi}}}]}")
	k.debugger("debugged", "dbg", strings.ReplaceAll(fill("/tmp"), "IDLE", Idle))
	k.pod("metadata: {name: volume}\nspec: {containers: [{name: c, command: [sh, -c, '" + fill("/v") +
		"'], volumeMounts: [{name: v, mountPath: /v}]}], " +
		"volumes: [{name: v, emptyDir: {sizeLimit: 1Mi}}]}")
	k.pod("metadata: {name: container}\nspec: {containers: [{name: c, command: [sh, -c, '" + fill("/tmp") +
		"'], resources: {limits: {ephemeral-storage: 4Mi}}}, " +
		"{name: d, command: [sh, -c, IDLE], resources: {limits: {ephemeral-storage: 100Mi}}}]}")
	k.evicted("volume", `Usage of EmptyDir volume "v" exceeds the limit "1Mi".`)
	k.evicted("container", `Container c exceeded its local ephemeral storage limit "4Mi".`)
	k.evicted("debugged", "Pod ephemeral local storage usage exceeds the total limit of containers 4Mi.",
		"Debug container dbg was using 8")
	k.Kubectl("describe", "pod", "volume").Has("Evicted", `Usage of EmptyDir volume "v" exceeds the limit "1Mi".`)
	if p := k.Get("stays"); p.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod within its limits is %s: %s", p.Status.Phase, p.Status.Message)
	}
}

// nodeIs waits until the node has a condition and the taint that goes with it, or has not.
func (k *kit) nodeIs(kind corev1.NodeConditionType, taint string, want corev1.ConditionStatus) {
	k.t.Helper()
	is := func(n *corev1.Node) bool {
		has := false
		for _, t := range n.Spec.Taints {
			has = has || t.Key == taint && t.Effect == corev1.TaintEffectNoSchedule
		}
		for _, c := range n.Status.Conditions {
			if c.Type == kind {
				return c.Status == want && has == (want == corev1.ConditionTrue)
			}
		}
		return false
	}
	nodes := k.Server.Client.CoreV1().Nodes()
	n, err := nodes.Get(k.ctx(), k.Server.NodeName, metav1.GetOptions{})
	k.must(err)
	if is(n) {
		return
	}
	w, err := nodes.Watch(k.ctx(), metav1.ListOptions{FieldSelector: "metadata.name=" + k.Server.NodeName,
		ResourceVersion: n.ResourceVersion})
	k.must(err)
	defer w.Stop()
	for e := range w.ResultChan() {
		if now, ok := e.Object.(*corev1.Node); ok && is(now) {
			return
		}
	}
	k.t.Fatalf("the node's condition %s does not become %s with its taint", kind, want)
}

// restart starts the test's server again with other flags.
func (k *kit) restart(args ...string) {
	k.t.Helper()
	k.must(k.Server.Stop())
	k.Server.opts.Args = args
	k.again()
}

// TestEvictionMemory: PL-13 when memory is short, who uses more than requested goes first, with a message that says who
// used how much, also its debug containers (EC-18); the node has the condition and the taint; new best-effort pods are
// turned away; when it is over the node is as before.
func TestEvictionMemory(t *testing.T) {
	t.Parallel()
	k := kitOn(t, own(t))
	k.pod("metadata: {name: hog}\nspec: {containers: [{name: c, image: tool, args: [alloc, '64']}]}")
	k.up("metadata: {name: modest}\nspec: {containers: [{name: c, command: [sh, -c, IDLE], resources: {requests: {memory: 512Mi}}}]}")
	k.WaitReady("hog")
	k.debugger("hog", "dbg", Idle)

	k.restart("--eviction-hard", "memory.available<99%", "--eviction-pressure-transition-period", "1s")
	hog := k.evicted("hog", "The node was low on resource: memory. Threshold quantity: 99%, available: ",
		"Container c was using ", "request is 0, has larger consumption of memory.", "Debug container dbg was using")
	_, used, _ := strings.Cut(hog.Status.Message, "Container c was using ")
	used, _, _ = strings.Cut(used, ",")
	// with what Go takes for itself
	if q, err := resource.ParseQuantity(used); err != nil || q.Value() < 64<<20 || q.Value() > 96<<20 {
		t.Errorf("%q of memory, want 64Mi and a little: %s", used, hog.Status.Message)
	}
	k.nodeIs(corev1.NodeMemoryPressure, "node.kubernetes.io/memory-pressure", corev1.ConditionTrue)
	if k.before("modest", "hog") {
		t.Error("the pod within its request was evicted before the other")
	}
	k.pod("metadata: {name: waits}\nspec: {containers: [{name: c, command: [sh, -c, IDLE]}]}")
	k.WaitEvent("waits", "FailedScheduling", "memory-pressure")
	bound := podOf(t, "metadata: {name: bound}\nspec: {containers: [{name: c, command: [sh, -c, IDLE]}]}")
	bound.Spec.NodeName = k.Server.NodeName
	k.Create(bound)
	p := k.WaitPhase("bound", corev1.PodFailed)
	if p.Status.Reason != "Evicted" ||
		p.Status.Message != "Pod was rejected: The node had condition: [MemoryPressure]. " {
		t.Errorf("a pod that came under pressure: %s: %q", p.Status.Reason, p.Status.Message)
	}
	m := k.metrics("/api/v1/nodes/" + k.Server.NodeName + "/proxy/metrics")
	if m[`kubelet_evictions{eviction_signal="memory.available"}`] == "" {
		t.Error("the metrics do not count the eviction")
	}

	k.restart("--eviction-hard", "memory.available<1Mi")
	k.nodeIs(corev1.NodeMemoryPressure, "node.kubernetes.io/memory-pressure", corev1.ConditionFalse)
	k.WaitReady("waits")
}

// before tells whether one pod was evicted before another.
func (k *kit) before(one, other string) bool {
	a, b := podCondition(k.Get(one), corev1.DisruptionTarget), podCondition(k.Get(other), corev1.DisruptionTarget)
	return a != nil && b != nil && a.LastTransitionTime.Time.Before(b.LastTransitionTime.Time)
}

// onSmallDisk starts a server whose data folder is on a file system of its own.
func onSmallDisk(t *testing.T, size string, args ...string) *Server {
	t.Helper()
	return own(t, ServerOptions{Disk: size, Args: args})
}

// TestEvictionDisk: PL-13 on a disk that gets full what ended pods left goes first, then the pod that has written most;
// the images of the others, and those that no registry has, stay. New pods are refused while it lasts. ATTACK C15.
func TestEvictionDisk(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	k := inDefault(t, onSmallDisk(t, "1200m", "--eviction-hard", "nodefs.available<50%",
		"--eviction-pressure-transition-period", "1s"))
	k.ran("metadata: {name: dead}\nspec: {restartPolicy: Never, containers: [{name: c, command: [sh, -c, 'echo last words; exit 3']}]}")
	k.up("metadata: {name: quiet}\nspec: {containers: [{name: c, command: [sh, -c, IDLE]}]}")
	k.pod("metadata: {name: writer}\nspec: {containers: [{name: c, command: [sh, -c, 'sleep 1; dd if=/dev/zero of=/v/f bs=1M count=500; IDLE'], " +
		"volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, emptyDir: {}}]}")
	k.nodeIs(corev1.NodeDiskPressure, "node.kubernetes.io/disk-pressure", corev1.ConditionTrue)
	k.evicted("writer", "The node was low on resource: ephemeral-storage. Threshold quantity: 50%, available: ")
	k.nodeIs(corev1.NodeDiskPressure, "node.kubernetes.io/disk-pressure", corev1.ConditionFalse)
	if p := k.Get("quiet"); p.Status.Phase != corev1.PodRunning || p.Status.ContainerStatuses[0].RestartCount > 0 {
		t.Errorf("the other pod is %s", p.Status.Phase)
	}
	if s := k.Get("dead").Status.ContainerStatuses[0].State.Terminated; s == nil || s.ExitCode != 3 {
		t.Errorf("how the ended pod ended is lost: %+v", s)
	}
	if text := k.log("dead", "c"); text != "last words\n" {
		t.Errorf("its log is %q", text)
	}
	k.up("metadata: {name: next}\nspec: {containers: [{name: c, command: [sh, -c, IDLE]}]}") // its image was kept
	for _, name := range []string{"dead", "quiet", "writer", "next"} {
		pod := k.Get(name)
		k.Delete(name)
		k.WaitGone(pod)
	}
}
