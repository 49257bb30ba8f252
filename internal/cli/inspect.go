// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/store/inspect"
)

func newInspect(t Terminal) *cobra.Command {
	return &cobra.Command{
		Use:    cmdline.InspectWord + " FILE",
		Short:  "Read a database file of the embedded etcd; wherry runs this by itself",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(_ *cobra.Command, args []string) error { return inspect.Child(t.Out, args[0]) },
	}
}
