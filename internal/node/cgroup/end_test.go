// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// RS-07: whatever runs in a pod's cgroup is ended, in the containers' too, and what forks all the while; the processes of another pod
// are not.
func TestEndPod(t *testing.T) {
	d := onThisMachine(t, nil)
	p, other := pod("11111111-1111-4111-8111-111111111111"), pod("22222222-2222-4222-8222-222222222222")
	if n, err := d.EndPod(t.Context(), p.UID); n != 0 || err != nil {
		t.Errorf("a pod without a cgroup: %d ended, %v", n, err)
	}
	for _, p := range []*corev1.Pod{p, other} {
		if err := d.EnsurePod(p); err != nil {
			t.Fatal(err)
		}
	}
	run := func(p *corev1.Pod, below, script string) *exec.Cmd {
		t.Helper()
		cmd := exec.Command("sh", "-c", "read x; "+script)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		for controller, dir := range d.paths(d.layout.pod(corev1.PodQOSBestEffort, p.UID)) {
			if dir = filepath.Join(dir, below); controller == "cpuset" {
				continue // takes no process before it is told which CPUs
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := in.Write([]byte("go\n")); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	run(p, "", "trap '' TERM INT HUP; while :; do sleep 1000; done")
	run(p, "abcdef", "exec sleep 1000")
	run(p, "abcdef/deeper", "while :; do sleep 0.01 & done") // forks for as long as it lives
	stays := run(other, "", "exec sleep 1000")
	n, err := d.EndPod(t.Context(), p.UID)
	if err != nil || n < 3 {
		t.Errorf("%d ended, %v; want three or more", n, err)
	}
	if err := d.RemovePod(p.UID); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if err := stays.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the other pod's process is gone: %v", err)
	}
	if n, err := d.EndPod(t.Context(), other.UID); n != 1 || err != nil {
		t.Errorf("the other pod: %d ended, %v", n, err)
	}
	if err := d.RemovePod(other.UID); err != nil {
		t.Error(err)
	}
	if _, err := d.EndPod(t.Context(), "../x"); err == nil {
		t.Error("a UID that leads elsewhere is taken")
	}
}

// RS-07: a frozen container ends too.
func TestEndPodFrozen(t *testing.T) {
	d := onThisMachine(t, nil)
	folder := d.config.Host.Mounts["freezer"]
	if folder == "" {
		t.Skip("no freezer of the first version here")
	}
	p := pod("33333333-3333-4333-8333-333333333333")
	if err := d.EnsurePod(p); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	dir := filepath.Join(d.paths(d.layout.pod(corev1.PodQOSBestEffort, p.UID))["freezer"], "c")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.WriteFile(filepath.Join(dir, "freezer.state"), []byte("THAWED"), 0) }()
	for _, f := range [][2]string{{"cgroup.procs", strconv.Itoa(cmd.Process.Pid)}, {"freezer.state", "FROZEN"}} {
		if err := os.WriteFile(filepath.Join(dir, f[0]), []byte(f[1]), 0); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := d.EndPod(context.Background(), p.UID); n != 1 || err != nil {
		t.Errorf("%d ended, %v", n, err)
	}
	<-ended
	if err := d.RemovePod(p.UID); err != nil {
		t.Error(err)
	}
}
