// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/podrun"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/manifest"
)

// oneOffFlags are the flags of `wherry run IMAGE`, which have no meaning with a manifest.
var oneOffFlags = []string{"name", "entrypoint", "workdir", "user", "pull", "env", "env-file", "volume", "publish",
	"stdin", "tty"}

func addOneOffFlags(fl *pflag.FlagSet, o *podrun.OneOff) {
	fl.BoolVarP(&o.Stdin, "stdin", "i", false, "with IMAGE: pass standard input to the container")
	fl.BoolVarP(&o.TTY, "tty", "t", false, "with IMAGE: give it a terminal")
	fl.StringArrayVarP(&o.Env, "env", "e", nil,
		"with IMAGE: an environment variable, `NAME=VALUE`, or NAME alone to pass on its value; may be given more than once")
	fl.StringArrayVar(&o.EnvFiles, "env-file", nil, "with IMAGE: a `FILE` of environment variables, one per line")
	fl.StringArrayVarP(&o.Volumes, "volume", "v", nil,
		"with IMAGE: mount a folder or file of this machine, `HOST:PATH[:ro]`; PATH alone for an empty folder")
	fl.StringArrayVarP(&o.Ports, "publish", "p", nil,
		"with IMAGE: publish a container port on this machine, `[IP:]HOST:CONTAINER[/udp]`")
	fl.StringVar(&o.Name, "name", "", "with IMAGE: name of the pod; default: the image's name with a suffix")
	fl.StringVar(&o.Entrypoint, "entrypoint", "", "with IMAGE: program to run instead of the image's entry point")
	fl.StringVarP(&o.User, "user", "u", "", "with IMAGE: run as this user, UID or UID:GID")
	fl.StringVarP(&o.Workdir, "workdir", "w", "", "with IMAGE: folder to run it in")
	fl.StringVar(&o.Pull, "pull", "", "with IMAGE: pull it always, if missing, or never (default missing)")
}

// takeImage reads IMAGE [-- COMMAND].
func (f *runFlags) takeImage(cmd *cobra.Command, args []string) error {
	before, command := args, []string(nil)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		before, command = args[:dash], args[dash:]
	}
	if len(before) == 0 {
		for _, name := range oneOffFlags {
			if cmd.Flags().Changed(name) {
				return cmdline.ExitWith(exitUsage, fmt.Errorf("--%s needs an image: wherry run IMAGE -- COMMAND", name))
			}
		}
		if len(command) > 0 {
			return cmdline.ExitWith(exitUsage,
				errors.New("the image is missing: name it before --: wherry run IMAGE -- COMMAND"))
		}
		return nil
	}
	image := before[0]
	switch {
	case len(f.files) > 0:
		return cmdline.ExitWith(exitUsage,
			fmt.Errorf("-f and the image %q exclude each other; a second manifest needs an -f of its own", image))

	case isManifest(image):
		return cmdline.ExitWith(exitUsage, fmt.Errorf("%s is a manifest, not an image: wherry run -f %s", image, image))
	case len(before) > 1:
		return cmdline.ExitWith(exitUsage,
			fmt.Errorf("unexpected %q: the command goes after --, as in: wherry run %s -- %s",
				before[1], image, strings.Join(before[1:], " ")))

	}
	f.oneOff.Image, f.oneOff.Command = image, command
	return nil
}

// isManifest reports whether what stands in an image's place is a manifest, or a folder of some.
func isManifest(name string) bool {
	for _, ending := range []string{".yaml", ".yml", ".json"} {
		if strings.HasSuffix(name, ending) {
			return true
		}
	}
	info, err := os.Stat(name)
	return strings.Contains(name, "/") && err == nil && info.IsDir() &&
		(strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/"))
}

// object is the pod of an image.
func (f *runFlags) object(t Terminal) (manifest.Object, error) {
	if f.oneOff.Stdin && f.oneOff.TTY && !ask.IsTerminal(t.In) {
		f.oneOff.TTY = false // as with kubectl, scripts may say -it
	}
	if f.options.Detach && f.oneOff.Stdin {
		return manifest.Object{},
			cmdline.ExitWith(exitUsage,
				errors.New("-i passes input to the container, but --detach does not wait for it; choose one"))

	}
	here := podrun.Here{Getenv: os.LookupEnv, ReadFile: os.ReadFile}
	var err error
	if here.Folder, err = os.Getwd(); err != nil {
		return manifest.Object{}, err
	}
	o, err := f.oneOff.Object(here)
	if err != nil {
		return manifest.Object{}, cmdline.ExitWith(exitUsage, err)
	}
	return o, nil
}

// attach carries the streams of a container's process. Of a terminal they are this one's own, as it has a size.
func (f *runFlags) attach(t Terminal, server *connection) func(context.Context, *corev1.Pod, string, io.Writer,
	io.Writer) error {
	if !f.oneOff.Stdin {
		return nil
	}
	return func(ctx context.Context, pod *corev1.Pod, container string, out, errs io.Writer) error {
		c := &reach.Client{Config: server.config, Interface: server.client}
		streams := Terminal{In: t.In, Out: out, Err: errs}
		if f.oneOff.TTY {
			streams.Out, streams.Err = t.Out, t.Err
		}
		_, err := c.Stream(ctx, streams, pod.Namespace, ask.Attach{Pod: pod.Name, Container: container, Stdin: true,
			TTY: f.oneOff.TTY}.Session(), reach.Notices{})
		return err
	}
}
