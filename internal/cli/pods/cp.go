// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"syscall"

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
	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/debug/ways"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
	"github.com/wherryproject/wherry/internal/podspec"
)

// cpFlags are the flags of `wherry cp`.
type cpFlags struct {
	reach.Flags
	host      onhost.Flags
	container string
	user      string
	quiet     bool
	givenUp   givenUp
}

// NewCp returns wherry cp.
func NewCp(t cmdline.Terminal) *cobra.Command {
	f := &cpFlags{givenUp: newGivenUp()}
	cmd := &cobra.Command{
		Use:   "cp SOURCE... DESTINATION",
		Short: "Copy files to and from containers, even dead ones and ones without tar",
		Long: `Copy a file or folder from a container, or to one. Either the source or the destination is POD:PATH or NAMESPACE/POD:PATH, where
deployment/NAME and the like in place of POD mean its newest running pod (NAMESPACE/deployment/NAME in another namespace);
or, for a container of this machine, docker:NAME:PATH and so on (see wherry debug --help).

The container needs no tar and no shell, and need not be running: the command uses the filesystem of its last run, including volumes.
If the destination is an existing folder, files are copied into it; otherwise the destination is the name of the copy. FOLDER/. means
the contents of a folder, without the folder itself. The last part of a path in a pod may be a pattern (*.log); several matches, like several
sources, need an existing folder. With - as the destination, a tar archive is written to standard output; with - as the source, one is read
from standard input and unpacked into an existing folder.

Modes, times and links are preserved; files are owned by you on this machine and by root in the container. Existing files are replaced
once the copy is complete: an interrupted copy leaves them as they were. If the connection is lost, the copy continues by itself from
where it was, as soon as the server is back; what had arrived is not sent twice, and its checksum is compared. If the server stays away for a
minute, the command says how far it got; the same command continues a copy into a pod from there, within ten minutes.

Symbolic links are not followed out of the container. /dev, /proc and /sys, which a container has from the kernel, cannot be copied from or
to, and a file never replaces a device, pipe or socket.`,
		Example: `  wherry cp web:/etc/nginx/nginx.conf .
  wherry cp web:/var/lib/data ./data -c db
  wherry cp ./fixed.conf web:/etc/app/app.conf
  wherry cp deployment/web:/var/log/app.log .            # of the newest running pod of a Deployment
  wherry cp crashed:/tmp/core.1 .                        # a container in a crash loop
  wherry cp 'web:/var/log/*.log' ./logs
  wherry cp web:/srv - | tar -tv
  sudo wherry cp docker:web:/etc/nginx .                 # a container of Docker, without a server
  tar -c conf.d | wherry cp - web:/etc/app`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return f.all(ctx, t, args[:len(args)-1], args[len(args)-1])
		},
	}
	f.AddTo(cmd)
	f.host.AddAddress(cmd.Flags())
	cmd.Flags().StringVarP(&f.container, "container", "c", "",
		"the container; default: the pod's default container, or its first")
	cmd.Flags().StringVarP(&f.user, "user", "u", "",
		"read and write as this user, UID or UID:GID; default: root, or the container's user if the pod must not run as root")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "do not show progress")
	_ = cmd.RegisterFlagCompletionFunc("container", f.CompleteContainers(reach.AnyContainer))
	_ = cmd.RegisterFlagCompletionFunc("user", cobra.NoFileCompletions)
	return cmd
}

// all copies several sources one after the other. They go into a folder, which is refused where it is not one.
func (f *cpFlags) all(ctx context.Context, t cmdline.Terminal, sources []string, destination string) error {
	if len(sources) > 1 && destination != "-" && !strings.HasSuffix(destination, "/") {
		destination += "/"
	}
	if len(sources) > 1 && (destination == "-" || slices.Contains(sources, "-")) {
		return cmdline.ExitWith(cmdline.ExitUsage,
			errors.New("- is a single archive: give one source and one destination with it"))
	}
	if _, err := debugask.ParseUser(f.user); err != nil {
		return cmdline.ExitWith(cmdline.ExitUsage, fmt.Errorf("--user: %w", err))
	}
	if destination == "-" && plain.IsTerminal(t.Out) {
		return cmdline.ExitWith(cmdline.ExitUsage,
			errors.New("an archive cannot be written to a terminal: pipe it on, for example to tar -tv, or redirect it to a file"))
	}
	copies := make([]copyOf, len(sources))
	for i, source := range sources { // all are judged before the first is made
		var err error
		if copies[i], err = parseCopy(source, destination); err != nil {
			return err
		}
	}
	for _, c := range copies {
		if err := f.run(ctx, t, c); err != nil {
			return err
		}
	}
	return nil
}

// copyOf is one copy: of its places one is remote.
type copyOf struct{ from, to, remote place }

func parseCopy(source, destination string) (c copyOf, err error) {
	if c.from, err = parsePlace(source); err != nil {
		return c, cmdline.ExitWith(cmdline.ExitUsage, err)
	}
	if c.to, err = parsePlace(destination); err != nil {
		return c, cmdline.ExitWith(cmdline.ExitUsage, err)
	}
	switch {
	case c.from.remote() && c.to.remote():
		return c, cmdline.ExitWith(cmdline.ExitUsage,
			errors.New("one side must be on this machine; from pod to pod: wherry cp POD:PATH - | wherry cp - POD:FOLDER"))
	case c.from.remote():
		c.remote = c.from
	case c.to.remote():
		c.remote = c.to
	default:
		return c, cmdline.ExitWith(cmdline.ExitUsage,
			errors.New("either the source or the destination must be in a pod (POD:PATH), and the other on this machine"))
	}
	return c, checkKernels(c.from, c.to)
}

func (f *cpFlags) run(ctx context.Context, t cmdline.Terminal, one copyOf) error {
	if one.remote.host != nil {
		return f.onHost(ctx, t, one.from, one.to, *one.remote.host)
	}
	if err := f.host.Given(); err != nil {
		return err
	}
	c, err := f.Connect()
	if err != nil {
		return err
	}
	namespace := cmp.Or(one.remote.namespace, f.Namespace)
	name, note, err := f.PodMeant(ctx, namespace, one.remote.pod)
	if err != nil {
		return err
	}
	if note != "" && !f.quiet {
		fmt.Fprintln(t.Err, plain.Text(note))
	}
	pod, err := c.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		right := wire.Files
		if one.to.remote() {
			right = wire.Shell // of the same role as to write files
		}
		return c.RoleAdvice(ctx, f.OrOthers(ctx, namespace, name, err), right, namespace)
	}
	container, err := chosenContainer(pod, f.container)
	if err != nil {
		return err
	}
	o := other{id: string(pod.UID), container: container, words: fmt.Sprintf("container %s of pod %s", container,
		pod.Name),
		life: func(ctx context.Context) (string, error) { return lifeOf(ctx, c, pod, container) },
		run: func(ctx context.Context, t cmdline.Terminal, a ask.Archive) (int, error) {
			return f.archive(ctx, t, c, pod, a)
		}}
	if err := f.between(ctx, t, o, one.from, one.to); err != nil {
		return err
	}
	if one.to.remote() && !podRuns(pod, container) {
		fmt.Fprintf(t.Err,
			"container %s of pod %s is not running: files copied outside a volume are lost when it restarts\n",
			container, pod.Name)
	}
	return nil
}

// other is the other side of a copy: a container.
type other struct {
	id        string // tells it from all others; "" where it is not known
	container string // its files are at /c/<container>
	words     string // that name it to the user
	// run makes an archive, which is the command's output, or unpacks one, which is its input.
	run func(ctx context.Context, t cmdline.Terminal, a ask.Archive) (code int, err error)
	// life names the container's present run; with another one its files may be others. It may be nil: there is no
	// connection that could be lost.
	life func(ctx context.Context) (string, error)
}

// between copies from a container, or to one.
func (f *cpFlags) between(ctx context.Context, t cmdline.Terminal, o other, from, to place) error {
	if from.remote() {
		return f.interrupted(ctx, f.out(ctx, t, o, from, to.path), from.path)
	}
	return f.interrupted(ctx, f.in(ctx, t, o, from.path, to), from.path)
}

// onHost copies from a container of this machine, or to one.
func (f *cpFlags) onHost(ctx context.Context, t cmdline.Terminal, from, to place, h target.Target) error {
	if f.container != "" {
		return cmdline.ExitWith(cmdline.ExitUsage,
			fmt.Errorf("-c names a container of a pod; %s is one already: leave it out", h))
	}
	c, err := f.host.Copier(ctx, h, f.user)
	if err != nil {
		return err
	}
	return f.between(ctx, t, other{container: c.Name, words: h.String(),
		run: func(ctx context.Context, t cmdline.Terminal, a ask.Archive) (int, error) {
			return c.Run(ctx, t, a.Unpack, a.Command()...)
		}}, from, to)
}

// interrupted says that a copy was called off by the user, whatever came of that.
func (f *cpFlags) interrupted(ctx context.Context, err error, what string) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return cmdline.ExitWith(session.ExitInterrupted, fmt.Errorf("interrupted: %s was not copied completely", what))
}

// podRuns reports whether a container of a pod runs.
func podRuns(pod *corev1.Pod, container string) bool {
	s := podspec.FindStatus(&pod.Status, container)
	return s != nil && s.State.Running != nil
}

// chosenContainer is the container that is named, else the one that kubectl takes.
func chosenContainer(pod *corev1.Pod, name string) (string, error) {
	if name == "" {
		name, _ = ways.Default(pod)
		return name, nil
	}
	if _, ok := podspec.FindContainer(&pod.Spec, name); !ok {
		var names []string
		for ref := range podspec.Containers(&pod.Spec) {
			names = append(names, ref.Container.Name)
		}
		return "", fmt.Errorf("pod %s has no container %s: it has %s", pod.Name, name, strings.Join(names, ", "))
	}
	return name, nil
}

// archive is a request for an archive of the container's files, out or in.
func (f *cpFlags) archive(ctx context.Context, t cmdline.Terminal, c *reach.Client, pod *corev1.Pod,
	a ask.Archive) (code int, err error) {
	if a.After != "" {
		if _, err := lifeOf(ctx, c, pod, a.Container); err != nil {
			return session.ExitFailed, err
		}
	}
	code, err = c.Stream(ctx, t, pod.Namespace, ask.Toolbox{Pod: pod.Name, User: f.user, UserOf: a.Container,
		Stdin: t.In != nil, Archive: &a}.Session(), reach.Notices{})
	if apierrors.IsNotFound(err) || session.RefusedByNode(err) {
		if _, gone := lifeOf(ctx, c, pod, a.Container); gone == nil {
			err = notYet{err}
		}
	}
	return code, err
}

// lifeOf is the present run of a container: of the pod that was meant in the beginning, for another of its name has
// other files.
func lifeOf(ctx context.Context, c *reach.Client, pod *corev1.Pod, container string) (string, error) {
	now, err := c.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if now.UID != pod.UID {
		return "", fmt.Errorf("pod %s was replaced by another of its name while it was copied", pod.Name)
	}
	if s := podspec.FindStatus(&now.Status, container); s != nil {
		return s.ContainerID, nil
	}
	return "", nil
}

// outcome is how a command has ended that has printed its errors itself.
func outcome(code int, err error) error {
	if err == nil && code != 0 {
		return &cmdline.Exit{Code: 1}
	}
	return cmdline.ExitWith(code, err)
}

func (f *cpFlags) skipped(t cmdline.Terminal) func(path, why string) {
	return func(path, why string) { fmt.Fprintf(t.Err, "skipped %s: %s\n", path, why) }
}
