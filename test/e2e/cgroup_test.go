// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// cgroupOf finds the cgroup of a pod in a v1 hierarchy.
func (k *kit) cgroupOf(controller string, pod *corev1.Pod) string {
	k.t.Helper()
	f, err := k.footprint()
	k.must(err)
	root := filepath.Join("/sys/fs/cgroup", controller, f.cgroupRoot(), "kubepods")
	for _, class := range []string{"", "burstable", "besteffort"} {
		dir := filepath.Join(root, class, "pod"+string(pod.UID))
		if _, err := os.Stat(dir); err == nil {
			return dir
		}
	}
	k.t.Fatalf("pod %s has no cgroup below %s", pod.Name, root)
	return ""
}

func (k *kit) value(dir, file string) string {
	k.t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, file))
	k.must(err)
	return strings.TrimSpace(string(text))
}

func needV1(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/sys/fs/cgroup/memory/memory.limit_in_bytes"); err != nil {
		t.Skip("this machine has no cgroup v1; the values of v2 are tested by package cgroup")
	}
}

// PL-08: every pod has a cgroup under its QoS class, with what its containers ask for and may have, and so has every container.
func TestCgroups(t *testing.T) {
	t.Parallel()
	needV1(t)
	k := newKit(t)
	cases := []struct {
		name, resources, class      string
		shares, quota, memory       string // of the pod
		ofShares, ofQuota, ofMemory string // of its container
		qos                         corev1.PodQOSClass
	}{
		{name: "best", resources: "{}", class: "besteffort", qos: corev1.PodQOSBestEffort, shares: "2", quota: "-1", ofShares: "2", ofQuota: "-1"},
		{name: "burst", resources: "{requests: {cpu: 250m, memory: 16Mi}, limits: {memory: 64Mi}}", class: "burstable", qos: corev1.PodQOSBurstable,
			shares: "256", quota: "-1", memory: "67108864", ofShares: "256", ofQuota: "-1", ofMemory: "67108864"},
		{name: "guaranteed", resources: "{requests: {cpu: 500m, memory: 64Mi}, limits: {cpu: 500m, memory: 64Mi}}", class: "kubepods", qos: corev1.PodQOSGuaranteed,
			shares: "512", quota: "50000", memory: "67108864", ofShares: "512", ofQuota: "50000", ofMemory: "67108864"},
	}
	for _, c := range cases {
		t.Run("PL-08 "+c.name, func(t *testing.T) {
			pod := k.up(strings.NewReplacer("NAME", c.name, "RESOURCES", c.resources).Replace(`
metadata: {name: NAME}
spec: {containers: [{name: c, command: [sh, -c, IDLE], resources: RESOURCES}]}
`))
			if pod.Status.QOSClass != c.qos {
				t.Errorf("class %s, want %s", pod.Status.QOSClass, c.qos)
			}
			cpu, memory := k.cgroupOf("cpu", pod), k.cgroupOf("memory", pod)
			if got := filepath.Base(filepath.Dir(cpu)); got != c.class {
				t.Errorf("its cgroup is below %s, want %s", got, c.class)
			}
			id := strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "containerd://")
			check := func(dir, file, want string) {
				t.Helper()
				if got := k.value(dir, file); want != "" && got != want {
					t.Errorf("%s/%s is %s, want %s", dir, file, got, want)
				}
			}
			check(cpu, "cpu.shares", c.shares)
			check(cpu, "cpu.cfs_quota_us", c.quota)
			check(memory, "memory.limit_in_bytes", c.memory)
			check(filepath.Join(cpu, id), "cpu.shares", c.ofShares)
			check(filepath.Join(cpu, id), "cpu.cfs_quota_us", c.ofQuota)
			check(filepath.Join(memory, id), "memory.limit_in_bytes", c.ofMemory)
		})
	}
	t.Run("PL-08 oom_score_adj", func(t *testing.T) {
		k.says("best", "c", "cat /proc/1/oom_score_adj", "1000")
		want := "-997"
		if !mayLowerOOM(t) {
			want = k.value("/proc/self", "oom_score_adj") // as low as this machine lets it be
		}
		k.says("guaranteed", "c", "cat /proc/1/oom_score_adj", want)
	})
}

// PL-08: a container over its memory limit is killed and the status says so, of that one only; the others go on.
func TestOOMKilled(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.pod(`
metadata: {name: p}
spec:
  restartPolicy: Never
  containers:
  - {name: big, image: tool, args: [alloc, "200"], resources: {limits: {memory: 40Mi}}}
  - {name: small, image: tool, args: [sleep], resources: {limits: {memory: 40Mi}}}
`)
	// Both are started at once: big may have come to its end before small has begun.
	p := k.Wait("p", "have big ended and small running", func(p *corev1.Pod) bool {
		big, small := Status(p, "big"), Status(p, "small")
		return big != nil && big.State.Terminated != nil && small != nil && small.State.Waiting == nil
	})
	if s := Ended(p, "big"); s.Reason != "OOMKilled" || s.ExitCode != 137 {
		t.Errorf("PL-08 the container over its limit ended with %s (%d), want OOMKilled (137)", s.Reason, s.ExitCode)
	}
	if s := Status(p, "small"); s.State.Running == nil || p.Status.Phase != corev1.PodRunning {
		t.Errorf("PL-08 the other container is %s, the pod %s", s.State.String(), p.Status.Phase)
	}
	k.Delete("p")
}

// mayLowerOOM says whether this process, and so the server, has CAP_SYS_RESOURCE.
func mayLowerOOM(t *testing.T) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "CapEff:\t")
	caps, err := strconv.ParseUint(rest[:16], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return caps&(1<<24) != 0
}
