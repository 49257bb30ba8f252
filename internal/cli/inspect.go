// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/store/inspect"
)

// inspectWord is the command by which the program reads a database file that may be damaged in a process of its own.
const inspectWord = "inspect-database"

func inspector() []string { return []string{"/proc/self/exe", inspectWord} }

func newInspect(t Terminal) *cobra.Command {
	return &cobra.Command{
		Use:    inspectWord + " FILE",
		Short:  "Read a database file of the embedded etcd; wherry runs this by itself",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(_ *cobra.Command, args []string) error { return inspect.Child(t.Out, args[0]) },
	}
}
