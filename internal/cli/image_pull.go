// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newImagePull(t Terminal) *cobra.Command {
	var creds string
	cmd := &cobra.Command{
		Use:   "pull IMAGE...",
		Short: "Fetch images from their registries",
		Long: `Fetch images from their registries, with the node's logins (see wherry image login), or with --creds.

Mirrors, registries without TLS and certificates of their own are settled in <data-dir>/registries.`,
		Example: `  sudo wherry image pull busybox:1.37
  sudo wherry image pull --creds ann registry.example.com/team/app:1`,
		Args: cobra.MinimumNArgs(1),
	}
	client := host(cmd)
	cmd.RunE = func(cmd *cobra.Command, refs []string) error {
		login, err := credentials(t, creds)
		if err != nil {
			return &Exit{exitUsage, err}
		}
		for _, ref := range refs {
			if err := client().Pull(cmd.Context(), ref, login); err != nil {
				return err
			}
			fmt.Fprintln(t.Out, ref)
		}
		return nil
	}
	cmd.Flags().StringVar(&creds, "creds", "", "USER or USER:PASSWORD at the registry, for this time only; a password that is missing is asked for")
	return cmd
}
