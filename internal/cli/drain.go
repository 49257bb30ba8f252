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
		Short: "End this node's pods before the machine shuts down",
		Long: `End all pods of this node, those with the lowest priority first, and wait until they have ended. Each has its own grace period, but no
more than the server's --shutdown-grace-period flags allow. From then on the node is not ready and accepts no pods, until wherry drain
--undo, which also cancels a drain in progress, or until the server is started again.

A server with --shutdown-grace-period does this by itself when systemd-logind announces that the machine shuts down; without systemd-logind,
run this command from whatever shuts the machine down. Pods of controllers are created again on other nodes; static pods start again with the server.
To move pods away through the API, respecting disruption budgets, use kubectl drain.`,
		Example: `  # before the machine is switched off
  sudo wherry drain && sudo poweroff

  # it stays on after all
  sudo wherry drain --undo`,
		Args: cobra.NoArgs,
	}
	client := cmdline.Host(cmd)
	cmd.Flags().BoolVar(&undo, "undo", false, "let the node accept pods again; pods that have ended stay ended")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		if err := client().Drain(ctx, !undo); err != nil {
			return cmdline.CalledOffBy(ctx, err,
				"pods that are already stopping will stop, the others stay; the node accepts no pods: "+
					"call wherry drain again, or wherry drain --undo")
		}
		if undo {
			fmt.Fprintln(t.Err, "the node accepts pods again")
		} else {
			fmt.Fprintln(t.Err, "the node's pods have ended; it accepts no others (undo with wherry drain --undo)")
		}
		return nil
	}
	return cmd
}
