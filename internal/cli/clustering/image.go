// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cluster/image"
	"github.com/wherryproject/wherry/internal/cluster/manifest"
	"github.com/wherryproject/wherry/internal/release"
)

func newImage(t cmdline.Terminal) *cobra.Command {
	var file, name string
	cmd := &cobra.Command{
		Use:   "image -o FILE",
		Short: "Write an image of this program, for clusters without internet access",
		Long: `Write an image of this program, for nodes of this machine's architecture, as an archive for ctr images import, docker load, podman load or
wherry image import. Load it on the nodes, or push it to a registry that they can reach and name it with wherry cluster install --image.`,
		Example: `  wherry cluster image -o wherry.tar
  ctr --namespace k8s.io images import wherry.tar
  wherry cluster install --image-pull-policy Never

  wherry cluster image -o wherry.tar --name registry.example.com/wherry:1
  docker load -i wherry.tar && docker push registry.example.com/wherry:1
  wherry cluster install --image registry.example.com/wherry:1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return writeImage(cmd.Context(), t, file, name)
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "archive to write; - for standard output")
	cmd.Flags().StringVar(&name, "name", manifest.Image(release.Version()), "name of the image")
	_ = cmd.MarkFlagFilename("output", "tar")
	return cmd
}

func writeImage(ctx context.Context, t cmdline.Terminal, file, name string) error {
	switch {
	case file == "":
		return cmdline.ExitWith(cmdline.ExitUsage,
			errors.New("where to? name a file with -o, for example -o wherry.tar"))
	case file == "-" && cmdline.IsTerminal(t.Out):
		return cmdline.ExitWith(cmdline.ExitUsage,
			errors.New("an archive cannot be written to a terminal: name a file with -o, or pipe it to another program"))
	}
	ref, err := image.Name(name)
	if err != nil {
		return cmdline.ExitWith(cmdline.ExitUsage, fmt.Errorf("--name %w", err))
	}
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("this program cannot be read: %w", err)
	}
	made, err := image.Of(image.Program{Binary: program, Version: release.Version(), Roots: image.Roots()})
	if err != nil {
		return err
	}
	if file == "-" {
		return image.Archive(t.Out, made, ref)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := whole(ctx, file, func(w io.Writer) error { return image.Archive(w, made, ref) }); err != nil {
		return cmdline.CalledOffBy(ctx, err, cmdline.NothingWritten)
	}
	fmt.Fprintf(t.Err, "%s: %s\n", file, ref)
	return nil
}

// whole writes a file under another name until it is whole, so that an error, or the end of ctx, leaves no half
// archive.
func whole(ctx context.Context, file string, write func(io.Writer) error) error {
	tmp, err := cmdline.Beside(file)
	if err != nil {
		return err
	}
	err = errors.Join(write(calledOff{ctx, tmp}), ctx.Err())
	if err = errors.Join(err, tmp.Chmod(0o644), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}

// calledOff writes until the user calls it off.
type calledOff struct {
	ctx context.Context
	to  io.Writer
}

// Write implements io.Writer.
func (c calledOff) Write(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.to.Write(p)
}
