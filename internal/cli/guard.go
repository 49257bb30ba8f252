// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/hostdebug/guard"
)

// newGuard returns the command that the program runs beside a debug session of this machine. The short program does the
// same, where it is in the file.
func newGuard(t cmdline.Terminal) *cobra.Command {
	return &cobra.Command{
		Use:    guard.Word + " SESSION",
		Short:  "End what a debug session leaves; wherry runs this by itself",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return cmdline.ExitWith(guard.Main(args, t.In, t.Err), nil)
		},
	}
}
