// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// statusOf reads one field of a process' status file.
const statusOf = `field() { sed -n "s/^$1:[[:space:]]*//p" /proc/1/status | tr '\t' ' '; }; `

// PL-07: who a container's process is, by the pod's security context, its own, and the image's.
func TestSecurityUsers(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.up(`
metadata: {name: p}
spec:
  securityContext: {runAsUser: 1001, runAsGroup: 3000, supplementalGroups: [4000, 4001], fsGroup: 5000}
  containers:
  - {name: pod, command: [sh, -c, IDLE]}
  - {name: own, command: [sh, -c, IDLE], securityContext: {runAsUser: 1000, runAsGroup: 3333}}
`)
	k.says("p", "pod", statusOf+"field Uid; field Gid; field Groups", "1001 1001 1001 1001\n3000 3000 3000 3000\n3000 4000 4001 5000 ")
	k.says("p", "own", statusOf+"field Uid; field Gid; id -G", "1000 1000 1000 1000\n3333 3333 3333 3333\n3333 2000 4000 4001 5000")
	k.up(`
metadata: {name: plain}
spec: {containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	k.says("plain", "c", statusOf+"field Uid; field NoNewPrivs; field Seccomp", "0 0 0 0\n0\n0")
}

// PL-07, PL-15: runAsNonRoot refuses a container that would be root, in words, and lets others run.
func TestSecurityRunAsNonRoot(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.pod(`
metadata: {name: image}
spec: {securityContext: {runAsNonRoot: true}, containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	k.pod(`
metadata: {name: user}
spec: {containers: [{name: c, command: [sh, -c, IDLE], securityContext: {runAsNonRoot: true, runAsUser: 0}}]}
`)
	k.pod(`
metadata: {name: fine}
spec: {securityContext: {runAsNonRoot: true, runAsUser: 1000}, containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	for name, want := range map[string]string{
		"image": "container has runAsNonRoot and image will run as root (pod: \"image_",
		"user":  "container's runAsUser breaks non-root policy (pod: \"user_",
	} {
		if s := k.WaitWaiting(name, "c", "CreateContainerConfigError"); !strings.Contains(s.State.Waiting.Message, want) {
			t.Errorf("PL-07 pod %s says %q, want %q", name, s.State.Waiting.Message, want)
		}
		k.WaitEvent(name, "Failed", "Error: container")
	}
	k.WaitReady("fine")
}

// PL-07: what a container may do: capabilities, privileged, no new privileges, read-only root.
func TestSecurityPrivileges(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.up(`
metadata: {name: p}
spec:
  containers:
  - {name: default, command: [sh, -c, IDLE]}
  - {name: none, command: [sh, -c, IDLE], securityContext: {capabilities: {drop: [ALL]}}}
  - {name: some, command: [sh, -c, IDLE], securityContext: {capabilities: {drop: [ALL], add: [NET_BIND_SERVICE, SYS_TIME]}}}
  - {name: more, command: [sh, -c, IDLE], securityContext: {capabilities: {add: [NET_ADMIN], drop: [CHOWN]}}}
  - {name: all, command: [sh, -c, IDLE], securityContext: {privileged: true}}
  - {name: locked, command: [sh, -c, IDLE], securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, runAsUser: 1000},
     volumeMounts: [{name: v, mountPath: /v}]}
  volumes: [{name: v, emptyDir: {}}]
`)
	const defaults = 0xa80425fb // the fourteen that all runtimes give
	caps := func(container, field string) uint64 {
		n, err := strconv.ParseUint(k.sh("p", container, statusOf+"field "+field), 16, 64)
		k.must(err)
		return n
	}
	for container, want := range map[string]uint64{
		"default": defaults, "none": 0, "some": 1<<10 | 1<<25, "more": defaults&^(1<<0) | 1<<12,
	} {
		if got := caps(container, "CapEff"); got != want {
			t.Errorf("PL-07 container %s has capabilities %x, want %x", container, got, want)
		}
		if got := caps(container, "CapBnd"); got != want {
			t.Errorf("PL-07 container %s may get capabilities %x, want %x", container, got, want)
		}
	}
	if got := caps("all", "CapEff"); got&(1<<21) == 0 {
		t.Errorf("PL-07 the privileged container has capabilities %x, without SYS_ADMIN", got)
	}
	k.says("p", "all", "test -w /sys/fs && test -e /dev/kmsg && echo yes", "yes")
	k.fails("p", "default", "mount -t tmpfs t /tmp", "")
	k.says("p", "locked", statusOf+"field NoNewPrivs; field CapEff", "1\n0000000000000000")
	k.fails("p", "locked", "touch /tmp/x", "Read-only file system")
	k.says("p", "locked", "touch /v/x && echo written", "written")
	t.Run("PL-07 /proc and /sys are masked", func(t *testing.T) {
		k.fails("p", "default", "echo 1 >/proc/sys/kernel/panic", "Read-only file system")
		k.fails("p", "default", "touch /sys/x", "")
		k.says("p", "default", "cat /proc/kcore | wc -c", "0")
	})
}

// PL-07: the runtime's default seccomp profile, where runc has seccomp, and none where none is asked for.
func TestSecuritySeccomp(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	out, err := exec.Command(filepath.Join(k.DataDir, "bin", "runc"), "features").Output()
	k.must(err)
	if !strings.Contains(string(out), "SCMP_ACT_ERRNO") {
		t.Skip("this runc was built without seccomp: libseccomp-dev was missing")
	}
	k.up(`
metadata: {name: p}
spec:
  containers:
  - {name: default, command: [sh, -c, IDLE], securityContext: {seccompProfile: {type: RuntimeDefault}}}
  - {name: none, command: [sh, -c, IDLE], securityContext: {seccompProfile: {type: Unconfined}}}
`)
	k.says("p", "default", statusOf+"field Seccomp", "2")
	k.says("p", "none", statusOf+"field Seccomp", "0")
	k.fails("p", "default", "unshare -U true", "Operation not permitted")
}

// PL-07, PL-20: sysctls of the pod are set in its namespaces and nowhere else; one that is not safe or does not belong to a pod is
// refused.
func TestSecuritySysctls(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.up(`
metadata: {name: p}
spec:
  securityContext: {sysctls: [{name: net.ipv4.ip_unprivileged_port_start, value: "80"}, {name: kernel.shm_rmid_forced, value: "1"}]}
  containers: [{name: c, command: [sh, -c, IDLE]}]
`)
	k.up(`
metadata: {name: other}
spec: {containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	k.says("p", "c", "cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/kernel/shm_rmid_forced", "80\n1")
	k.says("other", "c", "cat /proc/sys/kernel/shm_rmid_forced", "0")
	for name, sysctl := range map[string]string{"unsafe": "kernel.msgmax", "machines": "vm.swappiness"} {
		k.pod(`
metadata: {name: ` + name + `}
spec:
  restartPolicy: Never
  securityContext: {sysctls: [{name: ` + sysctl + `, value: "60"}]}
  containers: [{name: c, command: [sh, -c, IDLE]}]
`)
		p := k.Wait(name, "be refused by the node or fail", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
		if p.Status.Reason != "SysctlForbidden" || !strings.Contains(p.Status.Message, strconv.Quote(sysctl)+" not allowlisted") {
			t.Errorf("PL-07 PL-20 the pod failed with %q (%s), want SysctlForbidden", p.Status.Reason, p.Status.Message)
		}
	}
}
