// SPDX-License-Identifier: Apache-2.0

package userns

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// PL-24: ranges lie where nobody else's are.
func TestAllowed(t *testing.T) {
	for name, c := range map[string]struct {
		subuid, subgid string
		first          []uint32 // the first ones
		count          int
	}{
		"no files":          {"", "", []uint32{65536, 131072, 196608}, most},
		"somebody's":        {"jane:100000:65536\n", "", []uint32{196608}, most},
		"somebody's groups": {"", "jane:65536:1\n# x:1:2\nnonsense", []uint32{131072}, most},
		"the kubelet's": {"kubelet:131072:131072\njane:1:2", "kubelet:131072:131072", []uint32{131072, 196608},
			2},
		"the kubelet's, askew":   {"kubelet:100000:131072", "kubelet:100000:131072", []uint32{131072}, 1},
		"of users but no groups": {"kubelet:131072:131072", "", nil, 0},
	} {
		got := allowed([]byte(c.subuid), []byte(c.subgid))
		if len(got) != c.count || !slices.Equal(got[:len(c.first)], c.first) {
			t.Errorf("%s: %d, %v", name, len(got), got[:min(3, len(got))])
		}
	}
}

// PL-24: no two pods have the same range, a pod keeps its own over restarts of the agent, and one that is gone leaves
// its range to others.
func TestTake(t *testing.T) {
	dir := t.TempDir()
	const share = "kubelet:65536:131072"
	take := func(uid string) (uint32, error) { // as an agent that has just started
		r, err := NewPool(dir, []byte(share), []byte(share)).Take(uid)
		return r.First, err
	}
	for _, uid := range []string{"a", "b", "c"} {
		if err := os.Mkdir(filepath.Join(dir, uid), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		uid  string
		want uint32
	}{{"a", 65536}, {"b", 131072}, {"a", 65536}, {"b", 131072}} {
		if got, err := take(step.uid); got != step.want || err != nil {
			t.Errorf("%s: %d, %v", step.uid, got, err)
		}
	}
	if _, err := take("c"); err == nil || !strings.Contains(err.Error(), "no user IDs are left") {
		t.Errorf("none is left: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a", fileName), nil, 0o600); err != nil { // power was lost
		t.Fatal(err)
	}
	if got, err := take("c"); got != 65536 || err != nil {
		t.Errorf("after the other's was lost: %d, %v", got, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	if got, err := take("a"); got != 131072 || err != nil {
		t.Errorf("after another pod is gone: %d, %v", got, err)
	}
	if _, err := take("none"); err == nil {
		t.Error("a pod without a folder has got a range")
	}
}

// PL-24: a folder that only its owner can pass through is found wherever it is on the way.
func TestClosed(t *testing.T) {
	dir := t.TempDir()
	below := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(below, 0o711); err != nil {
		t.Fatal(err)
	}
	for at := dir; at != "/"; at = filepath.Dir(at) { // as a machine's folders are, whatever this test's are
		if info, err := os.Stat(at); err != nil || info.Mode().Perm()&1 == 0 {
			if err := os.Chmod(at, 0o711); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := Closed(below); got != "" {
		t.Errorf("all are open: %s", got)
	}
	for _, closed := range []string{below, filepath.Join(dir, "a")} {
		if err := os.Chmod(closed, 0o700); err != nil {
			t.Fatal(err)
		}
		if got := Closed(below); got != closed {
			t.Errorf("%s is closed: %q", closed, got)
		}
	}
}
