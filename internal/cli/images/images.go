// SPDX-License-Identifier: Apache-2.0

package images

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
)

// NewImage returns wherry image.
func NewImage(t cmdline.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Manage this node's images",
		Long:  "Manage this node's images: list, import, export, pull, tag, remove. The server must be running, and only root can use its socket.",
		Args:  cmdline.NoSuchCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newImageList(t), newImageImport(t), newImageExport(t), newImagePull(t), newImageRemove(t),
		newImageTag(t), newImagePrune(t), newImageInspect(t), newImageLogin(t), newImageLogout(t))
	return cmd
}

func newImageExport(t cmdline.Terminal) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:     "export IMAGE...",
		Aliases: []string{"save"},
		Short:   "Save images to a tar archive",
		Example: `  sudo wherry image export -f app.tar example/app:1
  sudo wherry image export example/app:1 | ssh other sudo wherry image import -`,
		Args: cobra.MinimumNArgs(1),
	}
	client := cmdline.Host(cmd)
	cmd.RunE = func(cmd *cobra.Command, refs []string) error {
		if file == "" || file == "-" {
			if cmdline.IsTerminal(t.Out) {
				return cmdline.ExitWith(cmdline.ExitUsage,
					errors.New("an archive cannot be written to a terminal: name a file with -f, or pipe it to another program"))

			}
			return client().Export(cmd.Context(), t.Out, refs)
		}
		// Under another name until it is whole, so that an error leaves no half archive.
		tmp, err := cmdline.Beside(file)
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		err = client().Export(ctx, tmp, refs)
		if err = errors.Join(err, tmp.Chmod(0o644), tmp.Close()); err == nil {
			err = os.Rename(tmp.Name(), file)
		}
		if err != nil {
			os.Remove(tmp.Name())
			return cmdline.CalledOffBy(ctx, err, cmdline.NothingWritten)
		}
		return nil
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file to write to; default: standard output")
	cmd.Flags().StringVarP(&file, "output", "o", "", "the same as --file, as in docker")
	return cmd
}

func newImageRemove(t cmdline.Terminal) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:     "rm IMAGE...",
		Aliases: []string{"remove", "rmi"},
		Short:   "Remove images, or one of an image's names",
		Long: `Remove images. An image that has other names only loses the one that is given, even while containers use it; given by its ID, it is
removed with all its names.`,
		Example: `  sudo wherry image rm example/app:1
  sudo wherry image rm 3f1a5c0e9b27              # with all its names`,
		Args: cobra.MinimumNArgs(1),
	}
	client := cmdline.Host(cmd)
	cmd.RunE = func(cmd *cobra.Command, refs []string) error {
		for _, ref := range refs {
			names, err := client().Remove(cmd.Context(), ref, force)
			if err != nil {
				return err
			}
			for _, n := range names {
				fmt.Fprintln(t.Out, n)
			}
		}
		return nil
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "also remove images that a container uses")
	return cmd
}
