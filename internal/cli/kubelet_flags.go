// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/server"
)

// kubeletFlags are the kubelet's, by name and form; those that it has in its configuration file only are named so that
// one finds them.
func kubeletFlags(cmd *cobra.Command, k *server.KubeletOptions) {
	f := cmd.Flags()
	f.IntVar(&k.ReadOnlyPort, "read-only-port", k.ReadOnlyPort,
		"port at which this node's pods and figures are shown to anybody, without TLS, as old monitoring wants it; 0 for none")
	f.BoolVar(&k.SystemLogQuery, "enable-system-log-query", k.SystemLogQuery,
		"show this machine's journal and /var/log to those who may read nodes/log (kubectl get --raw \"/api/v1/nodes/NODE/proxy/logs/?query=UNIT\")")
	f.StringVar(&k.LogMaxSize, "container-log-max-size", k.LogMaxSize,
		"size of a container's log at which it is rotated")
	f.IntVar(&k.LogMaxFiles, "container-log-max-files", k.LogMaxFiles,
		"number of log files of a container, with the one that is written")
}
