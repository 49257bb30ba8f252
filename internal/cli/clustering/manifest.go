// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cluster/manifest"
	"github.com/wherryproject/wherry/internal/release"
)

func newManifest(t cmdline.Terminal) *cobra.Command {
	var v values
	output := "yaml"
	cmd := &cobra.Command{
		Use:   "manifest",
		Short: "Print the objects that wherry cluster install applies",
		Long: `Print the objects that wherry cluster install applies, for kubectl apply, kustomize or a GitOps repository. Comments in the YAML say
why each is there.

The Secret has no data and the APIService no caBundle: both are filled by the API, and applying the manifest again leaves them as they are.`,
		Example: `  wherry cluster manifest | kubectl apply -f -
  wherry cluster manifest --image registry.example.com/wherry:1 > wherry-debug.yaml`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return printManifest(t, &v, output) },
	}
	v.addTo(cmd)
	cmdline.OutputFlag(cmd, &output)
	return cmd
}

func printManifest(t cmdline.Terminal, v *values, output string) error {
	all, err := v.chosen(t, nil)
	if err != nil {
		return err
	}
	if strings.EqualFold(output, "yaml") {
		text, err := manifest.Render(all, release.Version())
		if err == nil {
			_, err = t.Out.Write(text)
		}
		return err
	}
	objects, err := manifest.Objects(all, release.Version())
	if err != nil {
		return err
	}
	list := unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for _, o := range objects {
		list.Items = append(list.Items, *o)
	}
	return cmdline.PrintAs(t, output, list.UnstructuredContent())
}

func newChart(t cmdline.Terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "chart DIR",
		Short: "Write a Helm chart of these objects",
		Long: `Write a Helm chart into a folder that is empty or does not exist. With its default values it installs what wherry cluster install does. It
creates the namespace itself (createNamespace), so its release can be in any namespace.`,
		Example: `  wherry cluster chart ./wherry-debug
  helm install wherry-debug ./wherry-debug`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := manifest.WriteChart(args[0], release.Version()); err != nil {
				return err
			}
			fmt.Fprintf(t.Err, "%s: helm install wherry-debug %s\n", args[0], args[0])
			return nil
		},
	}
}
