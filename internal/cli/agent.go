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
	var kubelet kubeletFiles
	cmd := &cobra.Command{
		Use:   "agent (--kubeconfig FILE | --bootstrap-kubeconfig FILE | --pod-manifest-path FOLDER | --manifest-url URL)",
		Short: "Run only the node agent, for another API server or for none",
		Long: `Run this machine's node agent and container runtime for another Kubernetes API server, in the foreground.

The kubeconfig's user needs the same permissions as a kubelet. With --bootstrap-kubeconfig the agent joins by itself: it requests a
client certificate from the API server, writes the kubeconfig once the certificate is signed, and renews it before it expires. SIGTERM
stops the agent and leaves the pods running.

Without a kubeconfig there is no API server, and the agent runs only static pods: those of a folder of manifests (--pod-manifest-path)
or of a URL (--manifest-url). Pods start, change and end with their files, and start again after a reboot. Whatever needs an API
server (secrets, config maps, service accounts, claims) is rejected. The node's API shows the pods to the holder of
<data-dir>/pki/node-admin.crt: GET /pods, /containerLogs/NAMESPACE/POD/CONTAINER.`,
		Example: `  sudo wherry agent --kubeconfig /etc/kubernetes/kubelet.conf --node-name worker-1

  # join a wherry server, as "wherry token create --print-join-command" prints on that server
  sudo wherry agent --bootstrap-kubeconfig wherry-bootstrap.yaml --rotate-server-certificates

  # no API server: run the pods of a folder
  sudo wherry agent --pod-manifest-path /etc/kubernetes/manifests`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			switch {
			case opts.Join == "" && opts.Bootstrap == "" && opts.Static.Path+opts.Static.URL != "":
				opts.Standalone = true
			case opts.Join == "" && opts.Bootstrap == "":
				return cmdline.ExitWith(exitUsage,
					errors.New("--kubeconfig is missing: give the kubeconfig of the API server, --bootstrap-kubeconfig to join it, or --pod-manifest-path to run static pods without one"))
			case opts.Join == "":
				opts.Join = server.AgentKubeconfig(opts.DataDir)
			}
			return serve(t, opts, &logs, &kubelet)
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
	kubelet.addTo(cmd)
	logs.AddTo(cmd)
	return cmd
}
