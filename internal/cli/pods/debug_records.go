// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/onhost"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/debug/ways"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
	"github.com/wherryproject/wherry/internal/oneline"
	"github.com/wherryproject/wherry/internal/podspec"
)

// endPatience is how long a node may take to say how a debug container has ended whose streams have: it is the last of
// the two to be heard of, and a machine that has much else to do takes its time. Nothing but the node knows the exit
// code, so that there is nothing else to be told before.
const endPatience = time.Minute

// silence is how long a user waits for it without being told.
const silence = 2 * time.Second

// awaitEnd returns how the run of a debug container ended that was asked for with the word request, or any run of it if
// there was none, and why if it was ended from outside; nil if nobody has said so in time, be it that it still runs.
// Then nothing is known of its exit code, which is not the same as success.
func awaitEnd(ctx context.Context, c *reach.Client, namespace, pod, name,
	request string) (end *corev1.ContainerStateTerminated, why string, err error) {
	within, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	p, err := c.CoreV1().Pods(namespace).Get(within, pod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, "", fmt.Errorf("the session has ended: pod %s was deleted", pod)
	}
	if err != nil {
		return nil, "", err
	}
	uid, gone := p.UID, false
	look := func() (done bool, err error) {
		switch {
		case gone || p.UID != uid:
			return true, fmt.Errorf("the session has ended: pod %s was deleted", pod)
		case ways.Replaced(p, name, request):
			return true, replaced(pod, name)
		}
		return !mayEnd(podspec.DebugStateOf(p, name).Phase), nil
	}
	done, err := look()
	if !done {
		_, err = watchtools.Until(within, p.ResourceVersion, watchOf(c, namespace, pod),
			func(e watch.Event) (bool, error) {
				if now, ok := e.Object.(*corev1.Pod); ok {
					p, gone = now, e.Type == watch.Deleted
				}
				return look()
			})
	}
	switch {
	case ctx.Err() != nil:
		return nil, "",
			cmdline.CalledOffBy(ctx, ctx.Err(), "the session has ended, and the exit code of its command is not known")
	case err != nil && within.Err() == nil:
		return nil, "", err
	}
	return podspec.DebugStateOf(p, name).Terminated, ways.WhyEnded(p, name), nil
}

// awaitEnd is awaitEnd for the session of the command; its user is told when it takes long.
func (f *debugFlags) awaitEnd(ctx context.Context, t cmdline.Terminal, c *reach.Client, pod,
	name string) (*corev1.ContainerStateTerminated, string, error) {
	var telling sync.WaitGroup
	said := make(chan struct{})
	telling.Go(func() {
		select {
		case <-said:
		case <-time.After(silence):
			f.say(t, "the session has ended; waiting for the node to report the exit code of debug container %s", name)
		}
	})
	defer telling.Wait()
	defer close(said)
	return awaitEnd(ctx, c, f.Namespace, pod, name, f.Request)
}

// awaitStart waits until a debug container runs, has ended or cannot start, and says meanwhile what it waits for
// (DC-07).
func (f *debugFlags) awaitStart(ctx context.Context, t cmdline.Terminal, c *reach.Client, p *corev1.Pod,
	name string) error {
	f.say(t, "waiting for debug container %s in pod %s to start", name, p.Name)
	shown := podspec.DebugStateOf(p, name).Reason
	_, err := watchtools.Until(ctx, p.ResourceVersion, watchOf(c, p.Namespace, p.Name),
		func(e watch.Event) (bool, error) {
			now, ok := e.Object.(*corev1.Pod)
			if !ok {
				return false, nil
			}
			if e.Type == watch.Deleted || now.UID != p.UID {
				return false, fmt.Errorf("debug container %s has not started: pod %s was deleted", name, p.Name)
			}
			if why := podspec.DebugStateOf(now, name).Reason; why != shown && ways.Starting(now, name) {
				shown = why
				f.say(t, "  %s", why)
			}
			return !ways.Starting(now, name), nil
		})
	return err
}

func replaced(pod, name string) error {
	return fmt.Errorf("cannot tell how this session ended: debug container %s of pod %s has been started again since; see wherry debug history %s", name, pod, pod)
}

// mayEnd reports whether the end of a container is still to be shown. A session may have come and gone before as much
// as its beginning is.
func mayEnd(p podspec.DebugPhase) bool {
	return p == podspec.DebugRunning || p == podspec.DebugPending
}

// podWatch watches one pod.
type podWatch struct {
	c               *reach.Client
	namespace, name string
}

func watchOf(c *reach.Client, namespace, name string) *podWatch { return &podWatch{c, namespace, name} }

// WatchWithContext implements cache.WatcherWithContext.
func (w *podWatch) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.FieldSelector = fields.OneTermEqualSelector("metadata.name", w.name).String()
	return w.c.CoreV1().Pods(w.namespace).Watch(ctx, o)
}

// Watch implements cache.Watcher.
func (w *podWatch) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return w.WatchWithContext(context.Background(), o)
}

func newDebugStop(t cmdline.Terminal, f *debugFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "stop POD NAME...",
		Short: "Stop running debug containers of a pod, or debug sessions of a container of this machine",
		Long: `Stop running debug containers of a pod, whose records are kept; or, with docker:NAME or another target of this machine instead of
POD and NAME, all of its debug sessions, which wherry ps --sessions lists.`,
		Example: `  wherry debug stop web debug
  sudo wherry debug stop docker:web`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && strings.Contains(args[0], ":") {
				return cobra.ExactArgs(1)(cmd, args)
			}
			return cobra.MinimumNArgs(2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			to, onHost, err := target.Parse(args[0])
			if err != nil {
				return cmdline.ExitWith(cmdline.ExitUsage, err)
			}
			if onHost {
				return onhost.Stop(t, to)
			}
			c, err := f.Connect()
			if err != nil {
				return err
			}
			foreign, err := c.Elsewhere(cmd.Context())
			if err != nil {
				return err
			}
			stop, what := stopDebug, "debug container"
			if foreign != nil && foreign.Serves {
				stop, what = stopSession, "debug session"
			}
			var failed []error // one that cannot be stopped keeps none of the others
			for _, name := range args[1:] {
				if err := stop(cmd.Context(), c, f.Namespace, reach.PodName(args[0]), name); err != nil {
					failed = append(failed, c.RoleAdvice(cmd.Context(), err, wire.Sessions, f.Namespace))
					continue
				}
				fmt.Fprintf(t.Out, "%s %s of pod %s stopped\n", what, name, reach.PodName(args[0]))
			}
			return errors.Join(failed...)
		},
		ValidArgsFunction: f.CompletePods,
	}
}

// stopDebug stops a debug container and waits until it has ended (DC-08).
func stopDebug(ctx context.Context, c *reach.Client, namespace, pod, name string) error {
	return c.CoreV1().RESTClient().Delete().Namespace(namespace).Resource("pods").Name(pod).SubResource(debugrun.Subresource, name).Do(ctx).Error()
}

func newDebugHistory(t cmdline.Terminal, f *debugFlags) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "history [POD]",
		Short: "Show who debugged a pod, with what, when, and how it ended, even for deleted pods",
		Example: `  wherry debug history web
  wherry debug history -o json | jq '.items[].spec.user'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.Connect()
			if err != nil {
				return err
			}
			foreign, err := c.Elsewhere(cmd.Context())
			if err != nil {
				return err
			}
			if foreign != nil && foreign.Serves {
				pod := ""
				if len(args) == 1 {
					pod = reach.PodName(args[0])
				}
				list, err := beforeElsewhere(cmd.Context(), c, f.Namespace, pod)
				if err != nil {
					return err
				}
				return printDebugRuns(t, list, output)
			}
			records, err := debugrun.NewClient(c.Config)
			if err != nil {
				return err
			}
			which := metav1.ListOptions{}
			if len(args) == 1 {
				which = debugrun.OfPod(reach.PodName(args[0]))
			}
			list, err := records.List(cmd.Context(), f.Namespace, which)
			if err != nil {
				return err
			}
			slices.SortStableFunc(list.Items,
				func(a, b debugrun.DebugRun) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
			return printDebugRuns(t, list, output)
		},
		ValidArgsFunction: f.CompletePods,
	}
	cmdline.OutputFlag(cmd, &output)
	return cmd
}

func printDebugRuns(t cmdline.Terminal, list *debugrun.DebugRunList, output string) error {
	if output != "" {
		for i := range list.Items { // in a list of the API the items say no kind; read one by one they should
			list.Items[i].SetGroupVersionKind(debugrun.GroupVersion().WithKind("DebugRun"))
		}
		return cmdline.PrintAs(t, output, list)
	}
	table := cmdline.Table{None: "No debug runs found.", Head: []string{"WHEN", "USER", "POD", "KIND", "CONTAINER",
		"IMAGE", "TARGET", "COMMAND", "TOOK", "EXIT"}}
	for i := range list.Items {
		r := &list.Items[i]
		table.Add(r.CreationTimestamp.UTC().Format(time.RFC3339), r.Spec.User, r.Spec.Pod.Name, string(r.Spec.Kind),
			r.Spec.Container, r.Spec.Image, r.Spec.Target, shownCommand(r.Spec), took(r.Status), exitOf(r.Status))
	}
	return table.Print(t)
}

// maxShown bounds a command in a table; -o json has all of it.
const maxShown = 40

// shownCommand is a run's command as a table has it.
func shownCommand(run debugrun.DebugRunSpec) string {
	command := slices.Concat(run.Command, run.Args)
	if run.Kind == debugrun.EphemeralContainer { // in a container's spec, Kubernetes has its own use for the dollar
		command = ask.PlainWords(command...)
	}
	return cmdline.DashIfNone(oneline.Cut(strings.Join(command, " "), maxShown))
}

func took(s debugrun.DebugRunStatus) string {
	if s.StartedAt == nil || s.FinishedAt == nil {
		return "-"
	}
	return s.FinishedAt.Sub(s.StartedAt.Time).Round(time.Second).String()
}

func exitOf(s debugrun.DebugRunStatus) string {
	switch {
	case s.ExitCode != nil:
		return fmt.Sprint(*s.ExitCode)
	case s.FinishedAt != nil:
		return cmdline.DashIfNone(s.Reason)
	case s.StartedAt != nil:
		return "running"
	}
	return cmdline.DashIfNone(s.Reason)
}
