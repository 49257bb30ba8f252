// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/podspec"
)

func newDebugList(t cmdline.Terminal, f *debugFlags) *cobra.Command {
	all, output := false, ""
	cmd := &cobra.Command{
		Use:     "ls [POD]",
		Aliases: []string{"list"},
		Short:   "List the debug containers in one pod, or in all pods",
		Example: `  wherry debug ls
  wherry debug ls web
  wherry debug ls -A
  wherry debug ls -o json | jq '.items[] | select(.status == "Running")'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.Connect()
			if err != nil {
				return err
			}
			namespace, o := f.Namespace, metav1.ListOptions{}
			if all {
				namespace = metav1.NamespaceAll
			}
			if len(args) == 1 {
				name := reach.PodName(args[0])
				if _, err := c.CoreV1().Pods(namespace).Get(cmd.Context(), name, metav1.GetOptions{}); err != nil {
					return c.RoleAdvice(cmd.Context(), err, reach.LookAtSessions, namespace)
				}
				o.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
			}
			pods, err := c.CoreV1().Pods(namespace).List(cmd.Context(), o)
			if err != nil {
				return c.RoleAdvice(cmd.Context(), err, reach.LookAtSessions, namespace)
			}
			list := debugContainersOf(pods.Items, time.Now())
			beside, err := sessionsOf(cmd.Context(), c, pods.Items)
			if err = c.RoleAdvice(cmd.Context(), err, reach.LookAtSessions, namespace); err != nil {
				fmt.Fprintf(t.Err, "sessions beside pods cannot be listed: %s\n", plain.Text(err.Error()))
			}
			list.Items = append(list.Items, beside...)
			if output != "" {
				return cmdline.PrintAs(t, output, list)
			}
			return printDebugContainers(t, list.Items, all)
		},
		ValidArgsFunction: f.CompletePods,
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "in all namespaces")
	cmdline.OutputFlag(cmd, &output)
	return cmd
}

// debugContainers is what `wherry debug ls -o json` prints.
type debugContainers struct {
	Items []debugContainer `json:"items"`
}

// debugContainer is a debug container and its last run.
type debugContainer struct {
	Namespace  string       `json:"namespace"`
	Pod        string       `json:"pod"`
	Name       string       `json:"name"`
	Image      string       `json:"image"`
	Command    []string     `json:"command,omitempty"`
	Target     string       `json:"target,omitempty"`
	Run        int          `json:"run"`    // how often the name had been used before
	Status     string       `json:"status"` // Running, Exited, Waiting, or the reason why it cannot start
	ExitCode   *int32       `json:"exitCode,omitempty"`
	StartedAt  *metav1.Time `json:"startedAt,omitempty"`
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	StopAt     *metav1.Time `json:"stopAt,omitempty"`
	User       string       `json:"user,omitempty"` // of a session beside the pod

	age string
}

func debugContainersOf(pods []corev1.Pod, now time.Time) debugContainers {
	list := debugContainers{Items: []debugContainer{}}
	for i := range pods {
		p := &pods[i]
		for j := range p.Spec.EphemeralContainers {
			e := &p.Spec.EphemeralContainers[j]
			want := podspec.DebugRunsOf(p)[e.Name]
			c := debugContainer{Namespace: p.Namespace, Pod: p.Name, Name: e.Name, Image: e.Image,
				Command: ask.PlainWords(append(slices.Clone(e.Command), e.Args...)...), Target: e.TargetContainerName,
				Run: want.Run}
			if ends := podspec.DebugEnds(p, e.Name); !ends.IsZero() {
				c.StopAt = &metav1.Time{Time: ends}
			}
			c.setState(p, now)
			list.Items = append(list.Items, c)
		}
	}
	return list
}

// setState fills in how far the last run is, and since when.
func (c *debugContainer) setState(p *corev1.Pod, now time.Time) {
	state := podspec.DebugStateOf(p, c.Name)
	since := func(at *metav1.Time) string { return age(at, now) }
	c.age = "-"
	switch state.Phase {
	case podspec.DebugRunning:
		i := slices.IndexFunc(p.Status.EphemeralContainerStatuses,
			func(s corev1.ContainerStatus) bool { return s.Name == c.Name })
		c.Status, c.StartedAt = "Running", &p.Status.EphemeralContainerStatuses[i].State.Running.StartedAt
		c.age = since(c.StartedAt)
	case podspec.DebugEnded:
		end := state.Terminated
		c.Status, c.ExitCode, c.StartedAt, c.FinishedAt = "Exited", &end.ExitCode, &end.StartedAt, &end.FinishedAt
		c.age = since(c.FinishedAt)
	case podspec.DebugFailing:
		c.Status = state.Reason
	default:
		c.Status = "Waiting"
	}
}

// age is how long ago something was.
func age(at *metav1.Time, now time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(at.Time))
}

func printDebugContainers(t cmdline.Terminal, list []debugContainer, all bool) error {
	table := cmdline.Table{None: "No debug containers found."}
	seen := func(cells ...string) []string {
		if !all {
			return cells[1:]
		}
		return cells
	}
	table.Head = seen("NAMESPACE", "POD", "NAME", "IMAGE", "TARGET", "STATUS", "AGE")
	for _, c := range list {
		status := c.Status
		if c.ExitCode != nil {
			status = fmt.Sprintf("%s (%d)", status, *c.ExitCode)
		}
		table.Add(seen(c.Namespace, c.Pod, c.Name, c.Image, c.Target, status, c.age)...)
	}
	return table.Print(t)
}
