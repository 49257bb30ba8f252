// SPDX-License-Identifier: Apache-2.0

package images

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/server/hostapi"
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

func newImageImport(t cmdline.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "import FILE...",
		Aliases: []string{"load"},
		Short:   "Load images from tar archives",
		Long:    "Load the images in OCI or Docker archives (from docker save or wherry image export). - reads standard input.",
		Example: `  sudo wherry image import app.tar
  docker save app:1 | sudo wherry image import -`,
		Args: cobra.MinimumNArgs(1),
	}
	client := cmdline.Host(cmd)
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		for _, name := range files {
			names, err := importFile(cmd, t, client(), name)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			for _, n := range names {
				fmt.Fprintln(t.Out, n)
			}
		}
		return nil
	}
	return cmd
}

func importFile(cmd *cobra.Command, t cmdline.Terminal, c *hostapi.Client, name string) ([]string, error) {
	if name == "-" {
		return c.Import(cmd.Context(), t.In)
	}
	f, err := os.Open(name)
	if err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err // the caller names the file
		}
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, errors.New("is a folder: name an archive, for example one made by docker save")
	}
	return c.Import(cmd.Context(), f)
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
		if err := cmdline.Replaceable(file); err != nil {
			return err
		}
		// Under another name until it is whole, so that an error leaves no half archive.
		tmp, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
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
			return cmdline.CalledOffBy(ctx, err)
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
		Short:   "Remove images with all their names",
		Example: "  sudo wherry image rm example/app:1",
		Args:    cobra.MinimumNArgs(1),
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
