// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/reach"
)

// New returns wherry volume.
func New(t cmdline.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use: "volume", Aliases: []string{"volumes"},
		Short: "Show persistent volumes",
		Long:  "Show persistent volumes: which claims they belong to, which pods use them, and how full they are.",
		Args:  cmdline.NoSuchCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newList(t))
	return cmd
}

// listFlags are the flags of `wherry volume ls`.
type listFlags struct {
	reach.Flags
	all    bool
	output string
}

func newList(t cmdline.Terminal) *cobra.Command {
	f := &listFlags{}
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List claims with their volumes and how full they are",
		Long: `List the claims of a namespace with the volumes they are bound to: size, use, class, the pods that use them, and where the
data is. With -A, those of all namespaces and volumes without a claim.

USED is what the file system reports, which needs a pod that has the volume mounted. If the file system has no project quotas, USED and the
size after the slash are those of the whole file system.`,
		Example: "  wherry volume ls\n  wherry volume ls -A\n  wherry volume ls -A -o json | jq '.[] | select(.status != \"Bound\")'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := f.Connect()
			if err != nil {
				return err
			}
			namespace := f.Namespace
			if f.all {
				namespace = metav1.NamespaceAll
			}
			got, err := gather(cmd.Context(), client, namespace, f.all)
			if err != nil {
				return err
			}
			rows := list(got, f.all)
			if f.output != "" && f.output != "table" {
				return cmdline.PrintAs(t, f.output, rows)
			}
			return table(t, rows, f.all)
		},
	}
	f.AddTo(cmd)
	cmd.Flags().BoolVarP(&f.all, "all-namespaces", "A", false,
		"list claims of all namespaces, and volumes without a claim")
	cmdline.OutputFlag(cmd, &f.output)
	return cmd
}

// gather reads. Who may not see pods, volumes or nodes sees the claims all the same.
func gather(ctx context.Context, c kubernetes.Interface, namespace string, all bool) (f found, err error) {
	core := c.CoreV1()
	claims, err := core.PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return f, err
	}
	f.claims = claims.Items
	if len(f.claims) == 0 && !all {
		return f, nil
	}
	if pods, err := core.Pods(namespace).List(ctx, metav1.ListOptions{}); err == nil {
		f.pods = pods.Items
	}
	volumes, err := core.PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err == nil {
		f.volumes = volumes.Items
	} else if all {
		return f, err
	}
	nodes := map[string]bool{}
	for i := range f.pods {
		if node := f.pods[i].Spec.NodeName; node != "" {
			nodes[node] = true
		}
	}
	for node := range nodes {
		text, err := core.RESTClient().Get().AbsPath("/api/v1/nodes/" + node + "/proxy/stats/summary").DoRaw(ctx)
		var summary statsapi.Summary
		if err == nil && json.Unmarshal(text, &summary) == nil {
			f.stats = append(f.stats, summary.Pods...)
		}
	}
	return f, nil
}

func table(t cmdline.Terminal, rows []Volume, all bool) error {
	if len(rows) == 0 {
		fmt.Fprintln(t.Err, "no volumes found")
		return nil
	}
	w := tabwriter.NewWriter(t.Out, 0, 8, 3, ' ', 0)
	head := "CLAIM\tSTATUS\tSIZE\tUSED\tCLASS\tPOLICY\tPODS\tWHERE"
	if all {
		head = "NAMESPACE\t" + head
	}
	fmt.Fprintln(w, head)
	for i := range rows {
		row(w, &rows[i], all)
	}
	return w.Flush()
}

func row(w io.Writer, v *Volume, all bool) {
	claim, used := v.Claim, "-"
	if claim == "" {
		claim = "<none> (" + v.Volume + ")"
	}
	if v.Used != nil && v.Capacity != nil {
		used = inUnits(*v.Used) + "/" + inUnits(*v.Capacity)
	}
	cells := []string{claim, v.Status, v.Size, used, orDash(v.Class), orDash(v.Policy),
		orDash(strings.Join(v.Pods, ",")), orDash(v.Where)}
	if all {
		cells = append([]string{orDash(v.Namespace)}, cells...)
	}
	fmt.Fprintln(w, strings.Join(cells, "\t"))
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func inUnits(n uint64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1fGi", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.1fMi", float64(n)/(1<<20))
}
