// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/deeptree"
)

// TestCleanUp proves PL-10: nothing of the pod is left, and nothing of the host is touched: a hostPath, a bind of it, what is
// mounted in it, and what a container mounted into an emptyDir.
func TestCleanUp(t *testing.T) {
	needsRoot(t)
	m, s := manager(t)
	s.secrets["ns/keys"] = map[string]string{"token": "s3cret"}
	host := t.TempDir()
	mkdir(t, host, "dir/inner")
	put(t, host, "dir/keep", "precious")
	mount := func(source, target, kind string, flags uintptr) {
		t.Helper()
		if err := unix.Mount(source, target, kind, flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	// The host's own mounts are shared, as systemd makes them.
	mount(host, host, "", unix.MS_BIND)
	t.Cleanup(func() {
		if err := unmountBelow(context.Background(), host); err != nil {
			t.Error(err)
		}
	})
	mount("", host, "", unix.MS_SHARED)

	pod := podWith(secretVolume("secret", "keys"), emptyDirVolume("mem", corev1.StorageMediumMemory), emptyDirVolume("disk", ""), hostPathVolume("host", host, ""))
	pod.Spec.Containers[0].VolumeMounts[3].SubPath = "dir"
	prepare(t, m, pod)
	mounts, err := m.Mounts(t.Context(), pod, &pod.Spec.Containers[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	// This one shows up in the bind of the subPath too.
	mount("tmpfs", filepath.Join(host, "dir/inner"), "tmpfs", 0)
	put(t, host, "dir/inner/also", "precious")
	if data, err := os.ReadFile(filepath.Join(mounts[3].HostPath, "inner/also")); string(data) != "precious" {
		t.Fatal("the test's mount does not show in the subPath:", err)
	}
	// A container with Bidirectional propagation left mounts in its emptyDir, one on the other.
	disk := mounts[2].HostPath
	mkdir(t, disk, "fuse")
	mount("tmpfs", filepath.Join(disk, "fuse"), "tmpfs", 0)
	mount(host, filepath.Join(disk, "fuse"), "", unix.MS_BIND|unix.MS_REC)
	link(t, disk, "link", host)
	if _, err := m.TerminationLog(pod.UID, "main", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := m.WriteEtcHosts(pod, nil, ""); err != nil {
		t.Fatal(err)
	}
	// Someone still has a file of a mount open.
	busy, err := os.Open(filepath.Join(mounts[0].HostPath, "token"))
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()

	if got, err := m.List(); err != nil || len(got) != 1 || got[0] != "uid-1" {
		t.Error(got, err)
	}
	for range 2 {
		if err := m.CleanUp(t.Context(), pod.UID); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := m.List(); err != nil || len(got) != 0 {
		t.Error(got, err)
	}
	if left, err := mountsBelow(m.cfg.Root); err != nil || len(left) != 0 {
		t.Error("mounts left:", left, err)
	}
	for _, name := range []string{"dir/keep", "dir/inner/also"} {
		if data, err := os.ReadFile(filepath.Join(host, name)); string(data) != "precious" {
			t.Error("the host lost", name, err)
		}
	}
	if err := m.CleanUp(t.Context(), "never-seen"); err != nil {
		t.Error(err)
	}
}

// TestRemoveTreeStopsAtMounts proves PL-10: even if a mount is overlooked, nothing is removed through it.
func TestRemoveTreeStopsAtMounts(t *testing.T) {
	needsRoot(t)
	precious, dir := t.TempDir(), t.TempDir()
	put(t, precious, "keep", "x")
	mkdir(t, dir, "pod/a/b")
	put(t, dir, "pod/file", "x")
	for _, b := range []struct{ from, to string }{{precious, "pod/a/b"}, {filepath.Join(precious, "keep"), "pod/file"}} {
		at := filepath.Join(dir, b.to)
		if err := unix.Mount(b.from, at, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		root, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		err = deeptree.Remove(root, "pod")
		root.Close()
		if err == nil || !strings.Contains(err.Error(), at+" is a mount point, so it was not removed") {
			t.Error(err)
		}
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(precious, "keep")); err != nil {
			t.Fatal("removed through a mount")
		}
		mkdir(t, dir, "pod/a/b")
		if _, err := os.Lstat(filepath.Join(dir, "pod/file")); err != nil {
			put(t, dir, "pod/file", "x")
		}
	}
	root, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for i := range 1000 { // more than one reading of the folder
		put(t, dir, "pod/a/"+strings.Repeat("f", 1+i%200)+string(rune('a'+i%26)), "")
	}
	if err := deeptree.Remove(root, "pod"); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Error(entries, err)
	}
}

// TestUIDs proves PL-10: no uid leads out of the folder of pods.
func TestUIDs(t *testing.T) {
	m, _ := manager(t)
	for _, uid := range []types.UID{"", ".", "..", "../x", "a/b", "a\x00"} {
		if err := m.CleanUp(t.Context(), uid); err == nil {
			t.Errorf("%q is accepted", uid)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b"} {
		if _, err := m.TerminationLog("uid", name, 0); err == nil {
			t.Errorf("container %q is accepted", name)
		}
	}
}
