// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/core/mount"
	"golang.org/x/sys/unix"
)

// PL-10, RS-08: what containerd mounts while it unpacks an image is in the data folder, where a purge finds it; what a killed process left
// is gone after the next start, and nothing that it showed is.
func TestWorkMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	dir, snapshot := filepath.Join(t.TempDir(), "work"), t.TempDir()
	shown := filepath.Join(snapshot, "file")
	if err := os.WriteFile(shown, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"left", "empty"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount(snapshot, filepath.Join(dir, "left"), "", unix.MS_BIND, ""); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	if err := workMountsIn(dir); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if _, err := os.Stat(shown); err != nil {
		t.Error(err)
	}
	err := mount.WithTempMount(t.Context(), []mount.Mount{{Type: "bind", Source: snapshot, Options: []string{"rbind"}}}, func(root string) error {
		if !strings.HasPrefix(root, dir+"/") {
			t.Errorf("containerd works in %s, not below %s", root, dir)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
