// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/cli/pulling"
	"github.com/wherryproject/wherry/internal/server/hostapi"
)

func newImagePull(t cmdline.Terminal) *cobra.Command {
	var creds string
	var quiet bool
	cmd := &cobra.Command{
		Use:   "pull IMAGE...",
		Short: "Pull images from their registries",
		Long: `Pull images from their registries, with the node's logins (see wherry image login) or with --creds.

On a terminal it shows progress, unless -q is given. Mirrors, registries without TLS and private certificates are configured in <data-dir>/registries.`,
		Example: `  sudo wherry image pull busybox:1.37
  sudo wherry image pull --creds ann registry.example.com/team/app:1`,
		Args: cobra.MinimumNArgs(1),
	}
	client := cmdline.Host(cmd)
	cmd.RunE = func(cmd *cobra.Command, refs []string) error {
		login, err := credentials(t, creds)
		if err != nil {
			return cmdline.ExitWith(cmdline.ExitUsage, err)
		}
		for _, ref := range refs {
			stop := func() {}
			if !quiet {
				stop = showPull(cmd.Context(), t, client(), ref)
			}
			err := client().Pull(cmd.Context(), ref, login)
			stop()
			if err != nil {
				return err
			}
			fmt.Fprintln(t.Out, ref)
		}
		return nil
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "do not show progress, only the names of the images")
	cmd.Flags().StringVar(&creds, "creds", "",
		"USER or USER:PASSWORD for the registry, for this pull only; prompts for a missing password")
	return cmd
}

// showPull shows on a terminal how far the node's pulls are until stop is called.
func showPull(ctx context.Context, t cmdline.Terminal, c *hostapi.Client, ref string) (stop func()) {
	width, height := cmdline.Size(t.Err)
	if height == 0 || !cmdline.IsTerminal(t.Err) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		replace := pulling.Replacing(plain.Own(t.Err), width)
		pulling.Follow(ctx, pulling.Node(c.Socket()), func(text string) {
			if text != "" {
				text = ref + ": " + text
			}
			replace(text)
		})
	}()
	return func() { cancel(); <-ended }
}
