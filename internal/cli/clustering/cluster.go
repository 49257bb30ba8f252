// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
)

// New is the command.
func New(t cmdline.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Install, check or remove debugging on any Kubernetes cluster",
		Long: `Debug pods of any Kubernetes cluster like those of a Wherry server: with a shell in the namespaces of a container, with images that start
beside it, with the files of containers that have exited. The pod is not changed, and it does not matter if it restarts.

This installs an API and, on each node, a small agent. kube-apiserver passes requests to that API after it has authenticated and authorised
them, and writes them to its audit log. ClusterRoles (wherry-look, wherry-debug, wherry-privileged), which you bind in namespaces, define who
may debug what.

wherry debug, exec, cp, why and capture then use it automatically.`,
		Example: `  wherry cluster install --context staging
  wherry cluster status
  kubectl create rolebinding debuggers -n shop --clusterrole=wherry-debug --group=developers
  wherry debug web -n shop`,
		Args: cmdline.NoSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newInstall(t), newStatus(t), newUninstall(t), newManifest(t), newChart(t), newImage(t),
		NewAPI(t))
	return cmd
}
