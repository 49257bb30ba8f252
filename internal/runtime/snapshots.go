// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/plugins"
	"github.com/containerd/errdefs"
)

// sweepSnapshots removes the folders of snapshots that a killed server had made and not yet recorded. The next snapshot
// gets the number of such a one, and could not be put in its place: if it is one of an image that every start needs, no
// start would ever succeed. Nothing may make snapshots meanwhile.
func sweepSnapshots(ctx context.Context, d *daemon, root, snapshotter string) error {
	s, err := instance[snapshots.Snapshotter](d, plugins.SnapshotPlugin, snapshotter)
	if err != nil {
		return err
	}
	c, ok := s.(snapshots.Cleaner)
	if !ok {
		return nil
	}
	if err := c.Cleanup(ctx); !errdefs.IsNotFound(err) {
		return err
	}
	// None was ever recorded.
	folders, err := filepath.Glob(filepath.Join(root, "io.containerd.snapshotter.v1."+snapshotter, "snapshots", "*"))
	errs := []error{err}
	for _, f := range folders {
		errs = append(errs, os.RemoveAll(f))
	}
	return errors.Join(errs...)
}
