// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/images/engine"
	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/cli/pulling"
	"github.com/wherryproject/wherry/internal/server/hostapi"
)

func newImageImport(t cmdline.Terminal) *cobra.Command {
	var inputs []string
	cmd := &cobra.Command{
		Use:     "import SOURCE...",
		Aliases: []string{"load"},
		Short:   "Load images from tar archives, or from Docker or containerd",
		Long: `Load images into this node, so that its pods can use them. SOURCE is an OCI or Docker archive (from docker save or wherry image export);
- reads it from standard input.

With docker:IMAGE or containerd:IMAGE, an image of this machine's Docker or containerd is loaded directly, without an archive. By default
it is taken from the containerd namespace that has it. DOCKER_HOST and CONTAINERD_ADDRESS are respected.

-i names an archive, as in docker load.`,
		Example: `  sudo wherry image import app.tar
  sudo wherry image import docker:app:1
  sudo wherry image import containerd:app:1 --namespace k8s.io
  podman save app:1 | sudo wherry image import -
  sudo wherry image load -i app.tar`,
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(inputs) > 0 {
			return nil
		}
		return cobra.MinimumNArgs(1)(cmd, args)
	}
	from := engine.Options{Getenv: os.Getenv}
	cmd.Flags().StringArrayVarP(&inputs, "input", "i", nil,
		"archive `FILE` to read, as in docker load; - for standard input")
	cmd.Flags().StringVar(&from.Address, "address", "", "socket of the Docker or containerd to read from")
	cmd.Flags().StringVarP(&from.Namespace, "namespace", "n", "",
		"containerd's namespace; default: the one that has the image")
	client := cmdline.Host(cmd)
	cmd.RunE = func(cmd *cobra.Command, sources []string) error {
		all, err := archives(sources, inputs)
		if err != nil {
			return cmdline.ExitWith(cmdline.ExitUsage, err)
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		for _, name := range all {
			names, err := importOne(ctx, t, client(), from, name)
			if err != nil {
				return cmdline.CalledOffBy(ctx, fmt.Errorf("%s: %w", name, err), name+" was not imported")
			}
			for _, n := range names {
				fmt.Fprintln(t.Out, n)
			}
		}
		return nil
	}
	return cmd
}

// archives are the sources to import: those of -i, and those that are named.
func archives(sources, inputs []string) ([]string, error) {
	all := slices.Concat(inputs, sources)
	if i := slices.Index(all, "-"); i >= 0 && slices.Contains(all[i+1:], "-") {
		return nil, errors.New("- is given twice, but standard input can only be read once")
	}
	return all, nil
}

// importOne sends one archive to the server, wherever it comes from, and shows on a terminal how much has been read.
func importOne(ctx context.Context, t cmdline.Terminal, c *hostapi.Client, from engine.Options,
	name string) ([]string, error) {
	archive, err := openArchive(ctx, t, from, name)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	shown := showRead(t, name, archive)
	defer shown.done()
	return c.Import(ctx, shown)
}

func openArchive(ctx context.Context, t cmdline.Terminal, from engine.Options, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(t.In), nil
	}
	source, is, err := engine.Parse(name)
	if err != nil {
		return nil, cmdline.ExitWith(cmdline.ExitUsage, err)
	}
	if is {
		return source.Open(ctx, from)
	}
	return openFile(name)
}

func openFile(name string) (io.ReadCloser, error) {
	f, err := os.Open(name)
	if err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err // the caller names the file
		}
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, errors.New("is a folder: name an archive, for example one made by docker save")
	}
	return f, nil
}

// glance is how often a person is shown how much has been read.
const glance = 200 * time.Millisecond

// counted is an archive of which a person is shown how much has been read.
type counted struct {
	io.Reader
	name    string
	read    int64
	shown   time.Time
	replace func(string)
}

// showRead counts what is read where there is a person at a terminal.
func showRead(t cmdline.Terminal, name string, archive io.Reader) *counted {
	c := &counted{Reader: archive, name: name, shown: time.Now(), replace: func(string) {}}
	if width, height := cmdline.Size(t.Err); height > 0 && cmdline.IsTerminal(t.Err) {
		c.replace = pulling.Replacing(plain.Own(t.Err), width)
	}
	return c
}

// Read reads and shows. Nothing is shown of what takes less than a glance.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += int64(n)
	if now := time.Now(); now.Sub(c.shown) >= glance {
		c.shown = now
		c.replace(c.name + ": " + size(uint64(c.read)) + " read")
	}
	if err == io.EOF && c.read > 0 {
		c.replace(c.name + ": unpacking")
	}
	return n, err
}

// done takes away what was shown.
func (c *counted) done() { c.replace("") }
