// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/api/debugrun"
)

// execFlags are what `wherry exec` is told.
type execFlags struct {
	clientFlags
	container string
	image     string
	writable  bool
	stdin     bool
	tty       bool
	quiet     bool
}

func newExec(t Terminal) *cobra.Command {
	f := &execFlags{}
	cmd := &cobra.Command{
		Use:   "exec POD [-- COMMAND [ARG...]]",
		Short: "Run a command in a container, or from an image beside all of them",
		Long: `Run a command in a container of a pod, as kubectl exec does; or, with --image, run a command from an image in a fresh container
inside the pod, which is removed when the command ends.

With --image every container of the pod has its filesystem, volumes included, under /c/NAME: of those that run, and of those that
have died. It is read-only unless --writable. The command is in the pod's network; with -c it sees the processes of that container.
Without a command the image's own is run. The pod's images need to hold nothing for it, and nothing is left behind.

The exit code is the command's; 126 and 127 if it could not be run or was not found, 125 if the session failed, 1 if the server
refused.`,
		Example: `  wherry exec web -- cat /etc/hosts
  wherry exec -it web -m wherry.dev/toolbox                      # a shell; every container's files are under /c
  wherry exec web -m wherry.dev/toolbox -- ls -l /c/app/etc
  wherry exec web -m wherry.dev/toolbox -c app -- ps
  for p in $(kubectl get pods -o name); do wherry exec $p -m audit:1 || echo "$p: failed"; done`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pod, command, err := podAndCommand(cmd, "", args)
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), t, pod, command)
		},
		ValidArgsFunction: f.completePods,
	}
	f.add(cmd)
	fl := cmd.Flags()
	fl.StringVarP(&f.container, "container", "c", "", "the container; default: the only main one. With --image: the one whose processes are seen")
	fl.StringVarP(&f.image, "image", "m", "", "run the command from this image, with every container's files under /c")
	fl.BoolVar(&f.writable, "writable", false, "with --image: let the command write to the containers' files")
	fl.BoolVarP(&f.stdin, "stdin", "i", false, "hand standard input on")
	fl.BoolVarP(&f.tty, "tty", "t", false, "standard input is a terminal")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "say nothing but what the command says")
	return cmd
}

func (f *execFlags) run(ctx context.Context, t Terminal, pod string, command []string) error {
	switch {
	case f.image == "" && len(command) == 0:
		return &Exit{exitUsage, errors.New("which command? wherry exec POD -- COMMAND, or --image IMAGE for that image's own")}
	case f.image == "" && f.writable:
		return &Exit{exitUsage, errors.New("--writable is for --image: a command in a container writes as that container may")}
	case f.tty && !f.stdin:
		return &Exit{exitUsage, errors.New("-t needs -i: a terminal that nobody types at")}
	}
	if f.tty && !isTerminalIn(t.In) {
		f.tty = false // as kubectl: scripts may say -it
	}
	c, err := f.connect()
	if err != nil {
		return err
	}
	q := url.Values{}
	set(q, "container", f.container)
	set(q, debugrun.ParamExecImage, f.image)
	if f.writable {
		q.Set(debugrun.ParamExecWritable, "true")
	}
	if len(command) > 0 {
		q["command"] = command
	}
	return exitWith(podSession(t, c, f.namespace, pod, "exec", q, f.stdin, f.tty).Run(ctx))
}
