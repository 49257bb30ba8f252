// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// onCPUs prints the CPUs that the kernel lets a process run on.
const onCPUs = "grep Cpus_allowed_list /proc/self/status | cut -f2"

// TestCPUManager proves PL-33: with the policy static a guaranteed pod that requests a whole CPU has it to itself, its
// init container before it too; others are moved off it while it runs, debuggers and what was there before among them,
// and back when it has ended; the reserved CPU is nobody's alone and not allocatable; a killed server changes nothing
// of it, and the policy none takes it back.
func TestCPUManager(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	if n := runtime.NumCPU(); n != 2 {
		t.Skipf("the test is written for a machine of 2 CPUs; this one has %d", n)
	}
	static := []string{"--cpu-manager-policy", "static", "--reserved-cpus", "0"}
	k := kitOn(t, own(t, ServerOptions{Args: static}))
	if n := k.nodeNow(); n.Status.Allocatable.Cpu().Value() != 1 || n.Status.Capacity.Cpu().Value() != 2 {
		t.Errorf("allocatable are %v of %v CPUs", n.Status.Allocatable.Cpu(), n.Status.Capacity.Cpu())
	}
	k.up("metadata: {name: free}\nspec: {containers: [{name: c, command: [sh, -c, IDLE]}]}")
	k.says("free", "c", onCPUs, "0-1")

	const whole = `
spec:
  terminationGracePeriodSeconds: 1
  initContainers: [{name: first, command: [sh, -c, '` + onCPUs + ` > /v/first'], resources: {limits: {cpu: 1, memory: 32Mi}}, volumeMounts: [{name: v, mountPath: /v}]}]
  containers: [{name: c, command: [sh, -c, IDLE], resources: {limits: {cpu: 1, memory: 32Mi}}, volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, emptyDir: {}}]
`
	first := k.up("metadata: {name: first}" + whole)
	k.says("first", "c", onCPUs+"; cat /v/first", "1\n1")
	k.until("free", onCPUs, "0")
	k.up("metadata: {name: later}\nspec: {containers: [{name: c, command: [sh, -c, IDLE]}]}")
	k.says("later", "c", onCPUs, "0")
	k.pod("metadata: {name: second}" + whole)
	k.WaitEvent("second", "FailedScheduling", "Insufficient cpu")
	if out, err := k.debug("first", "look", onCPUs); err != nil || !strings.HasSuffix(strings.TrimSpace(out), "0") {
		t.Errorf("a debug container runs on %q, %v", out, err)
	}

	k.Server.Kill()
	k.again()
	k.says("first", "c", onCPUs, "1")
	k.says("free", "c", onCPUs, "0")
	k.stop1("first", "c")
	k.Wait("first", "restarted", startedAgain)
	k.says("first", "c", onCPUs, "1")

	k.Delete("first")
	k.WaitGone(first)
	k.Wait("second", "running", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	k.says("second", "c", onCPUs, "1")
	k.until("free", onCPUs, "0")
	if pod, err := k.resize("second", "containers", "c", `"cpu":"500m"`, `"cpu":"500m"`); err != nil {
		t.Errorf("resizing %s: %v", pod.Name, err)
	}
	k.Wait("second", "told that its CPUs stay", func(p *corev1.Pod) bool {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodResizePending && c.Reason == corev1.PodReasonInfeasible {
				return strings.Contains(c.Message,
					"Resize is infeasible for Guaranteed Pods alongside CPU Manager static policy")
			}
		}
		return false
	})

	k.restart() // with policy none
	k.until("free", onCPUs, "0-1")
	k.until("second", onCPUs, "0-1")
}

// until waits until a script in a pod's only main container says so.
func (k *kit) until(pod, script, want string) {
	k.t.Helper()
	k.says(pod, "c", "for i in $(seq 300); do got=$("+script+"); [ \"$got\" = \""+want+
		"\" ] && break; sleep 0.1; done; echo $got", want)
}
