// SPDX-License-Identifier: Apache-2.0

package pods

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
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/onhost"
	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/cli/session"
	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/debug/ways"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
	"github.com/wherryproject/wherry/internal/podspec"
)

// debugFlags are the flags of `wherry debug`.
type debugFlags struct {
	reach.Flags
	ask.Debug
	host     onhost.Flags
	writable bool
}

const debugLong = `Open a shell in a pod, or in a container of this machine, whatever its images contain. TARGET is one of

` + target.Help + `

For a pod, the command adds a debug container (an ephemeral container) to the pod and attaches to it. The default image is the built-in toolbox,
which needs no registry: shell, ps, ls, grep, find, vi, ip, ss, ping, nslookup, wget, nc, strace, nsenter and more. In a pod with one
main container it sees that container's processes, and its files under /proc/1/root.

If nothing is running (the pod has ended, or the container is in a crash loop), the shell gives you what the containers left behind:
the last filesystem of each, including volumes, is under /c/NAME; its environment, exit status and last log lines are under
/c/.wherry/NAME. This shell leaves nothing behind in the pod, and survives a restart of the container.

It runs as root by default; in a pod that must not run as root, as the user of its target container; with --user, as that user.

Ctrl-P Ctrl-Q leaves the shell running; wherry debug -c NAME POD reattaches to it, and never creates one. If it is still starting, the
command waits. With an image or a command, -c names a new one. Every run is recorded: wherry debug history. Use -p for a pod that has the same name as one of the commands below.
With node/NAME instead of a pod, the shell is on the node itself, with the node's files under /host.

On a cluster that is not Wherry's, if wherry cluster install has been run there, the debugger runs beside the pod, which is not changed; the
files of its target are under /c/NAME there, too. Otherwise the command works like kubectl debug, and says so.

A target of this machine (docker: and so on) needs root and no server. The shell joins its namespaces; its files, including volumes,
are under /c/NAME, read-only without --writable, and what is known of it is under /c/.wherry/NAME, even after it has exited. The container
is not changed, and the session leaves nothing behind.

The exit code is the command's; 125 if the session failed, 126 or 127 if the command could not be run or was not found, 1 if the server
refused.`

const debugExample = `  wherry debug web                                   # a shell
  wherry debug web -- ss -tlnp                       # one command
  wherry debug web --target sidecar                  # see the processes of one container
  wherry debug web -m registry.example.com/tools:1 --profile sysadmin
  wherry debug web --ttl 30m                         # stop it after half an hour, whatever happens
  wherry debug -c debug web                          # reattach to a running one
  wherry debug deployment/web                        # the newest running pod of a Deployment
  wherry debug node/vm                               # the node itself; its files are under /host
  sudo wherry debug docker:web                       # a container of Docker; its files are under /c/web
  wherry debug ls                                    # who is debugging what now
  wherry debug history web                           # who did so before, and how it ended`

// NewDebug returns wherry debug. kubectl is kubectl's own command, for servers that are not Wherry's.
func NewDebug(t cmdline.Terminal, kubectl func(args ...string) int) *cobra.Command {
	f := &debugFlags{}
	cmd := &cobra.Command{
		Use:     "debug TARGET [-- COMMAND [ARG...]]",
		Short:   "Open a shell in a pod or container, whatever its images contain",
		Long:    debugLong,
		Example: debugExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && f.Pod == "" {
				return cmdline.ExitWith(cmdline.ExitUsage,
					errors.New("no pod given: use wherry debug POD, or -p POD; wherry debug --help shows what else can be debugged"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.debug(cmd, t, kubectl, args)
		},
		ValidArgsFunction: f.host.Complete(f.CompletePods),
	}
	f.AddTo(cmd)
	f.Debug.AddFlags(cmd.Flags())
	f.host.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&f.writable, "writable", false,
		"on this machine or beside a cluster's pod: let the shell write to the target's files under /c")
	_ = cmd.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(debugask.Profiles(),
		cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("container", f.CompleteContainers(reach.EphemeralOnes))
	_ = cmd.RegisterFlagCompletionFunc("target", f.CompleteContainers(reach.OwnContainers))
	_ = cmd.RegisterFlagCompletionFunc("user", cobra.NoFileCompletions)
	cmd.AddCommand(newDebugList(t, f), newDebugStop(t, f), newDebugHistory(t, f))
	return cmd
}

// debug debugs what the arguments name: a target of this machine, a node, or a pod.
func (f *debugFlags) debug(cmd *cobra.Command, t cmdline.Terminal, kubectl func(args ...string) int,
	args []string) error {
	f.Request = t.Had.Param(debugask.ParamRequest) // what the short program has asked for is this command's
	if err := f.Complete(cmd.Flags(), t.In); err != nil {
		return cmdline.ExitWith(cmdline.ExitUsage, err)
	}
	pod, command, err := podAndCommand(cmd, f.Pod, args)
	if err != nil {
		return err
	}
	to, onHost, err := target.Parse(pod)
	if err != nil {
		return cmdline.ExitWith(cmdline.ExitUsage, err)
	}
	if onHost {
		return f.host.Debug(cmd.Context(), t, to, &f.Debug, f.writable, command)
	}
	if node := nodeMeant(pod); node != "" {
		if err := f.notOnHost(); err != nil {
			return err
		}
		return f.node(cmd.Context(), t, node, command)
	}
	return f.pod(cmd.Context(), t, kubectl, pod, command)
}

// pod debugs a pod: the server's way, the way beside it on another cluster, or kubectl's.
func (f *debugFlags) pod(ctx context.Context, t cmdline.Terminal, kubectl func(args ...string) int, name string,
	command []string) error {
	pod, note, err := f.PodMeant(ctx, "", name)
	if err != nil {
		return err
	}
	if note != "" && !f.Quiet {
		fmt.Fprintln(t.Err, plain.Text(note))
	}
	if err := f.flagsElsewhere(ctx); err != nil {
		return err
	}
	err = f.run(ctx, t, pod, command)
	if foreign, ok := errors.AsType[*reach.Foreign](err); ok {
		err = f.elsewhere(ctx, t, kubectl, foreign, pod, command)
		return f.OrOthers(ctx, "", pod, err)
	}
	return f.host.Hint(ctx, pod, f.OrOthers(ctx, "", pod, err))
}

// notOnHost refuses flags that mean nothing for a pod or a node.
func (f *debugFlags) notOnHost() error {
	if f.writable {
		return cmdline.ExitWith(cmdline.ExitUsage,
			errors.New("--writable only applies to containers of this machine; in a pod, a shell can write to the files under /proc/1/root, and wherry exec -m IMAGE --writable to those under /c"))
	}
	return f.host.Given()
}

// podAndCommand splits the arguments of a command.
func podAndCommand(cmd *cobra.Command, pod string, args []string) (string, []string, error) {
	pod, command, err := ask.PodAndCommand(cmd.CommandPath(), pod, args, cmd.ArgsLenAtDash())
	if err != nil {
		return "", nil, cmdline.ExitWith(cmdline.ExitUsage, err)
	}
	return pod, command, nil
}

func (f *debugFlags) run(ctx context.Context, t cmdline.Terminal, pod string, command []string) error {
	c, err := f.Connect()
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
func (f *debugFlags) choose(ctx context.Context, t cmdline.Terminal, c *reach.Client, name string,
	command []string) error {
	for tries := 0; ; tries++ {
		pod, err := c.CoreV1().Pods(f.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		choice, err := ways.Choose(pod, ways.Request{Name: f.Container, Image: f.Image, Target: f.Target,
			Command: len(command) > 0, Made: f.Makes()})
		if err != nil {
			return err
		}
		switch choice.Way {
		case ways.Await:
			if err := f.awaitStart(ctx, t, c, pod, choice.Name); err != nil {
				return err
			}
			continue
		case ways.Attach:
			return f.attach(ctx, t, c, pod, choice.Name)
		case ways.Visit:
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
func (f *debugFlags) request(ctx context.Context, t cmdline.Terminal, c *reach.Client, name string,
	s ask.Session) (code int, err error) {
	end := "\n"
	if s.TTY { // the terminal is in raw mode when the server answers
		end = "\r\n"
	}
	notices := reach.Notices{Pulls: !f.Quiet, Before: func() { f.say(t, "%s", f.Announcement(s.Pod, name)) }}
	if f.Talks(t.Err) {
		notices.Note = func(text string) { fmt.Fprint(plain.Own(t.Err), plain.Text(text)+end) }
	}
	return c.Stream(ctx, t, f.Namespace, s, notices)
}

// isDead reports whether the server refused because what is to be looked at is over.
func isDead(err error) bool {
	var refused apierrors.APIStatus
	if !errors.As(err, &refused) || refused.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(refused.Status().Details.Causes,
		func(c metav1.StatusCause) bool { return c.Type == debugask.CauseDead })
}

// attach comes back to a debug container that runs (DC-07).
func (f *debugFlags) attach(ctx context.Context, t cmdline.Terminal, c *reach.Client, pod *corev1.Pod,
	name string) error {
	if e := podspec.FindEphemeral(pod, name); e != nil {
		f.TTY = e.TTY
	}
	f.say(t, "attaching to debug container %s in pod %s", name, pod.Name)
	code, err := c.Stream(ctx, t, f.Namespace, f.Attach(pod.Name, name, f.TTY), reach.Notices{})
	f.Request = "" // the run is somebody else's, or one from before
	return f.over(ctx, t, c, pod.Name, name, code, err)
}

// visit runs the command beside the pod's containers, which need not run (IX-09).
func (f *debugFlags) visit(ctx context.Context, t cmdline.Terminal, c *reach.Client, pod *corev1.Pod,
	command []string) error {
	f.say(t,
		"nothing is running in pod %s that a debug container could join: files are under /c/NAME, evidence is under /c/.wherry/NAME", pod.Name)
	if f.Talks(t.Err) {
		for _, line := range ways.Evidence(pod, time.Now(), lastWords(ctx, c, pod)) {
			f.say(t, "  %s", line)
		}
	}
	return cmdline.ExitWith(c.Stream(ctx, t, f.Namespace, f.Visit(pod.Name, command), reach.Notices{Pulls: !f.Quiet}))
}

// wordsTime bounds the wait for last words, which are an extra.
const wordsTime = 2 * time.Second

// lastWords are the last lines of the logs of those who died without a message.
func lastWords(ctx context.Context, c *reach.Client, pod *corev1.Pod) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, wordsTime)
	defer cancel()
	words := map[string]string{}
	for _, name := range ways.Dead(pod) {
		text, err := c.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name,
			&corev1.PodLogOptions{Container: name, TailLines: new(int64(3))}).DoRaw(ctx)
		if err == nil { // else there is nothing to say
			words[name] = string(text)
		}
	}
	return words
}

// over ends a session with a debug container: with its exit code, or the way back to it.
func (f *debugFlags) over(ctx context.Context, t cmdline.Terminal, c *reach.Client, pod, name string, code int,
	err error) error {
	left := errors.Is(err, session.ErrDetached)
	if err != nil && !left {
		if end := f.endedByLog(ctx, t, c, pod, name); end != nil {
			return cmdline.ExitWith(int(end.ExitCode), nil)
		}
		if advice := ways.SecurityAdvice(err.Error(), f.Profile, pod, name); advice != "" {
			err = fmt.Errorf("%w\n%s", err, advice)
		}
		return cmdline.ExitWith(code, err)
	}
	if left {
		fmt.Fprintln(t.Err)
	}
	if f.Remove {
		if err := stopDebug(ctx, c, f.Namespace, pod, name); err != nil && !apierrors.IsNotFound(err) &&
			!apierrors.IsConflict(err) {
			return err
		}
	}
	if left {
		if !f.Remove {
			f.say(t, "left running; to return: %s", f.wayBack(pod, name))
		}
		return nil
	}
	end, why, err := f.awaitEnd(ctx, t, c, pod, name)
	if exit, called := errors.AsType[*cmdline.Exit](err); called {
		return exit
	}
	if err != nil {
		return cmdline.ExitWith(session.ExitFailed, err)
	}
	if why != "" && !f.Quiet {
		f.reason(t, why)
	}
	// Its output is closed, or somebody's EOF ended this session only, or the node is late. An exit code of 0 would say
	// that the command went well, which nobody knows.
	if end == nil {
		return cmdline.ExitWith(session.ExitFailed, fmt.Errorf(
			"the session has ended, but the node has not reported the exit code of debug container %s within %s: if it is still running, return with %s; wherry debug ls %s shows its state",
			name, endPatience, f.wayBack(pod, name), pod))
	}
	return cmdline.ExitWith(int(end.ExitCode), nil)
}

// endedByLog is for a container that had ended before anybody could attach: a runtime that keeps no output for that has
// it in the log all the same. It is decided by the run, whatever the error is: one that did not begin with this
// command's word is somebody else's, and this command has made none. It returns nil then.
func (f *debugFlags) endedByLog(ctx context.Context, t cmdline.Terminal, c *reach.Client, pod,
	name string) *corev1.ContainerStateTerminated {
	p, err := c.CoreV1().Pods(f.Namespace).Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	end := ways.EndOf(p, name, f.Request)
	if end == nil || end.StartedAt.IsZero() {
		return nil // it is not this command's, or it never ran
	}
	log, err := c.CoreV1().Pods(f.Namespace).GetLogs(pod, &corev1.PodLogOptions{Container: name}).DoRaw(ctx)
	if err != nil {
		return nil
	}
	out := plain.Output(t.Out)
	_, _ = out.Write(log)
	plain.Flush(out)
	return end
}

// reason says why a session has ended that its user did not end, on a line of its own: the cursor stands behind a
// prompt.
func (f *debugFlags) reason(t cmdline.Terminal, why string) {
	if f.TTY {
		fmt.Fprintln(t.Err)
	}
	fmt.Fprintf(t.Err, "the session has ended: %s\n", why)
}

func (f *debugFlags) wayBack(pod, name string) string {
	namespace := ""
	if f.Namespace != metav1.NamespaceDefault {
		namespace = "-n " + f.Namespace + " "
	}
	return fmt.Sprintf("wherry debug %s-c %s %s", namespace, name, pod)
}

func (f *debugFlags) say(t cmdline.Terminal, format string, args ...any) {
	if f.Talks(t.Err) {
		fmt.Fprintf(t.Err, format+"\n", args...)
	}
}
