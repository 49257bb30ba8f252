// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/server"
)

// findings is what -o json and yaml show.
type findings struct {
	Items []server.Finding `json:"items"`
}

func newCheck(t Terminal) *cobra.Command {
	var dir, snapshots, output string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check a data folder and say what is wrong with it",
		Long: `Check a server's data folder, and say what is wrong with it and what to do: the store, the newest snapshot, certificates and keys,
permissions, disk space. Nothing is changed. The server may be running; its store is then left alone.

Exit codes: 1 something is wrong (an error; warnings do not count), 2 incorrect usage, 10 not root, 15 not a data folder.`,
		Example: `  sudo wherry check
  sudo wherry check --etcd-snapshot-dir /backups
  sudo wherry check -o json | jq -r '.items[] | select(.severity != "ok") | .what'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			abs, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			if snapshots != "" {
				if snapshots, err = filepath.Abs(snapshots); err != nil {
					return err
				}
			}
			all, err := server.Check(cmd.Context(), abs, snapshots, cmdline.Inspector(), time.Now())
			if err != nil {
				return err
			}
			if output != "" {
				if err := cmdline.PrintAs(t, output, findings{all}); err != nil {
					return err
				}
			} else {
				fmt.Fprint(t.Out, findingsTable(all))
			}
			for _, f := range all {
				if f.Severity == server.Fault {
					return &Exit{Code: exitFailure}
				}
			}
			return nil
		},
	}
	cmdline.DataDirFlag(cmd, &dir)
	snapshotDirFlag(cmd, &snapshots,
		"folder of the server's snapshots, if it was started with this flag; default: <data-dir>/snapshots")
	cmdline.OutputFlag(cmd, &output)
	return cmd
}

// findingsTable is a line for each finding, and below it what to do.
func findingsTable(all []server.Finding) string {
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "%-8s %-13s %s\n", f.Severity, f.Subject, f.What)
		for line := range strings.Lines(f.Do) {
			fmt.Fprintf(&b, "%-22s %s\n", "", strings.TrimRight(line, "\n"))
		}
	}
	return b.String()
}
