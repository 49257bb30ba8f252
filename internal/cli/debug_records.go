// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/yaml"

	"github.com/wherryproject/wherry/internal/api/debugrun"
	"github.com/wherryproject/wherry/internal/podspec"
)

// endPatience is how long a debug container that was heard to end may take to be shown so.
const endPatience = 5 * time.Second

// awaitEnd returns how a debug container ended; nil if it still runs.
func awaitEnd(ctx context.Context, c *client, namespace, pod, name string) (*corev1.ContainerStateTerminated, error) {
	ctx, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	pods := c.CoreV1().Pods(namespace)
	p, err := pods.Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	state := podspec.DebugStateOf(p, name)
	if !mayEnd(state.Phase) {
		return state.Terminated, nil
	}
	lw := watchOf(c, namespace, pod)
	_, err = watchtools.Until(ctx, p.ResourceVersion, lw, func(e watch.Event) (bool, error) {
		if p, ok := e.Object.(*corev1.Pod); ok {
			state = podspec.DebugStateOf(p, name)
		}
		return !mayEnd(state.Phase) || e.Type == watch.Deleted, nil
	})
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	return state.Terminated, nil
}

// mayEnd tells whether the end of a container is still to be shown. A session may have come and gone before as much as its beginning is.
func mayEnd(p podspec.DebugPhase) bool {
	return p == podspec.DebugRunning || p == podspec.DebugPending
}

// podWatch watches one pod.
type podWatch struct {
	c               *client
	namespace, name string
}

func watchOf(c *client, namespace, name string) *podWatch { return &podWatch{c, namespace, name} }

// WatchWithContext implements cache.WatcherWithContext.
func (w *podWatch) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.FieldSelector = fields.OneTermEqualSelector("metadata.name", w.name).String()
	return w.c.CoreV1().Pods(w.namespace).Watch(ctx, o)
}

// Watch implements cache.Watcher.
func (w *podWatch) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return w.WatchWithContext(context.Background(), o)
}

func newDebugList(t Terminal, f *debugFlags) *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use:     "ls [POD]",
		Aliases: []string{"list"},
		Short:   "List the debug containers of a pod, or of all pods",
		Example: `  wherry debug ls
  wherry debug ls web
  wherry debug ls -A`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.connect()
			if err != nil {
				return err
			}
			namespace, o := f.Namespace, metav1.ListOptions{}
			if all {
				namespace = metav1.NamespaceAll
			}
			if len(args) == 1 {
				if _, err := c.CoreV1().Pods(namespace).Get(cmd.Context(), args[0], metav1.GetOptions{}); err != nil {
					return err
				}
				o.FieldSelector = fields.OneTermEqualSelector("metadata.name", args[0]).String()
			}
			pods, err := c.CoreV1().Pods(namespace).List(cmd.Context(), o)
			if err != nil {
				return err
			}
			return printDebugContainers(t, pods.Items, all, time.Now())
		},
		ValidArgsFunction: f.completePods,
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "of all namespaces")
	return cmd
}

func printDebugContainers(t Terminal, pods []corev1.Pod, all bool, now time.Time) error {
	w := tabwriter.NewWriter(t.Out, 0, 0, 3, ' ', 0)
	row := func(cells ...string) {
		if !all {
			cells = cells[1:]
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	found := false
	for i := range pods {
		p := &pods[i]
		for j := range p.Spec.EphemeralContainers {
			e := &p.Spec.EphemeralContainers[j]
			if !found {
				row("NAMESPACE", "POD", "NAME", "IMAGE", "TARGET", "STATUS", "AGE")
				found = true
			}
			status, age := debugStatus(p, e.Name, now)
			row(p.Namespace, p.Name, e.Name, e.Image, dashIfNone(e.TargetContainerName), status, age)
		}
	}
	if !found {
		fmt.Fprintln(t.Err, "No debug containers found.")
	}
	return w.Flush()
}

// debugStatus words the state of a debug container, and since when.
func debugStatus(p *corev1.Pod, name string, now time.Time) (status, age string) {
	state := podspec.DebugStateOf(p, name)
	since := func(at metav1.Time) string {
		if at.IsZero() {
			return "-"
		}
		return duration.HumanDuration(now.Sub(at.Time))
	}
	switch state.Phase {
	case podspec.DebugRunning:
		i := slices.IndexFunc(p.Status.EphemeralContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == name })
		return "Running", since(p.Status.EphemeralContainerStatuses[i].State.Running.StartedAt)
	case podspec.DebugEnded:
		return fmt.Sprintf("Exited (%d)", state.Terminated.ExitCode), since(state.Terminated.FinishedAt)
	case podspec.DebugFailing:
		return state.Reason, "-"
	}
	return "Waiting", "-"
}

func newDebugStop(t Terminal, f *debugFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "stop POD NAME...",
		Short:   "Stop running debug containers; their record stays",
		Example: `  wherry debug stop web debug`,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.connect()
			if err != nil {
				return err
			}
			for _, name := range args[1:] {
				if err := stopDebug(cmd.Context(), c, f.Namespace, args[0], name); err != nil {
					return err
				}
				fmt.Fprintf(t.Out, "debug container %s of pod %s stopped\n", name, args[0])
			}
			return nil
		},
		ValidArgsFunction: f.completePods,
	}
}

// stopDebug stops a debug container and waits until it has ended (DC-08).
func stopDebug(ctx context.Context, c *client, namespace, pod, name string) error {
	return c.CoreV1().RESTClient().Delete().Namespace(namespace).Resource("pods").Name(pod).SubResource(debugrun.Subresource, name).Do(ctx).Error()
}

func newDebugHistory(t Terminal, f *debugFlags) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "history [POD]",
		Short: "Show who debugged a pod, with what, when, and how it ended; also of pods that are gone",
		Example: `  wherry debug history web
  wherry debug history -o json | jq '.items[].spec.user'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.connect()
			if err != nil {
				return err
			}
			records, err := debugrun.NewClient(c.config)
			if err != nil {
				return err
			}
			which := metav1.ListOptions{}
			if len(args) == 1 {
				which = debugrun.OfPod(args[0])
			}
			list, err := records.List(cmd.Context(), f.Namespace, which)
			if err != nil {
				return err
			}
			slices.SortStableFunc(list.Items, func(a, b debugrun.DebugRun) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
			return printDebugRuns(t, list, output)
		},
		ValidArgsFunction: f.completePods,
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func printDebugRuns(t Terminal, list *debugrun.DebugRunList, output string) error {
	switch output {
	case "":
	case "json":
		out := json.NewEncoder(t.Out)
		out.SetIndent("", "  ")
		return out.Encode(list)
	case "yaml":
		text, err := yaml.Marshal(list)
		if err != nil {
			return err
		}
		_, err = t.Out.Write(text)
		return err
	default:
		return &Exit{exitUsage, fmt.Errorf("-o %s: use json or yaml", output)}
	}
	if len(list.Items) == 0 {
		fmt.Fprintln(t.Err, "No debug runs found.")
		return nil
	}
	w := tabwriter.NewWriter(t.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "WHEN\tUSER\tPOD\tKIND\tCONTAINER\tIMAGE\tTARGET\tTOOK\tEXIT")
	for i := range list.Items {
		r := &list.Items[i]
		fmt.Fprintln(w, strings.Join([]string{
			r.CreationTimestamp.UTC().Format(time.RFC3339), r.Spec.User, r.Spec.Pod.Name, string(r.Spec.Kind), dashIfNone(r.Spec.Container),
			r.Spec.Image, dashIfNone(r.Spec.Target), took(r.Status), exitOf(r.Status),
		}, "\t"))
	}
	return w.Flush()
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
		return dashIfNone(s.Reason)
	case s.StartedAt != nil:
		return "running"
	}
	return dashIfNone(s.Reason)
}

func dashIfNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
