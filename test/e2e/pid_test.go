// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// PID-03, PID-13: by default each container's process is PID 1 of a namespace of its own, sees nothing else, and reaps as an
// init system does.
func TestPIDIsolated(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.up(`
metadata: {name: p}
spec:
  containers:
  - {name: a, command: [sh, -c, IDLE]}
  - {name: b, image: tool, args: [sleep]}
  - {name: init, command: [init]}
`)
	// A container is running a moment before runc has become its program.
	begun := "while grep -q runc /proc/1/comm; do usleep 20000; done; "
	k.says("p", "a", begun+"cat /proc/1/comm; ls /proc | grep -c -E '^[0-9]+$' | awk '{print ($1 < 8)}'", "sh\n1")
	k.fails("p", "a", "ps | grep -q '[t]ool'", "")
	if a, b := k.sh("p", "a", "readlink /proc/1/ns/pid"), k.sh("p", "init", "readlink /proc/1/ns/pid"); a == b {
		t.Errorf("PID-03 two containers share the namespace %s", a)
	}
	t.Run("PID-13 an init system as PID 1", func(t *testing.T) {
		k.says("p", "init", begun+"cat /proc/1/comm", "init")
		k.says("p", "init", "(sh -c 'sleep 0.1 & exit' &); sleep 1; for i in $(seq 50); do n=$(ps -o stat | grep -c '^Z'); [ $n = 0 ] && break; usleep 100000; done; echo $n", "0") // this one has children that end all the time, too
	})
}

// PID-02, PID-04, PID-05: with shareProcessNamespace the containers see and signal each other, the pod's pause is PID 1 and
// reaps what is left behind, and another container's files are reachable.
func TestPIDShared(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.up(`
metadata: {name: p}
spec:
  shareProcessNamespace: true
  initContainers: [{name: i, command: [sh, -c, "cat /proc/1/comm"]}]
  containers:
  - {name: a, command: [sh, -c, "echo secret >/tmp/of-a; IDLE"]}
  - {name: b, command: [sh, -c, IDLE]}
  - {name: t, image: tool, args: [sleep]}
`)
	if got := k.log("p", "i"); got != "pause\n" {
		t.Errorf("PID-02 the init container's PID 1 is %q, want pause", got)
	}
	k.says("p", "a", "cat /proc/1/comm", "pause")
	if a, b := k.sh("p", "a", "readlink /proc/self/ns/pid"), k.sh("p", "b", "readlink /proc/self/ns/pid"); a != b {
		t.Errorf("PID-04 the containers are in namespaces %s and %s", a, b)
	}
	t.Run("PID-05 files of another container", func(t *testing.T) {
		k.says("p", "b", `for d in /proc/[0-9]*; do cat $d/root/tmp/of-a 2>/dev/null; done | sort -u`, "secret")
	})
	t.Run("PID-04 orphans are reaped by pause", func(t *testing.T) {
		k.says("p", "a", "(sh -c 'sleep 0.2 & exit' &); for i in $(seq 50); do usleep 100000; ps -o comm | grep -q '^sleep 0.2' || break; done; ps -o stat | grep -c '^Z'; true", "0")
	})
	t.Run("PID-04 signals reach the others", func(t *testing.T) {
		k.sh("p", "b", "kill -TERM $(pidof tool)")
		k.awaitLog("p", "t", "got terminated")
		p := k.WaitRestarts("p", "t", 1)
		if s := Ended(p, "t"); s == nil || s.ExitCode != 0 {
			t.Errorf("PID-04 the signalled container ended as %+v", s)
		}
		for _, other := range []string{"a", "b"} {
			if n := Status(p, other).RestartCount; n != 0 {
				t.Errorf("PID-04 container %s was restarted %d times", other, n)
			}
		}
	})
}

// PID-01: both modes at once are refused, on both fields.
func TestPIDModes(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.refused(`
metadata: {name: p}
spec: {hostPID: true, shareProcessNamespace: true, containers: [{name: c}]}
`, "ShareProcessNamespace and HostPID cannot both be enabled")
}

// PID-01, PID-02, PL-12: hostPID, hostIPC and hostNetwork give the machine's namespaces, and no others.
func TestHostNamespaces(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.up(`
metadata: {name: p}
spec: {hostPID: true, hostIPC: true, hostNetwork: true, containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	k.up(`
metadata: {name: own}
spec: {containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	for _, ns := range []string{"pid", "ipc", "net", "uts", "mnt"} {
		host, err := os.Readlink("/proc/self/ns/" + ns)
		k.must(err)
		script := "readlink /proc/self/ns/" + ns
		if got := k.sh("p", "c", script); (got == host) != (ns != "mnt") {
			t.Errorf("PL-12 the %s namespace is %s; the machine's is %s", ns, got, host)
		}
		if got := k.sh("own", "c", script); got == host {
			t.Errorf("PL-12 a pod that asks for nothing has the machine's %s namespace", ns)
		}
	}
	k.says("p", "c", "tr '\\0' ' ' </proc/"+strconv.Itoa(k.PID())+"/cmdline | awk '{print $2}'", "server")
	if name, err := os.Hostname(); err != nil || k.sh("p", "c", "hostname") != name {
		t.Errorf("PL-12 on the host's network the hostname is %q, want %q (%v)", k.sh("p", "c", "hostname"), name, err)
	}
	if p := k.Get("p"); p.Status.PodIP != k.NodeIP {
		t.Errorf("PL-12 on the host's network the pod's address is %s, want the node's %s", p.Status.PodIP, k.NodeIP)
	}
}

// PID-06: killing PID 1 of a shared namespace ends the sandbox; the pod gets a new one, its inits run in it, and its containers
// come back by their policies.
func TestPIDKillPause(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	dir := t.TempDir()
	before := k.up(strings.ReplaceAll(`
metadata: {name: p}
spec:
  shareProcessNamespace: true
  initContainers: [{name: i, command: [sh, -c, "echo ran >>/h/inits"], volumeMounts: [{name: h, mountPath: /h}]}]
  containers:
  - {name: a, command: [sh, -c, IDLE], securityContext: {capabilities: {add: [KILL]}}}
  - {name: b, command: [sh, -c, IDLE]}
  volumes: [{name: h, hostPath: {path: DIR}}]
`, "DIR", dir))
	k.exec("p", "a", "sh", "-c", "kill -KILL 1; kill -TERM 1") // KILL is ignored from within; pause ends on TERM. The answer may be lost with the namespace.
	after := k.Wait("p", "be ready again in a new sandbox", func(p *corev1.Pod) bool {
		a, b := Status(p, "a"), Status(p, "b")
		return a.RestartCount > 0 && b.RestartCount > 0 && Condition(p, corev1.PodReady) == corev1.ConditionTrue
	})
	for _, c := range []string{"a", "b"} {
		if Status(before, c).ContainerID == Status(after, c).ContainerID {
			t.Errorf("PID-06 container %s: %+v", c, Status(after, c))
		}
	}
	k.WaitEvent("p", "SandboxChanged", "Pod sandbox changed")
	k.says("p", "a", "cat /proc/1/comm", "pause")
	if text, err := os.ReadFile(dir + "/inits"); err != nil || string(text) != "ran\nran\n" {
		t.Errorf("PID-06 the init ran as %q (%v), want once in each sandbox", text, err)
	}
}
