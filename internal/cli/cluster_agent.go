// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cluster/agent"
)

// newClusterAgent returns the command that the pod of a cluster's agent runs. The short program does the same, where it
// is in the file, with a tenth of the memory.
func newClusterAgent(t cmdline.Terminal) *cobra.Command {
	return &cobra.Command{
		Use:                agent.Word,
		Short:              "Run debug sessions beside the pods of a node; the pods of wherry cluster install run this",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			return cmdline.ExitWith(agent.Main(args, t.Err), nil)
		},
	}
}
