// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/server"
)

func newRestore(t Terminal) *cobra.Command {
	o := server.RestoreOptions{Inspector: cmdline.Inspector()}
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a backup",
		Long: `Replace the server's objects with those of a backup. FILE is a backup (wherry backup), a daily snapshot (<data-dir>/snapshots), or a
database of etcd: a snapshot that etcdctl saved, or member/snap/db of a damaged store. The server must not be running.

Pods keep running. The next server takes over those in the backup; if others are running too, it asks what to do with them (wherry
server --adopt, --forget). Clients that watch are told to list again.

What is replaced is kept under another name, and nothing is changed before the backup has been unpacked and verified. An existing CA and
existing keys stay as they are; --keys replaces them with those of the backup.`,
		Example: `  # a new machine, or a server whose store was lost
  sudo wherry restore wherry.tar.gz

  # back to this morning
  sudo wherry restore --force /var/lib/wherry/snapshots/store-20261123T060000Z.tar.gz`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.DataDir, err = filepath.Abs(o.DataDir); err != nil {
				return err
			}
			o.File = args[0]
			done, err := server.Restore(cmd.Context(), o)
			if err != nil {
				return err
			}
			printRestored(t, o, done)
			return nil
		},
	}
	cmdline.DataDirFlag(cmd, &o.DataDir)
	f := cmd.Flags()
	f.BoolVar(&o.Force, "force", false, "replace an existing store; it is kept under another name")
	f.BoolVar(&o.Keys, "keys", false, "replace an existing CA and existing keys; they are kept under another name")
	return cmd
}

func printRestored(t Terminal, o server.RestoreOptions, done server.Restored) {
	what := "a database of etcd"
	if done.Header != nil {
		what = contents(*done.Header)
	}
	fmt.Fprintf(t.Err, "restored: %s\n", what)
	if done.Keys {
		fmt.Fprintln(t.Err, "the CA and the keys are those of the backup")
	}
	if done.Volumes > 0 {
		fmt.Fprintf(t.Err, "volumes restored: %d\n", done.Volumes)
	}
	for _, v := range done.Stayed {
		fmt.Fprintf(t.Err,
			"%s is here already and stays as it is; to have the backup's, move it away and restore again with --force\n", v)
	}
	for _, k := range done.Kept {
		fmt.Fprintf(t.Err, "what was there before: %s (remove it when all is well)\n", k)
	}
	fmt.Fprintln(t.Err, "start the server: "+foreground{dataDir: o.DataDir}.command("server"))
}
