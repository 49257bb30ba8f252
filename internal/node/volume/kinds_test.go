// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// TestHostPath proves PL-05 and PL-15: every type, what it makes, and the words when it does not fit.
func TestHostPath(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	mkdir(t, dir, "dir")
	put(t, dir, "file", "x")
	l, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	link(t, dir, "link", "dir")
	for _, c := range []struct {
		path string
		kind corev1.HostPathType
		want string // "" is fine
	}{
		{at("none"), corev1.HostPathUnset, ""},
		{at("dir"), corev1.HostPathDirectory, ""},
		{at("link"), corev1.HostPathDirectory, ""},
		{at("file"), corev1.HostPathDirectory, at("file") + " is not a directory"},
		{at("none"), corev1.HostPathDirectory, at("none") + " does not exist on the node (type Directory)"},
		{at("new/deep"), corev1.HostPathDirectoryOrCreate, ""},
		{at("new/deep"), corev1.HostPathDirectoryOrCreate, ""},
		{at("file"), corev1.HostPathDirectoryOrCreate, at("file") + " is not a directory"},
		{at("file"), corev1.HostPathFile, ""},
		{at("dir"), corev1.HostPathFile, at("dir") + " is not a file"},
		{at("newfile"), corev1.HostPathFileOrCreate, ""},
		{at("newfile"), corev1.HostPathFileOrCreate, ""},
		{at("dir"), corev1.HostPathFileOrCreate, at("dir") + " is not a file"},
		{at("no/newfile"), corev1.HostPathFileOrCreate, "FileOrCreate creates only the file"},
		{at("socket"), corev1.HostPathSocket, ""},
		{at("file"), corev1.HostPathSocket, at("file") + " is not a socket file"},
		{"/dev/null", corev1.HostPathCharDev, ""},
		{at("file"), corev1.HostPathCharDev, at("file") + " is not a character device"},
		{"/dev/null", corev1.HostPathBlockDev, "/dev/null is not a block device"},
		{at("file"), "Nonsense", `unknown hostPath type "Nonsense"`},
	} {
		err := checkHostPath(&corev1.HostPathVolumeSource{Path: c.path, Type: &c.kind})
		if c.want == "" && err != nil {
			t.Errorf("PL-05 %s as %q: %v", c.path, c.kind, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("PL-05 %s as %q: %v, want %s", c.path, c.kind, err, c.want)
		}
	}
	if info, err := os.Stat(at("new/deep")); err != nil || info.Mode().Perm() != 0o755 {
		t.Error(info, err)
	}
	if err := checkHostPath(&corev1.HostPathVolumeSource{Path: at("none")}); err != nil {
		t.Error(err)
	}
}

// TestMemoryEmptyDir proves PL-05: a tmpfs of the right size that is mounted once and keeps its files.
func TestMemoryEmptyDir(t *testing.T) {
	needsRoot(t)
	m, _ := manager(t)
	v := emptyDirVolume("mem", corev1.StorageMediumMemory)
	v.EmptyDir.SizeLimit = ptr.To(resource.MustParse("1Mi"))
	pod := podWith(v)
	prepare(t, m, pod)
	dir := filepath.Join(m.cfg.Root, "uid-1/volumes/kubernetes.io~empty-dir/mem")
	put(t, dir, "f", "x")
	prepare(t, m, pod)
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil || st.Type != unix.TMPFS_MAGIC || int64(st.Blocks)*st.Bsize != 1<<20 {
		t.Errorf("%+v, %v", st, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "f")); err != nil {
		t.Error("mounted twice:", err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o777 {
		t.Error(info.Mode(), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "big"), make([]byte, 2<<20), 0o644); err == nil {
		t.Error("the size is no limit")
	}
}

// TestMemorySize proves PL-05: the least of all limits that there are.
func TestMemorySize(t *testing.T) {
	limit := func(q string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse(q)}}}
	}
	sidecar := limit("3Mi")
	sidecar.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	node := corev1.ResourceList{"memory": resource.MustParse("64Mi")}
	for name, c := range map[string]struct {
		pod   corev1.PodSpec
		limit string
		node  corev1.ResourceList
		want  int64
	}{
		"nothing":                 {corev1.PodSpec{Containers: []corev1.Container{{}}}, "", nil, 0},
		"the node":                {corev1.PodSpec{Containers: []corev1.Container{{}}}, "", node, 64 << 20},
		"the volume":              {corev1.PodSpec{Containers: []corev1.Container{limit("9Mi")}}, "2Mi", node, 2 << 20},
		"the containers together": {corev1.PodSpec{Containers: []corev1.Container{limit("1Mi"), limit("2Mi")}, InitContainers: []corev1.Container{sidecar, limit("1Mi")}}, "", node, 6 << 20},
		"a big init":              {corev1.PodSpec{Containers: []corev1.Container{limit("1Mi")}, InitContainers: []corev1.Container{limit("9Mi")}}, "", node, 9 << 20},
		"one without":             {corev1.PodSpec{Containers: []corev1.Container{limit("1Mi"), {}}}, "", node, 64 << 20},
		"the pod's own":           {corev1.PodSpec{Containers: []corev1.Container{{}}, Resources: ptr.To(limit("5Mi").Resources)}, "", node, 5 << 20},
		"more than the node":      {corev1.PodSpec{Containers: []corev1.Container{{}}}, "1Gi", node, 64 << 20},
	} {
		e := &corev1.EmptyDirVolumeSource{}
		if c.limit != "" {
			e.SizeLimit = ptr.To(resource.MustParse(c.limit))
		}
		if got := memorySize(&corev1.Pod{Spec: c.pod}, e, c.node); got != c.want {
			t.Errorf("PL-05 %s: %d, want %d", name, got, c.want)
		}
	}
}

// TestUsage proves PL-05: what lies in a disk emptyDir is measured, links once.
func TestUsage(t *testing.T) {
	m, _ := manager(t)
	pod := podWith(emptyDirVolume("disk", ""), emptyDirVolume("free", ""))
	if u, err := m.Usage(pod.UID); len(u) != 0 || err != nil {
		t.Error(u, err)
	}
	prepare(t, m, pod)
	dir := filepath.Join(m.cfg.Root, "uid-1/volumes/kubernetes.io~empty-dir/disk")
	put(t, dir, "f", strings.Repeat("x", 80<<10))
	if err := os.Link(filepath.Join(dir, "f"), filepath.Join(dir, "again")); err != nil {
		t.Fatal(err)
	}
	u, err := m.Usage(pod.UID)
	if got := u["disk"]; err != nil || got.Bytes < 80<<10 || got.Bytes > 100<<10 || got.Inodes != 2 {
		t.Error(u, err)
	}
	put(t, dir, "g", strings.Repeat("x", 80<<10))
	u, err = m.Usage(pod.UID)
	if got := u["disk"]; err != nil || got.Bytes < 160<<10 || got.Inodes != 3 || u["free"].Inodes != 1 {
		t.Error(u, err)
	}
}

// TestUsageDeep proves PL-05: nobody hides files from the measurement below more folders than a path has room for; of what is
// too deep for it, it says so.
func TestUsageDeep(t *testing.T) {
	for _, row := range []struct {
		levels int
		fault  string
	}{{60, ""}, {longPath*mostSteps/200 + 50, "nested too deeply"}} {
		m, _ := manager(t)
		pod := podWith(emptyDirVolume("disk", ""))
		prepare(t, m, pod)
		bury(t, filepath.Join(m.cfg.Root, "uid-1/volumes/kubernetes.io~empty-dir/disk"), row.levels)
		u, err := m.Usage(pod.UID)
		switch got := u["disk"]; {
		case row.fault == "" && (err != nil || got.Bytes < 1<<20 || got.Inodes != int64(row.levels)+2):
			t.Error(u, err)
		case row.fault != "" && (err == nil || !strings.Contains(err.Error(), row.fault) || got.Inodes < longPath*mostSteps/210):
			t.Error(u, err)
		}
	}
}

// bury writes a file of 1 MiB below many folders with long names.
func bury(t *testing.T, dir string, levels int) {
	t.Helper()
	at, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range levels {
		name := strings.Repeat("d", 200)
		if err := at.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := at.OpenRoot(name)
		at.Close()
		if err != nil {
			t.Fatal(err)
		}
		at = next
	}
	defer at.Close()
	if err := at.WriteFile("hidden", make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestEmptyDirCrash proves PL-05: a folder that a crash left half made is not taken for a finished one, a finished one keeps
// its files.
func TestEmptyDirCrash(t *testing.T) {
	m, _ := manager(t)
	pod := podWith(emptyDirVolume("disk", ""))
	parent := filepath.Join(m.cfg.Root, "uid-1/volumes/kubernetes.io~empty-dir")
	mkdir(t, parent, ".disk.new")
	prepare(t, m, pod)
	info, err := os.Stat(filepath.Join(parent, "disk"))
	if err != nil || info.Mode().Perm() != 0o777 {
		t.Error(info, err)
	}
	put(t, parent, "disk/f", "x")
	prepare(t, m, pod)
	if _, err := os.Stat(filepath.Join(parent, "disk/f")); err != nil {
		t.Error(err)
	}
}
