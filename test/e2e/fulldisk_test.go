// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fills is a pod that writes to its volume until nothing more fits, once the file go is in it.
func fills(name string) string {
	return "metadata: {name: " + name + "}\nspec: {terminationGracePeriodSeconds: 1, containers: [{name: c, command: [sh, -c, " +
		"'until [ -e /v/go ]; do sleep 0.1; done; dd if=/dev/zero of=/v/f bs=1M; IDLE'], volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, emptyDir: {}}]}"
}

// volume is where the pod's volume v is on the host.
func (k *kit) volume(pod *corev1.Pod) string {
	return filepath.Join(k.DataDir, "pods", string(pod.UID), "volumes", "kubernetes.io~empty-dir", "v")
}

// TestFullDisk proves RS-02: a pod fills the disk of the data folder while a user goes on writing objects: the server goes on, the pod is
// evicted, and nothing that was acknowledged is lost. Filled while no server runs, the disk does not keep one from starting: it
// evicts the pod. Before, the server ended after seconds, and did not start again.
// ATTACK C16.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	k := inDefault(t, onSmallDisk(t, "1200m", "--eviction-pressure-transition-period", "1s"))
	pod := k.up(fills("filler"))
	if err := os.WriteFile(filepath.Join(k.volume(pod), "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	maps := k.Client.CoreV1().ConfigMaps(k.Namespace)
	var stored []string
	for k.Get("filler").Status.Reason != "Evicted" {
		half := make([]byte, 60_000)
		_, _ = rand.Read(half)
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "m-"}, Data: map[string]string{"a": hex.EncodeToString(half)}}
		if m, err := maps.Create(k.Context(), m, metav1.CreateOptions{}); err == nil { // refused while the disk is full
			stored = append(stored, m.Name)
		}
		if k.gone() {
			t.Fatalf("the server has ended:\n%s", k.LogTail(20))
		}
	}
	k.evicted("filler", "The node was low on resource: ephemeral-storage.")
	for _, name := range stored {
		if _, err := maps.Get(k.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("%s was acknowledged: %v", name, err)
		}
	}
	if _, err := maps.Create(k.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "after"}}, metav1.CreateOptions{}); err != nil {
		t.Errorf("after the eviction: %v", err)
	}
	k.nodeIs(corev1.NodeDiskPressure, "node.kubernetes.io/disk-pressure", corev1.ConditionFalse)

	late := k.up(fills("late"))
	at := k.volume(late)
	k.Server.Kill()
	if err := os.WriteFile(filepath.Join(at, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	awaitFull(t, at)
	if err := k.Server.Start(k.Context()); err != nil {
		t.Fatalf("on a full disk: %v\n%s", err, k.LogTail(20))
	}
	k.evicted("late", "The node was low on resource: ephemeral-storage.")
	for _, p := range []*corev1.Pod{pod, late} { // they have ended, so the objects go first
		k.Delete(p.Name)
		k.AwaitNoTrace(p)
	}
}

// gone tells whether the server has ended.
func (s *Server) gone() bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

// awaitFull waits until no more fits on a disk; nothing tells.
func awaitFull(t *testing.T, dir string) {
	t.Helper()
	for until := time.Now().Add(Timeout); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		var fs unix.Statfs_t
		if err := unix.Statfs(dir, &fs); err != nil {
			t.Fatal(err)
		}
		if fs.Bavail*uint64(fs.Bsize) < 1<<20 {
			return
		}
	}
	t.Fatal("the disk does not get full")
}
