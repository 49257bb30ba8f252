// SPDX-License-Identifier: Apache-2.0

package images

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/server/hostapi"
)

func newImageTag(t cmdline.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "tag IMAGE NAME",
		Short:   "Give an image another name",
		Long:    "Give an image another name, which pods can use. If another image has that name, it loses it.",
		Example: "  sudo wherry image tag registry.example.com/team/app:1.2 app:stable",
		Args:    cobra.ExactArgs(2),
	}
	client := cmdline.Host(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, err := client().Tag(cmd.Context(), args[0], args[1])
		if err == nil {
			fmt.Fprintln(t.Out, name)
		}
		return err
	}
	return cmd
}

func newImagePrune(t cmdline.Terminal) *cobra.Command {
	var all, force bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove images that no container uses",
		Long: `Remove the images that have no name and that no container uses, whether running or not; with --all, also those with a name.
What failed pulls have left, for the next pull to continue from, is removed, too.

The node does the same automatically when its disk fills up.`,
		Example: "  sudo wherry image prune --all",
		Args:    cobra.NoArgs,
	}
	client := cmdline.Host(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		what := "all images that have no name and that no container uses"
		if all {
			what = "all images that no container uses"
		}
		if !force && !cmdline.Agrees(t, "Remove "+what+"?") {
			return cmdline.ExitWith(cmdline.ExitFailure, errors.New("nothing was removed: answer yes, or use --force"))
		}
		removed, err := client().Prune(cmd.Context(), all)
		var bytes uint64
		for _, i := range removed {
			bytes += i.Size
			fmt.Fprintln(t.Out, nameOrID(i))
		}
		if err == nil {
			fmt.Fprintf(t.Err, "removed %d, %s in total\n", len(removed), size(bytes))
		}
		return err
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also remove images with a name")
	cmd.Flags().BoolVarP(&force, "force", "f", false, "do not ask for confirmation")
	return cmd
}

func nameOrID(i hostapi.Image) string {
	if len(i.Tags) > 0 {
		return i.Tags[0]
	}
	return i.ID
}

func newImageInspect(t cmdline.Terminal) *cobra.Command {
	var output, format string
	cmd := &cobra.Command{
		Use:   "inspect IMAGE...",
		Short: "Show details of images",
		Long: `Show everything known about images: names, digests and, under spec, the image's own configuration: platform, entry point, environment, history.

--format is a Go template for each image. Its fields have the names that -o json shows.`,
		Example: `  sudo wherry image inspect app:1
  sudo wherry image inspect app:1 -o yaml
  sudo wherry image inspect app:1 -f '{{.id}} {{json .spec.config.Env}}'`,
		Args: cobra.MinimumNArgs(1),
	}
	client := cmdline.Host(cmd)
	cmd.RunE = func(cmd *cobra.Command, refs []string) error {
		var l layout
		if format != "" {
			var err error
			if cmd.Flags().Changed("output") {
				err = errors.New("--format and -o exclude each other; give one of them")
			} else {
				l, err = parseLayout(format)
			}
			if err != nil {
				return cmdline.ExitWith(cmdline.ExitUsage, err)
			}
		}
		images := []hostapi.Image{}
		for _, ref := range refs {
			i, err := client().Inspect(cmd.Context(), ref)
			if err != nil {
				return err
			}
			images = append(images, i)
		}
		if format == "" {
			return cmdline.PrintAs(t, output, images)
		}
		all, err := asShown(images)
		if err != nil {
			return err
		}
		return l.write(t.Out, all)
	}
	output = "json"
	cmdline.OutputFlag(cmd, &output)
	formatFlag(cmd, &format, "f", "json, or a Go template for each image")
	return cmd
}
