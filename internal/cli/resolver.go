// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/names/resolver"
	"github.com/wherryproject/wherry/internal/names/wire"
)

// resolverCommand begins in the short program, as bin/wherry has it; without that one it is the command below.
func resolverCommand() []string { return []string{"/proc/self/exe", wire.Word} }

func newResolver(t Terminal) *cobra.Command {
	return &cobra.Command{
		Use:    wire.Word + " FOLDER ADDRESS PROGRAM",
		Short:  "Answer pods that look up names; wherry runs this by itself",
		Hidden: true,
		Args:   cobra.ExactArgs(3),
		RunE: func(_ *cobra.Command, args []string) error {
			if code := resolver.Main(args, t.Err); code != 0 {
				return &Exit{Code: code}
			}
			return nil
		},
	}
}
