// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/server"
	"github.com/wherryproject/wherry/internal/server/hostapi"
)

func newImage(t Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "image",
		Aliases: []string{"images"},
		Short:   "Images of this node: list, load, save, fetch, remove",
		Long:    "Images of this node. The server must be running; its socket is open to root only.",
		Args:    noSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newImageList(t), newImageImport(t), newImageExport(t), newImagePull(t), newImageRemove(t))
	return cmd
}

// host adds the flag for the data folder and returns a way to its server.
func host(cmd *cobra.Command) func() *hostapi.Client {
	var dir string
	dataDirFlag(cmd, &dir)
	return func() *hostapi.Client {
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
		return hostapi.NewClient(server.Socket(dir))
	}
}

func newImageList(t Terminal) *cobra.Command {
	var output string
	var quiet, all bool
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the node's images",
		Long:    "List the node's images. Those that are built into wherry (the toolbox, and the first process of each pod) are shown with --all only.",
		Example: "  sudo wherry image ls\n  sudo wherry image ls -o json",
		Args:    cobra.NoArgs,
	}
	client := host(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		images, err := client().List(cmd.Context())
		if !all {
			images = slices.DeleteFunc(images, func(i hostapi.Image) bool { return i.BuiltIn })
		}
		switch {
		case err != nil:
			return err
		case output != "":
			return printAs(t, output, images)
		}
		return printImages(t.Out, images, quiet)
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "names only")
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also the images that are built into wherry")
	return cmd
}

func printImages(w io.Writer, images []hostapi.Image, quiet bool) error {
	var rows [][3]string
	for _, i := range images {
		names := i.Tags
		if len(names) == 0 {
			names = i.Digests
		}
		if len(names) == 0 {
			names = []string{"<none>"}
		}
		for _, n := range names {
			rows = append(rows, [3]string{n, shortID(i.ID), size(i.Size)})
		}
	}
	slices.SortFunc(rows, func(a, b [3]string) int { return strings.Compare(a[0], b[0]) })
	if quiet {
		for _, r := range rows {
			fmt.Fprintln(w, r[0])
		}
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	fmt.Fprintln(tw, "IMAGE\tID\tSIZE")
	for _, r := range rows {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", r[0], r[1], r[2])
	}
	return tw.Flush()
}

func shortID(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	return id[:min(12, len(id))]
}

func size(n uint64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%.1fKiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1fMiB", float64(n)/(1<<20))
}

func newImageImport(t Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import FILE...",
		Short: "Load images from tar archives",
		Long:  "Load the images of OCI or docker archives (docker save, wherry image export). - reads standard input.",
		Example: `  sudo wherry image import app.tar
  docker save app:1 | sudo wherry image import -`,
		Args: cobra.MinimumNArgs(1),
	}
	client := host(cmd)
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

func importFile(cmd *cobra.Command, t Terminal, c *hostapi.Client, name string) ([]string, error) {
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
	return c.Import(cmd.Context(), f)
}

func newImageExport(t Terminal) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "export IMAGE...",
		Short: "Save images to a tar archive",
		Example: `  sudo wherry image export -f app.tar example/app:1
  sudo wherry image export example/app:1 | ssh other sudo wherry image import -`,
		Args: cobra.MinimumNArgs(1),
	}
	client := host(cmd)
	cmd.RunE = func(cmd *cobra.Command, refs []string) error {
		if file == "" || file == "-" {
			if isTerminal(t.Out) {
				return &Exit{exitUsage, errors.New("an archive is not for a terminal; name a file with -f, or pipe it on")}
			}
			return client().Export(cmd.Context(), t.Out, refs)
		}
		// Under another name until it is whole, so that an error leaves no half archive.
		tmp, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
		if err != nil {
			return err
		}
		err = client().Export(cmd.Context(), tmp, refs)
		if err = errors.Join(err, tmp.Chmod(0o644), tmp.Close()); err == nil {
			err = os.Rename(tmp.Name(), file)
		}
		if err != nil {
			os.Remove(tmp.Name())
		}
		return err
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file to write; default: standard output")
	return cmd
}

func newImagePull(t Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pull IMAGE...",
		Short:   "Fetch images from their registries",
		Example: "  sudo wherry image pull busybox:1.37",
		Args:    cobra.MinimumNArgs(1),
	}
	client := host(cmd)
	cmd.RunE = func(cmd *cobra.Command, refs []string) error {
		for _, ref := range refs {
			if err := client().Pull(cmd.Context(), ref); err != nil {
				return err
			}
			fmt.Fprintln(t.Out, ref)
		}
		return nil
	}
	return cmd
}

func newImageRemove(t Terminal) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:     "rm IMAGE...",
		Aliases: []string{"remove"},
		Short:   "Remove images with all their names",
		Example: "  sudo wherry image rm example/app:1",
		Args:    cobra.MinimumNArgs(1),
	}
	client := host(cmd)
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
	cmd.Flags().BoolVar(&force, "force", false, "remove also what a container uses")
	return cmd
}
