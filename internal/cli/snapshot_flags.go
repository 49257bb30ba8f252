// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/server"
)

// snapshotFlags are those of the backups that a server makes by itself; named as k3s has them.
func snapshotFlags(cmd *cobra.Command, o *server.SnapshotOptions) {
	f := cmd.Flags()
	f.DurationVar(&o.Interval, "etcd-snapshot-interval", o.Interval,
		"how often a snapshot of the embedded etcd is made; 0 for never")
	f.IntVar(&o.Keep, "etcd-snapshot-retention", o.Keep, "how many of these snapshots are kept")
	snapshotDirFlag(cmd, &o.Dir, "folder for these snapshots; default: <data-dir>/snapshots")
}

func snapshotDirFlag(cmd *cobra.Command, dir *string, usage string) {
	cmd.Flags().StringVar(dir, "etcd-snapshot-dir", "", usage)
	_ = cmd.MarkFlagDirname("etcd-snapshot-dir")
}
