// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

func folders(t *testing.T, root string, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if err := os.MkdirAll(filepath.Join(root, p), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// RS-05: where a sandbox's process is put, on both versions of cgroups and on both at once.
func TestCgroupAt(t *testing.T) {
	v1, v2 := t.TempDir(), t.TempDir()
	folders(t, v1, "memory/pods/a", "cpu,cpuacct/pods/a", "cpuset/pods/a", "pids", "unified/pods/a")
	if err := os.Symlink("cpu,cpuacct", filepath.Join(v1, "cpu")); err != nil {
		t.Fatal(err)
	}
	want := cgroup{
		"memory": v1 + "/memory/pods/a/x", "cpu,cpuacct": v1 + "/cpu,cpuacct/pods/a/x",
		"unified": v1 + "/unified/pods/a/x",
	}
	if got := cgroupAt(v1, "/pods/a/x"); !maps.Equal(got, want) {
		t.Errorf("version 1: %v, want %v", got, want)
	}
	if err := os.WriteFile(filepath.Join(v2, "cgroup.controllers"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := cgroupAt(v2, "/pods/a/x"); !maps.Equal(got, cgroup{"": v2 + "/pods/a/x"}) {
		t.Errorf("version 2: %v", got)
	}
	if got := cgroupAt(v1, ""); len(got) != 0 {
		t.Errorf("none: %v", got)
	}
}

// PL-38: a cgroup goes with those below it, and one that is gone already is no error.
func TestCgroupRemove(t *testing.T) {
	root := t.TempDir()
	folders(t, root, "memory/x/a/b", "memory/x/c", "pids/x")
	c := cgroup{"memory": root + "/memory/x", "pids": root + "/pids/x", "cpu": root + "/cpu/x"}
	if err := c.remove(); err != nil {
		t.Fatal(err)
	}
	for _, controller := range []string{"memory", "pids"} {
		if left, err := os.ReadDir(filepath.Join(root, controller)); err != nil || len(left) != 0 {
			t.Errorf("%s: left %v, %v", controller, left, err)
		}
	}
}

// SC-21: OOM kills are counted where the memory is, also where an empty hierarchy of version 2 is beside version 1.
func TestOOMFile(t *testing.T) {
	for name, c := range map[string]struct {
		cgroup  cgroup
		path    string
		unified bool
	}{
		"version 2": {cgroup{"": "/u"}, "/u/memory.events", true},
		"version 1": {cgroup{"memory": "/m"}, "/m/memory.oom_control", false},
		"both":      {cgroup{"": "/u", "memory": "/m"}, "/m/memory.oom_control", false},
		"none":      {cgroup{"pids": "/p"}, "", false},
	} {
		if path, unified := c.cgroup.oomFile(); path != c.path || unified != c.unified {
			t.Errorf("%s: %q, %v", name, path, unified)
		}
	}
	file := filepath.Join(t.TempDir(), "memory.events")
	if err := os.WriteFile(file, []byte("low 0\noom 7\noom_kill 3\noom_group_kill 9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := oomKills(file); n != 3 {
		t.Errorf("%d kills, want 3", n)
	}
	if n := oomKills(file + ".none"); n != 0 {
		t.Errorf("no file: %d", n)
	}
}
