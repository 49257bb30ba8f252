// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folders makes files as a kernel shows them: "controller/path/file" on v1, "path/file" on v2.
func folders(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// below puts a prefix before each name.
func below(prefix string, files map[string]string) map[string]string {
	out := map[string]string{}
	for name, text := range files {
		out[prefix+name] = text
	}
	return out
}

// told is all of what was found, "-" for what is not known.
func (f Figures) told() string {
	var out []string
	for _, v := range []*uint64{f.Periods, f.Throttled, f.Quota, f.Period, f.Shares, f.Cache, f.RSS, f.Limit, f.Hits, f.OOMKills} {
		if v == nil {
			out = append(out, "-")
		} else {
			out = append(out, fmt.Sprint(*v))
		}
	}
	if f.ThrottledFor != nil {
		out = append(out, f.ThrottledFor.String())
	}
	return strings.Join(out, " ")
}

func expectFigures(t *testing.T, what string, f Figures, at, want string) {
	t.Helper()
	if f.Path != at || f.told() != want {
		t.Errorf("PL-36 %s: %q %s, want %q %s", what, f.Path, f.told(), at, want)
	}
}

// TestFiguresUnified proves PL-36: what cAdvisor tells of cgroups is read on cgroup v2, of the pod and of the containers
// that were asked for, as a file driver and as systemd names them; throttling only with a quota, and nothing that is
// not there.
func TestFiguresUnified(t *testing.T) {
	files := below("kubepods/podu/", map[string]string{"cpu.max": "max 100000\n", "cpu.weight": "39\n",
		"cpu.stat":    "usage_usec 9\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
		"memory.stat": "anon 4096\nfile 8192\nfile_mapped 1\n", "memory.max": "max\n", "memory.events": "low 0\nmax 5\noom 2\noom_kill 2\n"})
	maps.Copy(files, below("kubepods/podu/aa/", map[string]string{"cpu.max": "50000 100000\n", "cpu.weight": "1\n",
		"cpu.stat":    "usage_usec 9\nnr_periods 40\nnr_throttled 7\nthrottled_usec 1500000\n",
		"memory.stat": "anon 100\nfile 200\n", "memory.max": "1048576\n", "memory.events": "max 5\noom_kill 1\n"}))
	files["kubepods/podu/cri-containerd-bb.scope/memory.max"] = "77\n"
	files["kubepods/podu/cc/memory.max"] = "88\n"
	h := Host{V2: true, Mounts: map[string]string{"": folders(t, files)}}
	own, of := h.Figures("/kubepods/podu", []string{"aa", "bb", "gone"})
	expectFigures(t, "pod", own, "/kubepods/podu", "- - 0 100000 295 8192 4096 0 5 2")
	expectFigures(t, "container", of["aa"], "/kubepods/podu/aa", "40 7 50000 100000 2 200 100 1048576 5 1 1.5s")
	expectFigures(t, "systemd's", of["bb"], "/kubepods/podu/cri-containerd-bb.scope", "- - - - - - - 77 - -")
	if len(of) != 2 {
		t.Errorf("PL-36: not asked for: %v", of)
	}
	own, of = h.Figures("/kubepods/podv", []string{"aa"})
	expectFigures(t, "a pod that is gone", own, "", "- - - - - - - - - -")
	if len(of) > 0 {
		t.Errorf("PL-36: containers of a pod that is gone: %v", of)
	}
}

// TestFiguresLegacy proves PL-36: the same on cgroup v1, where the controllers lie apart, a pod's cgroup does not know
// who of its containers was killed, and a limit that is none is a large number.
func TestFiguresLegacy(t *testing.T) {
	files := below("memory/kubepods/podu/", map[string]string{"memory.stat": "cache 0\nrss 0\ntotal_cache 8192\ntotal_rss 4096\n",
		"memory.limit_in_bytes": "9223372036854771712\n", "memory.failcnt": "0\n", "memory.oom_control": "oom_kill_disable 0\noom_kill 0\n"})
	maps.Copy(files, below("memory/kubepods/podu/aa/", map[string]string{"memory.stat": "cache 1\ntotal_cache 200\ntotal_rss 100\n",
		"memory.limit_in_bytes": "1048576\n", "memory.failcnt": "5\n", "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"}))
	maps.Copy(files, below("cpu/kubepods/podu/", map[string]string{"cpu.shares": "1024\n", "cpu.cfs_quota_us": "-1\n",
		"cpu.cfs_period_us": "100000\n", "cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n"}))
	maps.Copy(files, below("cpu/kubepods/podu/aa/", map[string]string{"cpu.shares": "2\n", "cpu.cfs_quota_us": "50000\n",
		"cpu.cfs_period_us": "100000\n", "cpu.stat": "nr_periods 40\nnr_throttled 7\nthrottled_time 1500000000\n"}))
	root := folders(t, files)
	mounts := map[string]string{"memory": filepath.Join(root, "memory"), "cpu": filepath.Join(root, "cpu")}
	own, of := Host{Mounts: mounts}.Figures("/kubepods/podu", []string{"aa"})
	expectFigures(t, "pod", own, "/kubepods/podu", "- - 0 100000 1024 8192 4096 0 0 -")
	expectFigures(t, "container", of["aa"], "/kubepods/podu/aa", "40 7 50000 100000 2 200 100 1048576 5 1 1.5s")
	delete(mounts, "cpu")
	_, of = Host{Mounts: mounts}.Figures("/kubepods/podu", []string{"aa"})
	expectFigures(t, "without a controller", of["aa"], "/kubepods/podu/aa", "- - - - - 200 100 1048576 5 1")
}

// PL-36: a container's folder is known by its id, whatever a runtime puts before it.
func TestContainerFolders(t *testing.T) {
	for folder, want := range map[string]string{"0a1b": "0a1b", "cri-containerd-0a1b.scope": "0a1b", "crio-0a1b.scope": "0a1b",
		"docker-0a1b.scope": "0a1b", "0a1b.scope": "0a1b", "a-b": "a-b", "": ""} {
		if got := idOf(folder); got != want {
			t.Errorf("%s: %s, want %s", folder, got, want)
		}
	}
}

// PL-36: this machine's own files are understood, whichever version it has.
func TestFiguresOfThisMachine(t *testing.T) {
	d := onThisMachine(t, nil)
	p := pod("figures", container("a", "cpu=500m memory=64Mi", "cpu=500m memory=64Mi"))
	if err := d.EnsurePod(p); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.RemovePod(p.UID) }()
	own, _ := d.Host().Figures(d.ParentOf(p), nil)
	if own.Path != d.ParentOf(p) || own.Quota == nil || *own.Quota != 50000 || own.Period == nil || *own.Period != 100000 ||
		own.Limit == nil || *own.Limit != 64<<20 || own.Periods == nil || own.Cache == nil || own.RSS == nil || own.Hits == nil ||
		own.Shares == nil || *own.Shares < 400 || *own.Shares > 600 {
		t.Errorf("PL-36: %q %s", own.Path, own.told())
	}
}
