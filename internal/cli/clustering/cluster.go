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
		Short: "Debugging on any Kubernetes cluster: install it, look at it, remove it",
		Long: `Make pods of any Kubernetes cluster debuggable as those of a Wherry server are: with a shell in the namespaces of a container, with
images that start beside it, with the files of containers that have exited. The pod is not changed, and its restarts do not count.

What is installed is an API that kube-apiserver hands requests to, which has authenticated and authorised them by then and writes them to its
audit log, and on each node a small agent. Who may debug what is said by ClusterRoles (wherry-look, wherry-debug, wherry-privileged) that you
bind in namespaces.

Then wherry debug, exec, cp, why and capture use it without being told.`,
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
