// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/cgroups"
	corev1 "k8s.io/api/core/v1"
)

// onThisMachine is a driver on this machine's cgroups, below a root of its own that is gone at the end.
func onThisMachine(t testing.TB, change func(*Config)) *driver {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	host, err := Detect()
	if err != nil {
		t.Skip("this machine has no usable cgroups: ", err)
	}
	if host.Systemd {
		t.Skip("systemd runs here: its tree is not for tests to change")
	}
	c := Config{Host: host, Root: fmt.Sprintf("wherry-test-%d-%d", os.Getpid(), time.Now().UnixNano())}
	if change != nil {
		change(&c)
	}
	d, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Setup(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Teardown(); err != nil {
			t.Error(err)
		}
		for controller, p := range d.(*driver).paths(name{c.Root}) {
			if cgroups.PathExists(p) {
				t.Errorf("left in hierarchy %q: %s", controller, p)
			}
		}
	})
	return d.(*driver)
}

// read reads a parameter of v1 or v2 of a cgroup.
func read(t testing.TB, d *driver, n name, v1, v2 string) string {
	t.Helper()
	controller, _, _ := strings.Cut(v1, ".")
	file := filepath.Join(d.paths(n)[controller], v1)
	if d.config.Host.V2 {
		file = filepath.Join(d.paths(n)[""], v2)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func v1Only(t testing.TB, d *driver) {
	if d.config.Host.V2 {
		t.Skip("this machine has cgroup v2; the values are v1's")
	}
}

func TestPL08PodCgroupsOnThisMachine(t *testing.T) {
	d := onThisMachine(t, func(c *Config) { c.Limits.PodPIDs = 100; c.Allocatable = list("cpu=2 memory=1Gi") })
	v1Only(t, d)
	g := pod("uid-g", container("a", "cpu=500m memory=64Mi", "cpu=500m memory=64Mi"))
	b := pod("uid-b", container("a", "cpu=250m memory=32Mi", ""))
	b2 := pod("uid-b2", container("a", "cpu=1", "memory=128Mi"))
	e := pod("uid-e", container("a", "", ""))
	for range 2 { // idempotent
		for _, p := range []*corev1.Pod{g, b, b2, e} {
			if err := d.EnsurePod(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	for controller, p := range d.paths(d.layout.pod(corev1.PodQOSGuaranteed, g.UID)) {
		if controller != "devices" && !cgroups.PathExists(p) { // devices are the runtime's
			t.Errorf("not there in hierarchy %q", controller)
		}
	}
	unlimitedMemory := "9223372036854771712"
	for _, tc := range []struct {
		what string
		n    name
		want string
	}{
		{"kubepods", d.layout.top(), "2048 -1 1073741824 max"},
		{"burstable", d.layout.class(corev1.PodQOSBurstable), "1280 -1 " + unlimitedMemory + " max"},
		{"besteffort", d.layout.class(corev1.PodQOSBestEffort), "2 -1 " + unlimitedMemory + " max"},
		{"guaranteed pod", d.layout.pod(corev1.PodQOSGuaranteed, g.UID), "512 50000 67108864 100"},
		{"burstable pod", d.layout.pod(corev1.PodQOSBurstable, b.UID), "256 -1 " + unlimitedMemory + " 100"},
		{"burstable pod with memory limit", d.layout.pod(corev1.PodQOSBurstable, b2.UID), "1024 -1 134217728 100"},
		{"best-effort pod", d.layout.pod(corev1.PodQOSBestEffort, e.UID), "2 -1 " + unlimitedMemory + " 100"},
	} {
		got := strings.Join([]string{
			read(t, d, tc.n, "cpu.shares", ""), read(t, d, tc.n, "cpu.cfs_quota_us", ""),
			read(t, d, tc.n, "memory.limit_in_bytes", ""), read(t, d, tc.n, "pids.max", ""),
		}, " ")
		if got != tc.want {
			t.Errorf("%s: %s, want %s", tc.what, got, tc.want)
		}
	}
	if uids, err := d.List(); err != nil || fmt.Sprint(uids) != "[uid-b uid-b2 uid-e uid-g]" {
		t.Errorf("list %v, %v", uids, err)
	}

	t.Run("resize", func(t *testing.T) {
		g.Spec.Containers[0] = container("a", "cpu=1 memory=32Mi", "cpu=1 memory=32Mi")
		if err := d.EnsurePod(g); err != nil {
			t.Fatal(err)
		}
		n := d.layout.pod(corev1.PodQOSGuaranteed, g.UID)
		if got := read(t, d, n, "cpu.shares", "") + " " + read(t, d, n, "memory.limit_in_bytes", ""); got != "1024 33554432" {
			t.Error(got)
		}
	})
	t.Run("a restarted server knows the burstable shares", func(t *testing.T) {
		again, err := New(d.config)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Setup(); err != nil {
			t.Fatal(err)
		}
		if got := read(t, d, d.layout.class(corev1.PodQOSBurstable), "cpu.shares", ""); got != "1280" {
			t.Error(got)
		}
	})
	for _, p := range []*corev1.Pod{g, b, b2, e} {
		for range 2 {
			if err := d.RemovePod(p.UID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if uids, err := d.List(); err != nil || len(uids) != 0 {
		t.Errorf("left: %v, %v", uids, err)
	}
	if got := read(t, d, d.layout.class(corev1.PodQOSBurstable), "cpu.shares", ""); got != "2" {
		t.Errorf("burstable class without pods has %s shares", got)
	}
}

func TestPL08RemovePod(t *testing.T) {
	d := onThisMachine(t, nil)
	p := pod("uid-busy", container("a", "", ""))
	if err := d.EnsurePod(p); err != nil {
		t.Fatal(err)
	}
	paths := d.paths(d.layout.pod(corev1.PodQOSBestEffort, p.UID))
	for _, folder := range paths { // what a runtime leaves behind
		if err := os.MkdirAll(filepath.Join(folder, "container", "nested"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var memory string
	for _, key := range []string{"memory", ""} {
		if memory == "" {
			memory = paths[key]
		}
	}
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	defer kill()
	inner := filepath.Join(memory, "container")
	if err := cgroups.WriteCgroupProc(inner, cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	err := d.RemovePod(p.UID)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("processes %d are still in it", cmd.Process.Pid)) {
		t.Errorf("busy: %v", err)
	}
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process did not survive: %v", err)
	}
	if uids, _ := d.List(); len(uids) != 1 || !d.HasPod(p.UID) {
		t.Errorf("list %v, has %v", uids, d.HasPod(p.UID))
	}
	kill()
	if err := d.RemovePod(p.UID); err != nil {
		t.Fatal(err)
	}
	if uids, _ := d.List(); len(uids) != 0 || d.HasPod(p.UID) {
		t.Errorf("left %v, has %v", uids, d.HasPod(p.UID))
	}
	// A container that was being started makes its cgroup late, in one hierarchy after another.
	if err := os.MkdirAll(filepath.Join(memory, "late"), 0o755); err != nil {
		t.Fatal(err)
	}
	if !d.HasPod(p.UID) {
		t.Error("PL-10 a late cgroup is not seen")
	}
	if err := d.RemovePod(p.UID); err != nil || d.HasPod(p.UID) {
		t.Errorf("PL-10 a late cgroup stays: %v", err)
	}
	for _, uid := range []string{"", "../x", "a/b"} {
		if err := d.RemovePod(pod(uid).UID); err == nil {
			t.Errorf("UID %q is accepted", uid)
		}
		if err := d.EnsurePod(pod(uid, container("a", "", ""))); err == nil {
			t.Errorf("UID %q is accepted", uid)
		}
	}
}

func TestTwoServersDoNotMeet(t *testing.T) {
	one, two := onThisMachine(t, nil), onThisMachine(t, nil)
	p := pod("uid", container("a", "cpu=1", ""))
	if err := one.EnsurePod(p); err != nil {
		t.Fatal(err)
	}
	if uids, err := two.List(); err != nil || len(uids) != 0 {
		t.Errorf("the other sees %v, %v", uids, err)
	}
	if err := two.RemovePod(p.UID); err != nil {
		t.Error(err)
	}
	if uids, err := one.List(); err != nil || len(uids) != 1 {
		t.Errorf("the pod is gone: %v, %v", uids, err)
	}
	if err := one.RemovePod(p.UID); err != nil {
		t.Error(err)
	}
}

func TestManyPodsAtOnce(t *testing.T) {
	d := onThisMachine(t, nil)
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			p := pod(fmt.Sprint("uid", i), container("a", "cpu=100m", ""))
			if err := d.EnsurePod(p); err != nil {
				t.Error(err)
			}
			if i%2 == 0 {
				if err := d.RemovePod(p.UID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	uids, err := d.List()
	if err != nil || len(uids) != 15 || !slices.IsSorted(uids) {
		t.Errorf("%d pods, %v", len(uids), err)
	}
	if !d.config.Host.V2 {
		if got := read(t, d, d.layout.class(corev1.PodQOSBurstable), "cpu.shares", ""); got != "1530" {
			t.Errorf("burstable shares %s", got)
		}
	}
	for _, uid := range uids {
		if err := d.RemovePod(uid); err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkEnsureAndRemovePod(b *testing.B) {
	d := onThisMachine(b, nil)
	p := pod("uid", container("a", "cpu=1 memory=64Mi", ""))
	for b.Loop() {
		if err := d.EnsurePod(p); err != nil {
			b.Fatal(err)
		}
		if err := d.RemovePod(p.UID); err != nil {
			b.Fatal(err)
		}
	}
}
