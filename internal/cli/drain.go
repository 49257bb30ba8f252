// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
)

func newDrain(t Terminal) *cobra.Command {
	undo := false
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "End this node's pods before the machine goes down",
		Long: `End all pods of this node, those of the least priority first, and wait until they have ended. Each has its own grace period, and no more
than --shutdown-grace-period and its like give it. The node is not ready from then on and takes no pods, until wherry drain
--undo, which also cancels a drain that is under way, or until the server is started again.

Where systemd-logind announces it, a server with --shutdown-grace-period does this by itself when the machine goes down; elsewhere, call this
from what takes the machine down. Pods of controllers are created again on other nodes; static pods start again with the server.
To move pods away through the API, with regard to disruption budgets, use kubectl drain.`,
		Example: `  # before the machine is switched off
  sudo wherry drain && sudo poweroff

  # it stays on after all
  sudo wherry drain --undo`,
		Args: cobra.NoArgs,
	}
	client := cmdline.Host(cmd)
	cmd.Flags().BoolVar(&undo, "undo", false, "let the node take pods again; those that were ended stay so")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		if err := client().Drain(ctx, !undo); err != nil {
			return cmdline.CalledOffBy(ctx, err,
				"pods that were told to end go on ending, the others stay; the node takes no pods: "+
					"call wherry drain again, or wherry drain --undo")
		}
		if undo {
			fmt.Fprintln(t.Err, "the node takes pods again")
		} else {
			fmt.Fprintln(t.Err, "the node's pods have ended; it takes no others (wherry drain --undo)")
		}
		return nil
	}
	return cmd
}
