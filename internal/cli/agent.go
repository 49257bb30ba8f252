// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/server"
)

func newAgent(t Terminal) *cobra.Command {
	opts := server.Defaults()
	var logs logFlags
	cmd := &cobra.Command{
		Use:   "agent (--kubeconfig FILE | --bootstrap-kubeconfig FILE)",
		Short: "Run the node agent alone, for another API server",
		Long: `Run the node agent and the container runtime of this machine for somebody else's Kubernetes API server, in the foreground.

The kubeconfig's user must be allowed what a kubelet is. With --bootstrap-kubeconfig the agent joins by itself: it asks the API server
for a client certificate, writes the kubeconfig once it is signed, and renews the certificate before it ends. SIGTERM stops the agent and leaves the pods running.`,
		Example: `  sudo wherry agent --kubeconfig /etc/kubernetes/kubelet.conf --node-name worker-1

  # join a wherry server with what "wherry token create --print-join-command" printed there
  sudo wherry agent --bootstrap-kubeconfig wherry-bootstrap.yaml --rotate-server-certificates`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			switch {
			case opts.Join == "" && opts.Bootstrap == "":
				return &Exit{exitUsage, errors.New("--kubeconfig is missing: name that of the API server to work for, or give --bootstrap-kubeconfig to join it")}
			case opts.Join == "":
				opts.Join = server.AgentKubeconfig(opts.DataDir)
			}
			return serve(t, opts, &logs)
		},
	}
	cmd.Flags().StringVar(&opts.Join, "kubeconfig", "", "kubeconfig of the API server to work for; with --bootstrap-kubeconfig it is written, by default to <data-dir>/agent.kubeconfig")
	cmd.Flags().StringVar(&opts.Bootstrap, "bootstrap-kubeconfig", "", "kubeconfig to ask for a client certificate with, while --kubeconfig is not there or its certificate has ended")
	cmd.Flags().BoolVar(&opts.RotateServer, "rotate-server-certificates", false, "ask the API server for the certificate that the node's API shows; somebody has to approve it (kubectl certificate approve)")
	cmd.Flags().StringVar(&opts.ClientCAFile, "client-ca-file", "", "CA of the certificates that may use the node's API; default: the one in the kubeconfig")
	cmd.Flags().StringVar(&opts.CertFile, "tls-cert-file", "", "certificate that the node's API shows; default: one signed by a CA of its own, which an API server that checks kubelets' certificates refuses")
	cmd.Flags().StringVar(&opts.KeyFile, "tls-private-key-file", "", "key of that certificate")
	nodeFlags(cmd, &opts)
	logs.add(cmd)
	return cmd
}
