// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/onhost"
	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/debug/ways"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
	"github.com/wherryproject/wherry/internal/podspec"
)

// execFlags are the flags of `wherry exec`.
type execFlags struct {
	reach.Flags
	ask.Exec
	host onhost.Flags
}

// NewExec returns wherry exec.
func NewExec(t cmdline.Terminal) *cobra.Command {
	f := &execFlags{}
	cmd := &cobra.Command{
		Use:   "exec TARGET [-- COMMAND [ARG...]]",
		Short: "Run a command in a container, or from an image alongside all of them",
		Long: `Run a command in a container of a pod, as kubectl exec does; or, with --image, run a command from an image in a fresh container
inside the pod, which is removed when the command ends.

With --image the filesystem of every container in the pod, running or dead, is under /c/NAME, including volumes. It is read-only unless
--writable is given. The command shares the pod's network; with -c it sees the processes of that container. The default command is the
image's own. The pod's images need nothing special for this, and nothing is left behind. A pull that takes more than a second is shown on
standard error, with progress if this is a terminal on the server's machine.

TARGET is a pod, or deployment/NAME and the like for its newest running pod, or, with --image, a container of this machine, for example
docker:web: see wherry debug --help.

The exit code is the command's; 126 or 127 if it could not be run or was not found, 125 if the session failed, 1 if the server refused.`,
		Example: `  wherry exec web -- cat /etc/hosts
  wherry exec -it web -m wherry.dev/toolbox                      # a shell; the files of every container are under /c
  wherry exec web -m wherry.dev/toolbox -- ls -l /c/app/etc
  wherry exec web -m wherry.dev/toolbox -c app -- ps
  wherry exec deployment/web -m busybox:1.37 -- ls /c            # in the newest running pod of a Deployment
  sudo wherry exec docker:web -m wherry.dev/toolbox -- ls /c     # beside a container of Docker
  for p in $(kubectl get pods -o name); do wherry exec $p -m wherry.dev/toolbox -- ls /c || echo "$p: failed"; done`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pod, command, err := podAndCommand(cmd, "", args)
			if err != nil {
				return err
			}
			to, onHost, err := target.Parse(pod)
			if err != nil {
				return cmdline.ExitWith(cmdline.ExitUsage, err)
			}
			if onHost {
				return f.host.Exec(cmd.Context(), t, to, &f.Exec, command)
			}
			if err := f.host.Given(); err != nil && !(f.Image != "" && f.host.OnlyLimits() &&
				servesDebug(cmd.Context(), &f.Flags)) {
				return err
			}
			f.Limits = f.host.Quantities()
			pod, note, err := f.PodMeant(cmd.Context(), "", pod)
			if err != nil {
				return err
			}
			if note != "" && !f.Quiet {
				fmt.Fprintln(t.Err, plain.Text(note))
			}
			return f.OrOthers(cmd.Context(), "", pod, f.run(cmd.Context(), t, pod, command))
		},
		ValidArgsFunction: f.host.Complete(f.CompletePods),
	}
	f.AddTo(cmd)
	f.Exec.AddFlags(cmd.Flags())
	f.host.AddFlags(cmd.Flags())
	_ = cmd.RegisterFlagCompletionFunc("container", f.CompleteContainers(reach.AnyContainer))
	_ = cmd.RegisterFlagCompletionFunc("user", cobra.NoFileCompletions)
	return cmd
}

func (f *execFlags) run(ctx context.Context, t cmdline.Terminal, pod string, command []string) error {
	s, err := f.Session(pod, command, t.In)
	if err != nil {
		return cmdline.ExitWith(cmdline.ExitUsage, err)
	}
	c, err := f.Connect()
	if err != nil {
		return err
	}
	code, err := c.Stream(ctx, t, f.Namespace, s, reach.Notices{Pulls: !f.Quiet})
	if err != nil && f.Image == "" && f.Container == "" && ways.WantsContainer(err.Error()) {
		if s, err = f.defaulted(ctx, t, c, s.Pod, command); err != nil {
			return err
		}
		code, err = c.Stream(ctx, t, f.Namespace, s, reach.Notices{Pulls: !f.Quiet})
	}
	if err != nil && f.Image == "" {
		if advice := ways.ExecAdvice(err.Error(), s.Pod, f.Container); advice != "" {
			err = fmt.Errorf("%w\n%s", f.ended(ctx, c, s.Pod, err), advice)
		}
	}
	return cmdline.ExitWith(code, err)
}

// ended says of a container that has ended what it ended with, in place of the runtime's word for its state. Any other
// error stays as it is.
func (f *execFlags) ended(ctx context.Context, c *reach.Client, name string, err error) error {
	if !strings.Contains(err.Error(), "CONTAINER_EXITED") {
		return err
	}
	pod, perr := c.CoreV1().Pods(f.Namespace).Get(ctx, name, metav1.GetOptions{})
	if perr != nil {
		return fmt.Errorf("the container has ended (%w)", err)
	}
	container := f.Container
	if container == "" {
		container, _ = ways.Default(pod)
	}
	text := fmt.Sprintf("container %s of pod %s has ended", container, pod.Name)
	if s := podspec.FindStatus(&pod.Status, container); s != nil {
		if end := cmp.Or(s.State.Terminated, s.LastTerminationState.Terminated); end != nil {
			text += fmt.Sprintf(" (exit code %d)", end.ExitCode)
		}
	}
	return errors.New(text)
}

// defaulted is the request for the container that kubectl would take, of a pod that has several: the server does not
// choose.
func (f *execFlags) defaulted(ctx context.Context, t cmdline.Terminal, c *reach.Client, name string,
	command []string) (ask.Session, error) {
	pod, err := c.CoreV1().Pods(f.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return ask.Session{}, err
	}
	var note string
	if f.Container, note = ways.Default(pod); note != "" && !f.Quiet {
		fmt.Fprintln(t.Err, note)
	}
	return f.Session(name, command, t.In)
}
