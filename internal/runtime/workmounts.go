// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/containerd/containerd/v2/core/mount"
	"golang.org/x/sys/unix"
)

// workMountsIn lets containerd mount snapshots that it works on, as when it unpacks an image, in a folder, and takes
// away what a process that was killed meanwhile has left there. Otherwise they would be in /tmp, where no start and no
// purge looks for them.
func workMountsIn(dir string) error {
	if err := mount.SetTempMountLocation(dir); err != nil {
		return fmt.Errorf("folder for mounts: %w", err)
	}
	failed, err := mount.CleanupTempMounts(unix.MNT_DETACH)
	if err := errors.Join(append(failed, err)...); err != nil {
		return fmt.Errorf("mounts that are left in %s: %w", dir, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries { // mount points that had no mount yet
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("mount points that are left: %w", err)
		}
	}
	return nil
}
