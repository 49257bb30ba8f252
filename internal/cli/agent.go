// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/server"
)

func newAgent(t Terminal) *cobra.Command {
	opts := server.Defaults()
	var logs cmdline.LogFlags
	cmd := &cobra.Command{
		Use:   "agent (--kubeconfig FILE | --bootstrap-kubeconfig FILE)",
		Short: "Run only the node agent, for another API server",
		Long: `Run this machine's node agent and container runtime for another Kubernetes API server, in the foreground.

The kubeconfig's user needs the same permissions as a kubelet. With --bootstrap-kubeconfig the agent joins by itself: it requests a
client certificate from the API server, writes the kubeconfig once the certificate is signed, and renews it before it expires. SIGTERM
stops the agent and leaves the pods running.`,
		Example: `  sudo wherry agent --kubeconfig /etc/kubernetes/kubelet.conf --node-name worker-1

  # join a wherry server, as "wherry token create --print-join-command" prints on that server
  sudo wherry agent --bootstrap-kubeconfig wherry-bootstrap.yaml --rotate-server-certificates`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			switch {
			case opts.Join == "" && opts.Bootstrap == "":
				return cmdline.ExitWith(exitUsage,
					errors.New("--kubeconfig is missing: give the kubeconfig of the API server, or --bootstrap-kubeconfig to join it"))

			case opts.Join == "":
				opts.Join = server.AgentKubeconfig(opts.DataDir)
			}
			return serve(t, opts, &logs)
		},
	}
	cmd.Flags().StringVar(&opts.Join, "kubeconfig", "",
		"kubeconfig of the API server; with --bootstrap-kubeconfig, the file to write, by default <data-dir>/agent.kubeconfig")
	cmd.Flags().StringVar(&opts.Bootstrap, "bootstrap-kubeconfig", "",
		"kubeconfig for requesting a client certificate if --kubeconfig does not exist or its certificate has expired")
	cmd.Flags().BoolVar(&opts.RotateServer, "rotate-server-certificates", false,
		"request the serving certificate of the node's API from the API server; it must be approved (kubectl certificate approve)")
	cmd.Flags().StringVar(&opts.ClientCAFile, "client-ca-file", "",
		"CA of the client certificates that the node's API accepts; default: the one in the kubeconfig")
	cmd.Flags().StringVar(&opts.CertFile, "tls-cert-file", "",
		"serving certificate of the node's API; default: one signed by the node's own CA, which API servers that verify kubelet certificates reject")
	cmd.Flags().StringVar(&opts.KeyFile, "tls-private-key-file", "", "private key of that certificate")
	nodeFlags(cmd, &opts)
	logs.AddTo(cmd)
	return cmd
}
