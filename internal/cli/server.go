// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/wherryproject/wherry/internal/server"
)

func newServer(t Terminal) *cobra.Command {
	opts := server.Defaults()
	var logs logFlags
	var gates map[string]bool
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run the server: API, store, node agent, container runtime",
		Long: `Run the server of this machine in the foreground.

It is ready when GET /readyz answers 200 and its node is Ready; a service manager is told (READY=1). SIGTERM or Ctrl-C stops it
and leaves the pods running: the next server on the same data folder takes them up again. To end everything: wherry purge.

Exit codes: 1 failure, 2 wrong command line, 10 not root, 11 port taken, 12 data folder in use, 13 data folder of a newer
version, 14 disk full, 15 data folder cannot be used.`,
		Example: `  # the server of this machine
  sudo wherry server

  # a second one beside it
  sudo wherry server --data-dir /srv/second --secure-port 7443 --kubelet-port 11250

  # the same API for other machines' clients
  sudo wherry server --bind-address 0.0.0.0 --write-kubeconfig ~/wherry.yaml

  # with containerd and etcd that run already
  sudo wherry server --container-runtime-endpoint unix:///run/containerd/containerd.sock --etcd-servers https://10.0.0.2:2379 \
      --etcd-cafile ca.crt --etcd-certfile client.crt --etcd-keyfile client.key`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			log, err := logs.logger(t.Err)
			if err != nil {
				return err
			}
			if err := setGates(gates); err != nil {
				return err
			}
			opts.FeatureGates = gates
			s, err := server.New(opts, log)
			if err != nil {
				return &Exit{exitUsage, err}
			}
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return s.Run(ctx)
		},
	}
	opts.DataDir = defaultDataDir()
	serverFlags(cmd, &opts)
	f := cmd.Flags()
	f.Var(&gatesValue{m: &gates}, "feature-gates", "features to turn on or off, for example A=true,B=false")
	logs.add(cmd)
	return cmd
}

func serverFlags(cmd *cobra.Command, o *server.Options) {
	f := cmd.Flags()
	dataDirFlag(cmd, &o.DataDir)

	f.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "IP address the API listens on; 0.0.0.0 for all")
	f.IntVar(&o.SecurePort, "secure-port", o.SecurePort, "port of the API (HTTPS); 0 for any free one")
	f.StringSliceVar(&o.ExtraSANs, "tls-san", nil, "further names and IP addresses for the API's certificate")
	f.StringVar(&o.TokenAuthFile, "token-auth-file", "", "CSV file of bearer tokens: token,user,uid,\"group,group\"")
	f.StringVar(&o.ServiceCIDR, "service-cidr", o.ServiceCIDR, "network of service addresses")
	f.StringVar(&o.WriteKubeconfig, "write-kubeconfig", "", "write the administrator's kubeconfig here too, beside <data-dir>/kubeconfig")

	f.StringSliceVar(&o.EtcdServers, "etcd-servers", nil, "external etcd, as https://host:2379; default: the embedded one")
	f.StringVar(&o.EtcdCAFile, "etcd-cafile", "", "CA of the external etcd")
	f.StringVar(&o.EtcdCertFile, "etcd-certfile", "", "client certificate for the external etcd")
	f.StringVar(&o.EtcdKeyFile, "etcd-keyfile", "", "key of that certificate")
	f.StringVar(&o.EtcdPrefix, "etcd-prefix", o.EtcdPrefix, "prefix of all keys in etcd")
	nodeFlags(cmd, o)
}

// nodeFlags are those of the node agent, shared by all commands that run one.
func nodeFlags(cmd *cobra.Command, o *server.Options) {
	f := cmd.Flags()
	f.StringVar(&o.NodeName, "node-name", "", "name of the node; default: the host's name")
	f.StringSliceVar(&o.NodeIPs, "node-ip", nil, "addresses of the node, the first one its InternalIP; default: that of the default route")
	f.IntVar(&o.KubeletPort, "kubelet-port", o.KubeletPort, "port of the node agent's API (HTTPS); 0 for any free one")
	f.StringSliceVar(&o.ClusterDNS, "cluster-dns", nil, "DNS server that pods use; default: the node's own")
	f.StringVar(&o.ClusterDomain, "cluster-domain", o.ClusterDomain, "DNS domain of the cluster")

	f.StringVar(&o.RuntimeEndpoint, "container-runtime-endpoint", "", "CRI socket of a container runtime, as unix:///run/containerd/containerd.sock; default: the embedded one")
	f.StringSliceVar(&o.PodCIDRs, "pod-cidr", nil, "network of the pods: one IPv4, optionally one IPv6; default: a free /24 derived from the data folder")
	f.StringVar(&o.BridgeName, "bridge-name", "", "network bridge of the pods; default: derived from the data folder")
	f.StringVar(&o.RegistryHostsDir, "registry-hosts-dir", "", "folder of registry settings (mirrors, insecure hosts) as containerd has it; default: <data-dir>/registries")
}

// gatesValue parses --feature-gates as Kubernetes components do.
type gatesValue struct{ m *map[string]bool }

var _ pflag.Value = (*gatesValue)(nil)

func (v *gatesValue) Type() string { return "NAME=BOOL,..." }

func (v *gatesValue) String() string {
	var out []string
	for name, on := range *v.m {
		out = append(out, fmt.Sprintf("%s=%t", name, on))
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

func (v *gatesValue) Set(text string) error {
	if *v.m == nil {
		*v.m = map[string]bool{}
	}
	for _, part := range strings.Split(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || value != "true" && value != "false" {
			return fmt.Errorf("%q is not of the form Name=true or Name=false", part)
		}
		(*v.m)[name] = value == "true"
	}
	return nil
}

// setGates turns the API libraries' features on and off. Their registry is a global.
func setGates(gates map[string]bool) error {
	if len(gates) == 0 {
		return nil
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		return &Exit{exitUsage, fmt.Errorf("--feature-gates: %w", err)}
	}
	return nil
}
