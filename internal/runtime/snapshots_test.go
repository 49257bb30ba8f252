// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// RS-07: a server that was killed between making a snapshot's folder and recording it starts again, and the folder goes: the first snapshot,
// that of the pause image, would be put in the same place.
func TestUnrecordedSnapshotGoes(t *testing.T) {
	needRoot(t)
	dir := dataFolder(t)
	all := filepath.Join(dirsOf(dir).root, "io.containerd.snapshotter.v1."+Overlayfs, "snapshots")
	mark := filepath.Join(all, "1", "mark")
	if err := errors.Join(os.MkdirAll(filepath.Join(all, "1", "fs"), 0o755), os.WriteFile(mark, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	r := start(t, dir)
	if r.config.Snapshotter != Overlayfs {
		t.Skip("another snapshotter is in use")
	}
	if _, err := os.Stat(mark); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the killed server's folder is still there (%v)", err)
	}
}
