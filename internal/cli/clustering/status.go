// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/reach"
)

// patience bounds how long one looks at a cluster.
const patience = 30 * time.Second

func newStatus(t cmdline.Terminal) *cobra.Command {
	var where reach.Flags
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show whether the API is available and where agents run",
		Long: `Show whether the API is available and in which version, and for each node whether its pods can be debugged, or why not.

Exit codes: 0 the API is available; 1 it is not, or is not installed; 2 incorrect usage.`,
		Example: `  wherry cluster status
  wherry cluster status -o json | jq -r '.agents[] | select(.ready | not) | .node + ": " + .why'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), patience)
			defer cancel()
			return status(ctx, t, &where, output)
		},
	}
	where.AddServerTo(cmd)
	cmdline.OutputFlag(cmd, &output)
	return cmd
}

func status(ctx context.Context, t cmdline.Terminal, where *reach.Flags, output string) error {
	c, err := connect(where)
	if err != nil {
		return err
	}
	f, err := c.look(ctx)
	if err != nil {
		return err
	}
	s := stateOf(f)
	if output != "" {
		err = cmdline.PrintAs(t, output, s)
	} else {
		err = s.print(t)
	}
	if err == nil && !s.API.Available {
		return &cmdline.Exit{Code: cmdline.ExitFailure}
	}
	return err
}

func (s State) print(t cmdline.Terminal) error {
	fmt.Fprintln(t.Out, s.API.line(s.Namespace))
	table := cmdline.Table{Head: []string{"NODE", "AGENT", "VERSION", "POD", "WHY"},
		None: "there are no nodes with agents"}
	for _, a := range s.Agents {
		table.Add(a.Node, a.word(), a.Version, a.Pod, a.Why)
	}
	return table.Print(t)
}

// line is the API's state in one.
func (a APIState) line(namespace string) string {
	text := "API not available"
	if a.Available {
		text = "API available"
	}
	text += fmt.Sprintf(", version %s, %d of %d pods ready, namespace %s", cmdline.DashIfNone(a.Version), a.Ready,
		a.Replicas, namespace)
	if a.Why != "" {
		text += "\n  " + a.Why
	}
	return text
}

func (a AgentState) word() string {
	switch {
	case a.Ready:
		return "ready"
	case a.Pod != "":
		return "not ready"
	}
	return "none"
}
