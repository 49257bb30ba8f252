// SPDX-License-Identifier: Apache-2.0

package capturing

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/capture"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/oneline"
)

// newShow returns wherry capture show.
func newShow(t cmdline.Terminal) *cobra.Command {
	list, output := false, ""
	cmd := &cobra.Command{
		Use:   "show BUNDLE [FILE]",
		Short: "Show what is in a bundle of wherry capture",
		Long: `Show what is in a bundle of wherry capture: a summary, or one of its files. No cluster is needed, and nothing is unpacked.
BUNDLE may be -, for standard input.`,
		Example: `  wherry capture show web.tar.zst
  wherry capture show web.tar.zst --list
  wherry capture show web.tar.zst logs/main.log | less
  wherry capture show web.tar.zst -o json               # what is in it, and what is not and why`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 2 && (list || output != "") {
				return cmdline.ExitWith(cmdline.ExitUsage,
					fmt.Errorf("--list and -o are about the whole bundle: leave out %s", args[1]))
			}
			return show(t, args[0], args[1:], list, output)
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "list the names of all files")
	cmdline.OutputFlag(cmd, &output)
	return cmd
}

func show(t cmdline.Terminal, bundle string, file []string, list bool, output string) error {
	from := t.In
	if bundle != "-" {
		f, err := os.Open(bundle)
		if err != nil {
			return err
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return fmt.Errorf("%s is a folder, not a bundle", bundle)
		}
		from = f
	}
	if from == nil {
		return fmt.Errorf("there is no standard input to read a bundle from")
	}
	named := func(err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", bundle, err)
		}
		return nil
	}
	if len(file) == 1 {
		return named(capture.Open(from, file[0], t.Out))
	}
	if list {
		return named(capture.Each(from, func(name string, _ int64, _ io.Reader) error {
			_, err := fmt.Fprintln(t.Out, oneline.Of(name))
			return err
		}))
	}
	b, err := capture.Read(from, capture.Wanted)
	if err != nil {
		return named(err)
	}
	if output != "" {
		return cmdline.PrintAs(t, output, b.Manifest)
	}
	_, err = io.WriteString(t.Out, capture.Summary(b))
	return err
}
