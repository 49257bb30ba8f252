// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/poddebug"
	"github.com/wherryproject/wherry/internal/cli/session"
	"github.com/wherryproject/wherry/internal/debugask"
	"github.com/wherryproject/wherry/internal/podspec"
)

// debugFlags are what `wherry debug` is told.
type debugFlags struct {
	clientFlags
	ask.Debug
}

func newDebug(t Terminal) *cobra.Command {
	f := &debugFlags{}
	cmd := &cobra.Command{
		Use:   "debug POD [-- COMMAND [ARG...]]",
		Short: "Open a shell in a pod, whatever its images hold",
		Long: `Open a shell in a pod, whatever its images hold.

A debug container (an ephemeral container) is added to the pod and attached to. Without --image it is the built-in toolbox, which
needs no registry: shell, ps, ls, grep, find, vi, ip, ss, ping, nslookup, wget, nc, strace, nsenter and more. In a pod with one
main container it sees that container's processes, and its files under /proc/1/root.

Where nothing runs any more (the pod has ended, the container is in a crash loop) the shell opens beside the dead: every
container's last filesystem, with its volumes, is under /c/NAME; environment, exit evidence and last log lines are under
/c/.wherry/NAME. That shell leaves nothing in the pod, and lives when the container is started again.

Ctrl-P Ctrl-Q leaves the shell running; wherry debug -c NAME POD comes back to it. Every run is on record: wherry debug history.
A pod that is named like one of the commands below is given with -p.

The exit code is the command's; 125 if the session failed, 126 and 127 if the command could not be run or was not found, 1 if the
server refused.`,
		Example: `  wherry debug web                                   # a shell
  wherry debug web -- ss -tlnp                       # one command
  wherry debug web --target sidecar                  # see the processes of one container
  wherry debug web -m registry.example.com/tools:1 --profile sysadmin
  wherry debug web --ttl 30m                         # stopped after half an hour, whatever happens
  wherry debug -c debug web                          # back to a running one
  wherry debug ls                                    # who debugs what now
  wherry debug history web                           # who did, and how it ended`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && f.Pod == "" {
				return &Exit{exitUsage, errors.New("which pod? wherry debug POD, or -p POD")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Settle(cmd.Flags(), t.In)
			pod, command, err := podAndCommand(cmd, f.Pod, args)
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), t, pod, command)
		},
		ValidArgsFunction: f.completePods,
	}
	f.add(cmd)
	f.Debug.AddFlags(cmd.Flags())
	_ = cmd.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(debugask.Profiles(), cobra.ShellCompDirectiveNoFileComp))
	cmd.AddCommand(newDebugList(t, f), newDebugStop(t, f), newDebugHistory(t, f))
	return cmd
}

// podAndCommand splits the arguments of a command.
func podAndCommand(cmd *cobra.Command, pod string, args []string) (string, []string, error) {
	pod, command, err := ask.PodAndCommand(cmd.CommandPath(), pod, args, cmd.ArgsLenAtDash())
	if err != nil {
		return "", nil, &Exit{exitUsage, err}
	}
	return pod, command, nil
}

func (f *debugFlags) run(ctx context.Context, t Terminal, pod string, command []string) error {
	c, err := f.connect()
	if err != nil {
		return err
	}
	if f.Container == "" {
		// Ask at once, and look at the pod only if the server says otherwise.
		code, err := f.request(ctx, t, c, debugask.FirstName, f.First(pod, command))
		if !apierrors.IsAlreadyExists(err) && !isDead(err) {
			return f.over(ctx, t, c, pod, debugask.FirstName, code, err)
		}
	}
	return f.choose(ctx, t, c, pod, command)
}

// choose looks at the pod and gets in as suits its state.
func (f *debugFlags) choose(ctx context.Context, t Terminal, c *client, name string, command []string) error {
	for tries := 0; ; tries++ {
		pod, err := c.CoreV1().Pods(f.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		choice, err := poddebug.Choose(pod, poddebug.Wish{Name: f.Container, Image: f.Image, Target: f.Target, Command: len(command) > 0})
		if err != nil {
			return err
		}
		switch choice.Way {
		case poddebug.Attach:
			return f.attach(ctx, t, c, pod, choice.Name)
		case poddebug.Visit:
			return f.visit(ctx, t, c, pod, command)
		}
		code, err := f.request(ctx, t, c, choice.Name, f.Add(name, choice.Name, command))
		if f.Container == "" && apierrors.IsAlreadyExists(err) && tries < 10 {
			continue // somebody took the name meanwhile
		}
		return f.over(ctx, t, c, name, choice.Name, code, err)
	}
}

// request makes a debug container and attaches to it (DC-03).
func (f *debugFlags) request(ctx context.Context, t Terminal, c *client, name string, s ask.Session) (code int, err error) {
	return c.stream(ctx, t, f.Namespace, s, func() { f.say(t, "%s", f.Announcement(s.Pod, name)) })
}

// isDead tells whether the server refused because what is to be looked at is over.
func isDead(err error) bool {
	var refused apierrors.APIStatus
	if !errors.As(err, &refused) || refused.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(refused.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Type == debugask.CauseDead })
}

// attach comes back to a debug container that runs (DC-07).
func (f *debugFlags) attach(ctx context.Context, t Terminal, c *client, pod *corev1.Pod, name string) error {
	for i := range pod.Spec.EphemeralContainers {
		if e := &pod.Spec.EphemeralContainers[i]; e.Name == name {
			f.TTY = e.TTY
		}
	}
	f.say(t, "attaching to debug container %s in pod %s", name, pod.Name)
	code, err := c.stream(ctx, t, f.Namespace, f.Attach(pod.Name, name, f.TTY), nil)
	return f.over(ctx, t, c, pod.Name, name, code, err)
}

// visit runs the command beside the pod's containers, which need not run (IX-09).
func (f *debugFlags) visit(ctx context.Context, t Terminal, c *client, pod *corev1.Pod, command []string) error {
	f.say(t, "nothing runs in pod %s that a debug container could join: files are under /c/NAME, evidence under /c/.wherry/NAME", pod.Name)
	for _, line := range poddebug.Evidence(pod, time.Now()) {
		f.say(t, "  %s", line)
	}
	return exitWith(c.stream(ctx, t, f.Namespace, f.Visit(pod.Name, command), nil))
}

// over ends a session with a debug container: with its exit code, or the way back to it.
func (f *debugFlags) over(ctx context.Context, t Terminal, c *client, pod, name string, code int, err error) error {
	left := errors.Is(err, session.ErrDetached)
	if err != nil && !left {
		if end := f.toldByLog(ctx, t, c, pod, name, err); end != nil {
			return exitWith(int(end.ExitCode), nil)
		}
		return exitWith(code, err)
	}
	if left {
		fmt.Fprintln(t.Err)
	}
	if f.Remove {
		if err := stopDebug(ctx, c, f.Namespace, pod, name); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	if left {
		if !f.Remove {
			f.say(t, "left it running; back: %s", f.wayBack(pod, name))
		}
		return nil
	}
	end, err := awaitEnd(ctx, c, f.Namespace, pod, name)
	if err != nil {
		return &Exit{session.ExitFailed, err}
	}
	if end == nil { // the line was lost, or somebody's EOF ended this session only
		f.say(t, "the session has ended, the debug container runs; back: %s", f.wayBack(pod, name))
		return nil
	}
	return exitWith(int(end.ExitCode), nil)
}

// toldByLog is for a container that had ended before anybody could attach: a runtime that keeps no output for that has it in the
// log all the same. It returns nil if the error is about something else.
func (f *debugFlags) toldByLog(ctx context.Context, t Terminal, c *client, pod, name string, err error) *corev1.ContainerStateTerminated {
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) {
		return nil // nothing was made: what has ended is an earlier run of the name
	}
	p, gerr := c.CoreV1().Pods(f.Namespace).Get(ctx, pod, metav1.GetOptions{})
	if gerr != nil {
		return nil
	}
	end := podspec.DebugStateOf(p, name).Terminated
	if end == nil || end.StartedAt.IsZero() {
		return nil // it never ran
	}
	log, lerr := c.CoreV1().Pods(f.Namespace).GetLogs(pod, &corev1.PodLogOptions{Container: name}).DoRaw(ctx)
	if lerr != nil {
		return nil
	}
	_, _ = t.Out.Write(log)
	return end
}

func (f *debugFlags) wayBack(pod, name string) string {
	namespace := ""
	if f.Namespace != metav1.NamespaceDefault {
		namespace = "-n " + f.Namespace + " "
	}
	return fmt.Sprintf("wherry debug %s-c %s %s", namespace, name, pod)
}

func (f *debugFlags) say(t Terminal, format string, args ...any) {
	if f.Talks(t.Err) {
		fmt.Fprintf(t.Err, format+"\n", args...)
	}
}

// exitWith makes a command's exit code the program's.
func exitWith(code int, err error) error {
	if code == 0 && err == nil {
		return nil
	}
	return &Exit{code, err}
}
