// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// onCPUs prints the CPUs that the kernel lets a process run on.
const onCPUs = "grep Cpus_allowed_list /proc/self/status | cut -f2"

// cpuQuota prints how much CPU time the kernel lets a container have in each period; -1 for as much as there is.
const cpuQuota = "cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null || cut -d \" \" -f1 /sys/fs/cgroup/cpu.max | sed s/max/-1/"

// TestCPUManager proves PL-33: with the policy static a guaranteed pod that requests a whole CPU has it to itself, its
// init container before it too, and no quota; others are moved off it while it runs, debuggers and what was there before among them,
// and back when it has ended; the reserved CPU is nobody's alone and not allocatable; a killed server changes nothing
// of it, and the policy none takes it back.
func TestCPUManager(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	n := runtime.NumCPU()
	if n < 2 {
		t.Skip("this machine has one CPU, which nobody can have to himself")
	}
	own1, all := strconv.Itoa(n-1), fmt.Sprintf("0-%d", n-1) // all but the last are reserved
	rest := "0"
	if n > 2 {
		rest = fmt.Sprintf("0-%d", n-2)
	}
	static := []string{"--cpu-manager-policy", "static", "--reserved-cpus", rest}
	k := kitOn(t, own(t, ServerOptions{Args: static}))
	if s := k.nodeNow().Status; s.Allocatable.Cpu().Value() != 1 || s.Capacity.Cpu().Value() != int64(n) {
		t.Errorf("allocatable are %v of %v CPUs", s.Allocatable.Cpu(), s.Capacity.Cpu())
	}
	k.up("metadata: {name: free}\nspec: {containers: [{name: c, command: [sh, -c, IDLE]}]}")
	k.says("free", "c", onCPUs, all)

	const whole = `
spec:
  terminationGracePeriodSeconds: 1
  initContainers: [{name: first, command: [sh, -c, '` + onCPUs + ` > /v/first'], resources: {limits: {cpu: 1, memory: 32Mi}}, volumeMounts: [{name: v, mountPath: /v}]}]
  containers: [{name: c, command: [sh, -c, IDLE], resources: {limits: {cpu: 1, memory: 32Mi}}, volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, emptyDir: {}}]
`
	first := k.up("metadata: {name: first}" + whole)
	k.says("first", "c", onCPUs+"; cat /v/first", own1+"\n"+own1)
	k.says("first", "c", cpuQuota, "-1")
	if _, err := os.Stat("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"); err == nil { // cgroup v2 is tested by package cgroup
		if got := k.value(k.cgroupOf("cpu", first), "cpu.cfs_quota_us"); got != "-1" {
			t.Errorf("the quota of the pod's cgroup is %s", got)
		}
	}
	k.until("free", onCPUs, rest)
	k.up("metadata: {name: later}\nspec: {containers: [{name: c, command: [sh, -c, IDLE]}]}")
	k.says("later", "c", onCPUs, rest)
	k.pod("metadata: {name: second}" + whole)
	k.WaitEvent("second", "FailedScheduling", "Insufficient cpu")
	if out, err := k.debug("first", "look", onCPUs); err != nil || !strings.HasSuffix(strings.TrimSpace(out), rest) {
		t.Errorf("a debug container runs on %q, %v", out, err)
	}

	k.Server.Kill()
	k.again()
	k.says("first", "c", onCPUs, own1)
	k.says("free", "c", onCPUs, rest)
	k.stop1("first", "c")
	k.Wait("first", "restarted", startedAgain)
	k.says("first", "c", onCPUs, own1)

	k.Delete("first")
	k.WaitGone(first)
	k.Wait("second", "running", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	k.says("second", "c", onCPUs, own1)
	k.until("free", onCPUs, rest)
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
	k.until("free", onCPUs, all)
	k.until("second", onCPUs, all)
	k.until("second", cpuQuota, "50000") // what it was to be resized to
}

// until waits until a script in a pod's only main container says so.
func (k *kit) until(pod, script, want string) {
	k.t.Helper()
	k.says(pod, "c", "for i in $(seq 300); do got=$("+script+"); [ \"$got\" = \""+want+
		"\" ] && break; sleep 0.1; done; echo $got", want)
}
