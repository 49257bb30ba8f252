// SPDX-License-Identifier: Apache-2.0

package localvolume

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

const mib = 1 << 20

// TestFolders proves WL-15 and WL-24 on the disk: what is made is made once, what was half made or half removed when
// everything died is ended, and data goes only when it is asked for.
func TestFolders(t *testing.T) {
	root := filepath.Join(t.TempDir(), "volumes")
	f := New(root)
	for range 2 {
		if _, err := f.Make("pvc-a", mib); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(f.Path("pvc-a")); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("made: %v, %v", info, err)
	}
	for _, left := range []string{half + "pvc-b", gone + "pvc-c/deep"} {
		if err := os.MkdirAll(filepath.Join(root, left), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(f.Path("pvc-a"), "data"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Sweep(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Make("pvc-a", mib); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 1 {
		t.Errorf("after the sweep: %v, %v", entries, err)
	}
	if data, err := os.ReadFile(filepath.Join(f.Path("pvc-a"), "data")); err != nil || string(data) != "x" {
		t.Errorf("data: %q, %v", data, err)
	}
	for range 2 {
		if err := f.Remove("pvc-a"); err != nil {
			t.Fatal(err)
		}
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) != 0 {
		t.Errorf("after the removal: %v, %v", entries, err)
	}
	for _, bad := range []string{"", ".", "..", "../x", "a/b", gone + "x"} {
		if _, err := f.Make(bad, mib); err == nil {
			t.Errorf("made %q", bad)
		}
		if err := f.Remove(bad); err == nil {
			t.Errorf("removed %q", bad)
		}
	}
}

// quotaDisk is a folder on an ext4 of its own that has project quotas.
func quotaDisk(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	image, at := filepath.Join(t.TempDir(), "disk"), t.TempDir()
	file, err := os.Create(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Truncate(64*mib), file.Close()); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-O", "project,quota", image).CombinedOutput(); err != nil {
		t.Skipf("no ext4 with project quotas can be made here: %v: %s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop,prjquota", image, at).CombinedOutput(); err != nil {
		t.Skipf("this kernel mounts no ext4 with project quotas: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return at
}

func fill(at string, size int) error { return os.WriteFile(at, make([]byte, size), 0o600) }

// TestSizeEnforced proves WL-16 on a real ext4 with project quotas: a volume holds what it was asked for and no more,
// shows its size, can grow, and leaves nothing behind.
func TestSizeEnforced(t *testing.T) {
	root := filepath.Join(quotaDisk(t), "volumes")
	f := New(root)
	for _, name := range []string{"pvc-a", "pvc-b"} {
		if notHeld, err := f.Make(name, 4*mib); err != nil || notHeld != "" {
			t.Fatal(notHeld, err)
		}
	}
	big := filepath.Join(f.Path("pvc-a"), "big")
	if err := fill(big, 5*mib); !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
		t.Errorf("5 MiB in a volume of 4: %v", err)
	}
	if err := os.Remove(big); err != nil {
		t.Fatal(err)
	}
	if err := fill(filepath.Join(f.Path("pvc-b"), "fits"), 3*mib); err != nil {
		t.Errorf("3 MiB in the other: %v", err)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(f.Path("pvc-a"), &st); err != nil || int64(st.Blocks)*st.Bsize != 4*mib {
		t.Errorf("the volume shows a size of %d, %v", int64(st.Blocks)*st.Bsize, err)
	}
	if notHeld, err := f.Grow("pvc-a", 8*mib); err != nil || notHeld != "" {
		t.Fatal(notHeld, err)
	}
	if err := fill(big, 5*mib); err != nil {
		t.Errorf("5 MiB in a volume of 8: %v", err)
	}
	dir, err := os.Open(f.Path("pvc-a"))
	if err != nil {
		t.Fatal(err)
	}
	id, err := kernel{}.project(dir)
	dir.Close()
	if err != nil || !ours(id) {
		t.Errorf("project %d, %v", id, err)
	}
	if err := f.Remove("pvc-a"); err != nil {
		t.Fatal(err)
	}
	rootDir, err := os.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer rootDir.Close()
	var q quota
	if err := quotactl(rootDir, getQuota, id, &q); err == nil && (q.blockLimit != 0 || q.space != 0) {
		t.Errorf("left of the quota: %+v", q)
	}
}

// TestSizeNotEnforced proves WL-16 where a file system has no project quotas: the volume is made, and what is said
// names the file system and the way out.
func TestSizeNotEnforced(t *testing.T) {
	f := New(filepath.Join("/dev/shm", "wherry-volumes-"+filepath.Base(t.TempDir())))
	defer os.RemoveAll(f.root)
	notHeld, err := f.Make("pvc-a", mib)
	if err != nil || !strings.Contains(notHeld, "tmpfs") || !strings.Contains(notHeld, "prjquota") {
		t.Errorf("%q, %v", notHeld, err)
	}
}

// fakeQuotas are a file system's, in memory.
type fakeQuotas struct {
	projects map[string]uint32 // by a folder's name without what marks it as half made
	limits   map[uint32]int64
}

func bare(dir *os.File) string {
	return strings.TrimPrefix(strings.TrimPrefix(filepath.Base(dir.Name()), half), gone)
}

func (fakeQuotas) missing(string) string { return "" }

func (q fakeQuotas) project(dir *os.File) (uint32, error) { return q.projects[bare(dir)], nil }

func (q fakeQuotas) setProject(dir *os.File, id uint32) error {
	q.projects[bare(dir)] = id
	return nil
}

func (q fakeQuotas) limit(_ *os.File, id uint32, bytes int64) error {
	if q.limits[id] = bytes; bytes == 0 {
		delete(q.limits, id)
	}
	return nil
}

func (q fakeQuotas) used(_ *os.File, id uint32) (bool, error) {
	for _, p := range q.projects {
		if p == id {
			return true, nil
		}
	}
	return q.limits[id] != 0, nil
}

// TestProjects proves WL-16 and WL-24: each volume has a project of its own, also when others took the one that its
// name means, keeps it when it is made again or grows, and gives it back. One with files from before has none.
func TestProjects(t *testing.T) {
	q := fakeQuotas{map[string]uint32{}, map[uint32]int64{}}
	f := New(filepath.Join(t.TempDir(), "volumes"))
	f.quotas = q
	at, err := freeProject(q, nil, "pvc-a")
	if err != nil {
		t.Fatal(err)
	}
	q.limits[at] = 1 // somebody else's
	for range 2 {
		if notHeld, err := f.Make("pvc-a", 4*mib); err != nil || notHeld != "" {
			t.Fatal(notHeld, err)
		}
	}
	id := q.projects["pvc-a"]
	if id != at+1 || q.limits[id] != 4*mib {
		t.Errorf("project %x, limits %v", id, q.limits)
	}
	if _, err := f.Grow("pvc-a", 8*mib); err != nil || q.projects["pvc-a"] != id || q.limits[id] != 8*mib {
		t.Errorf("grown: %v, %v", q, err)
	}
	if err := f.Remove("pvc-a"); err != nil || q.limits[id] != 0 || q.limits[at] != 1 {
		t.Errorf("removed: %v, %v", q.limits, err)
	}
	if err := os.MkdirAll(filepath.Join(f.Path("pvc-old"), "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if notHeld, err := f.Make("pvc-old", mib); err != nil || !strings.Contains(notHeld, "before") {
		t.Errorf("a volume with files: %q, %v", notHeld, err)
	}
	if _, err := f.Grow("pvc-none", mib); err == nil {
		t.Error("grew a volume that is not there")
	}
}

// TestKernelLayout: the kernel's structs have these sizes, and an answer to the first.
func TestKernelLayout(t *testing.T) {
	if a, b := unsafe.Sizeof(fsxattr{}), unsafe.Sizeof(quota{}); a != 28 || b != 72 {
		t.Errorf("sizes %d, %d", a, b)
	}
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if id, err := (kernel{}).project(dir); err != nil && !errors.Is(err, unix.ENOTTY) || ours(id) {
		t.Errorf("project %x, %v", id, err)
	}
}
