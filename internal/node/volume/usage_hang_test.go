// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/test/hangfs"
)

// RS-05: a filesystem that does not answer, which a container has mounted in an emptyDir or over one, does not hold up the measuring of
// volumes, by which pods are evicted; the others of the pod are measured.
func TestUsageBesideWhatHangs(t *testing.T) {
	needsRoot(t)
	m, _ := manager(t)
	uid := types.UID("11111111-2222-3333-4444-555555555555")
	dir, err := m.podDir(uid)
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"covered", "within/deep/mount", "well"} {
		if err := os.MkdirAll(filepath.Join(dir, "volumes/kubernetes.io~empty-dir", sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	volume := func(sub string) string { return filepath.Join(dir, "volumes/kubernetes.io~empty-dir", sub) }
	if err := os.WriteFile(filepath.Join(volume("within"), "file"), make([]byte, 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"covered", "within/deep/mount"} {
		fs, err := hangfs.Mount(volume(at))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(fs.End)
		fs.Hang()
	}
	type result struct {
		used map[string]Used
		err  error
	}
	done := make(chan result, 1)
	go func() {
		used, err := m.Usage(uid)
		done <- result{used, err}
	}()
	select {
	case got := <-done:
		if _, there := got.used["well"]; got.err != nil || got.used["within"].Bytes < 1<<16 || !there {
			t.Errorf("%+v", got)
		}
	case <-time.After(time.Minute):
		t.Fatal("measuring waits for the filesystem")
	}
}
