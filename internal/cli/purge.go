// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/server"
)

func newPurge(t Terminal) *cobra.Command {
	var dir string
	var yes bool
	var o server.PurgeOptions
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "End all pods and remove the data folder",
		Long: `Kill all pods of a data folder immediately and remove the folder with everything the server left on this machine: containers,
mounts, network, images, logs and stored objects. The server must not be running. This cannot be undone.

Pods on an external runtime (the server's --container-runtime-endpoint) are ended by that runtime, which must be running. If it is gone
for good, --runtime-gone ends their processes without it.`,
		Example: `  sudo wherry purge
  sudo wherry purge --data-dir /srv/second --yes
  sudo wherry purge --runtime-gone   # containerd was removed from this machine`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			abs, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			if _, err := os.Stat(abs); errors.Is(err, os.ErrNotExist) {
				fmt.Fprintf(t.Err, "nothing to do: there is no %s\n", abs)
				return nil
			}
			if err := server.MayPurge(abs); err != nil {
				return err
			}
			if !yes && !cmdline.Agrees(t, "End all pods of "+abs+" and remove it with all images and objects?") {
				return cmdline.ExitWith(exitFailure, errors.New("nothing was removed: answer yes, or give --yes"))
			}
			o.Tell = func(what string) { fmt.Fprintln(t.Err, "note: "+what) }
			if err := server.Purge(cmd.Context(), abs, o); err != nil {
				return err
			}
			fmt.Fprintf(t.Err, "removed %s, its pods, and what they had on this machine\n", abs)
			return nil
		},
	}
	cmdline.DataDirFlag(cmd, &dir)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&o.RuntimeGone, "runtime-gone", false,
		"the external runtime is gone for good: if it does not answer, end the pods' processes without it")
	return cmd
}
