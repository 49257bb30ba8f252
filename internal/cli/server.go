// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/configz"
	"github.com/wherryproject/wherry/internal/features"
	"github.com/wherryproject/wherry/internal/node/pullrecord"
	"github.com/wherryproject/wherry/internal/runtime"
	"github.com/wherryproject/wherry/internal/server"
)

func newServer(t Terminal) *cobra.Command {
	opts := server.Defaults()
	var logs cmdline.LogFlags
	var kubelet kubeletFiles
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run the server: API, store, node agent, container runtime",
		Long: `Run the server of this machine in the foreground.

It is ready when GET /readyz returns 200 and its node is Ready; a service manager is notified (READY=1). SIGTERM or Ctrl-C stops it and
leaves the pods running: the next server with the same data folder takes over. To remove everything: wherry purge.

Exit codes: 1 failure, 2 incorrect usage, 10 not root, 11 port in use, 12 data folder in use, 13 data folder of a newer version, 14
disk full, 15 data folder cannot be used, 16 store damaged or lost.`,
		Example: `  # the server of this machine
  sudo wherry server

  # a second one next to it
  sudo wherry server --data-dir /srv/second --secure-port 7443 --kubelet-port 11250

  # the same API for other machines' clients
  sudo wherry server --bind-address 0.0.0.0 --write-kubeconfig ~/wherry.yaml

  # with a web page to look at pods, at https://HOST:6443/ui
  sudo wherry server --bind-address 0.0.0.0 --ui

  # with an existing containerd and etcd
  sudo wherry server --container-runtime-endpoint unix:///run/containerd/containerd.sock --etcd-servers https://10.0.0.2:2379 \
      --etcd-cafile ca.crt --etcd-certfile client.crt --etcd-keyfile client.key`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return serve(t, opts, &logs, &kubelet)
		},
	}
	serverFlags(cmd, t, &opts)
	kubelet.addTo(cmd)
	logs.AddTo(cmd)
	return cmd
}

// serve runs a server until SIGTERM or Ctrl-C.
func serve(t Terminal, opts server.Options, logs *cmdline.LogFlags, kubelet *kubeletFiles) error {
	if err := cmdline.Replaceable(opts.WriteKubeconfig); err != nil {
		return cmdline.ExitWith(exitUsage, fmt.Errorf("--write-kubeconfig: %w", err))
	}
	log, err := logs.Logger(t.Err)
	if err != nil {
		return err
	}
	kubelet.warn(log)
	if opts.FeatureGates, err = setGates(opts.FeatureGates); err != nil {
		return err
	}
	manager := os.Getenv(notifySocket) // the server takes it out of the environment
	vain, err := startsInVain()
	if err != nil {
		return err
	}
	opts.Again = vain >= 0
	opts.Flags = configz.Flags(logs.All)
	opts.Inspector, opts.Resolver = cmdline.Inspector(), resolverCommand()
	s, err := server.New(opts, log)
	if err != nil {
		return cmdline.ExitWith(exitUsage, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	opts = s.Options()
	ended := foreground{t: t, log: log, dataDir: opts.DataDir, also: opts.WriteKubeconfig,
		shared: opts.KubeconfigMode+opts.KubeconfigGroup != "",
		agent:  opts.Join != "" || opts.Standalone}.during(s.Ready())
	err = s.Run(ctx)
	if again, ok := errors.AsType[*server.AgainError](err); ok && ctx.Err() == nil {
		if vain++; !again.Vain {
			vain = 0
			log.Warn("starting again, as the store could not go on", "err", again.Err)
		} else {
			log.Warn("the disk has too little room for the server to start, which it tries again; free some space on it", "err", again.Err)
		}
		err := server.AwaitRoom(ctx, opts.DataDir, vain, log)
		if ctx.Err() != nil { // asked to stop while it waited, or just now
			ended(nil)
			return nil
		}
		if err != nil {
			return errors.Join(again, err)
		}
		return startAgain(manager, vain, withoutOnce(os.Args), again)
	}
	ended(err)
	return err
}

// notifySocket is the variable in which systemd gives the socket that is notified of the server's state.
const notifySocket = "NOTIFY_SOCKET"

// inVain is the variable in which a server that takes its own place is told how many starts before it were in vain.
const inVain = "WHERRY_STARTS_IN_VAIN"

// startsInVain takes that out of the environment: -1 for a server that was not started by itself.
func startsInVain() (int, error) {
	text, is := os.LookupEnv(inVain)
	if !is {
		return -1, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return -1, fmt.Errorf("%s: %q is not a number of starts: unset it", inVain, text)
	}
	return n, os.Unsetenv(inVain)
}

// startAgain executes this program in place of itself: to a service manager it is the same process.
func startAgain(manager string, vain int, args []string, why error) error {
	why = errors.Join(why, os.Setenv(inVain, strconv.Itoa(vain)))
	if manager != "" {
		why = errors.Join(why, os.Setenv(notifySocket, manager))
	}
	return errors.Join(why, syscall.Exec("/proc/self/exe", args, os.Environ()))
}

// withoutOnce leaves out the flags that are meant for one start: the pods that --forget ends when it is repeated would
// be others.
func withoutOnce(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return name == "--adopt" || name == "--forget"
	})
}

func serverFlags(cmd *cobra.Command, t Terminal, o *server.Options) {
	f := cmd.Flags()
	f.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "IP address that the API listens on; 0.0.0.0 for all")
	f.IntVar(&o.SecurePort, "secure-port", o.SecurePort, "port of the API (HTTPS); 0 for any free one")
	f.BoolVar(&o.Page, "ui", false,
		"serve the web page on the API's port, at /ui; people sign in with a bearer token, or at the provider of --oidc-issuer-url (wherry ui does not need this flag)")
	f.StringSliceVar(&o.ExtraSANs, "tls-san", nil, "further names and IP addresses for the API's certificate")
	f.StringVar(&o.TokenAuthFile, "token-auth-file", "", "CSV file of bearer tokens: token,user,uid,\"group,group\"")
	f.StringVar(&o.ServiceCIDR, "service-cidr", o.ServiceCIDR,
		"network of service addresses; the API server has the first one; connections to addresses that no service has are refused; add networks with ServiceCIDR objects")
	f.StringSliceVar(&o.ClusterCIDRs, "cluster-cidr", nil,
		"network from which nodes get their pod networks, for example 10.244.0.0/16; one IPv4 and optionally one IPv6 subnet; default: the /16 around the server's own pod network")
	f.StringVar(&o.NodePorts, "service-node-port-range", o.NodePorts,
		"ports of this machine for services of type NodePort and LoadBalancer")
	f.StringSliceVar(&o.LoadBalancerCIDRs, "load-balancer-cidr", nil,
		"network from which services of type LoadBalancer get their own addresses; other machines need a route for it to this machine; default: all have the node's address")
	f.StringVar(&o.WriteKubeconfig, "write-kubeconfig", "",
		"write the administrator's kubeconfig here, in addition to <data-dir>/kubeconfig")

	f.StringVar(&o.KubeconfigMode, "write-kubeconfig-mode", "",
		"mode of the --write-kubeconfig file, or of <data-dir>/kubeconfig, for example 644; default: 600. Anyone who can read the file can do anything")
	f.StringVar(&o.KubeconfigGroup, "write-kubeconfig-group", "",
		"group that may read that file, by name or ID; the mode is then 640 by default")

	f.StringSliceVar(&o.EtcdServers, "etcd-servers", nil,
		"external etcd, for example https://host:2379; default: the embedded one")
	f.StringVar(&o.EtcdCAFile, "etcd-cafile", "", "CA of the external etcd")
	f.StringVar(&o.EtcdCertFile, "etcd-certfile", "", "client certificate for the external etcd")
	f.StringVar(&o.EtcdKeyFile, "etcd-keyfile", "", "key of that certificate")
	f.StringVar(&o.EtcdPrefix, "etcd-prefix", o.EtcdPrefix, "prefix of all keys in etcd")
	snapshotFlags(cmd, &o.Snapshots)
	f.Int64Var(&o.EtcdQuota, "etcd-quota-backend-bytes", 0,
		"size in bytes at which the embedded etcd accepts only deletions and the server's own writes; default: 6 GiB")
	f.BoolVar(&o.Adopt, "adopt", false,
		"if the store was lost or restored: write this node's pods that are not in it back into it, from this node's records")
	f.BoolVar(&o.Forget, "forget", false,
		"if the store was lost or restored: end this node's pods that are not in it; with --adopt, those that cannot be written back")
	auditFlags(cmd, t, &o.Audit)
	servingFlags(cmd, &o.Serving)
	admissionFlags(cmd, &o.Admission)
	authnFlags(cmd, o)
	f.StringVar(&o.DNS, "dns", o.DNS,
		"DNS server for pods: embedded, or none if you run CoreDNS or the like; point pods to yours with --cluster-dns")
	f.BoolVar(&o.DNSLog, "dns-log", o.DNSLog,
		"remember the last 100 names that each pod has looked up, for wherry timeline --names")
	nodeFlags(cmd, o)
}

// nodeFlags are those of the node agent, shared by all commands that run one.
func nodeFlags(cmd *cobra.Command, o *server.Options) {
	f := cmd.Flags()
	cmdline.DataDirFlag(cmd, &o.DataDir)
	f.Var(&gatesValue{m: &o.FeatureGates}, "feature-gates", "features to turn on or off, for example A=true,B=false:\n"+
		features.Help())
	f.StringVar(&o.NodeName, "node-name", "", "name of the node; default: the host's name")
	f.StringSliceVar(&o.NodeIPs, "node-ip", nil,
		"addresses of the node, the first one its InternalIP; default: that of the default route")
	f.StringVar(&o.KubeletAddress, "kubelet-address", "",
		"IP address that the node agent's API listens on; default: --bind-address if that is a single address, otherwise the node's own")
	tlsFlags(cmd, &o.Serving)
	f.IntVar(&o.KubeletPort, "kubelet-port", o.KubeletPort, "port of the node agent's API (HTTPS); 0 for any free one")
	f.StringVar(&o.ServiceProxy, "service-proxy", o.ServiceProxy,
		"what handles service traffic on this node: nftables for Wherry itself, none for another program, such as kube-proxy; an agent does so only for a Wherry server")
	f.StringVar(&o.ProxyHealthz, "proxy-healthz-address", "",
		"IP address and port for load balancers to ask whether this node handles service traffic, at /healthz and /livez, like kube-proxy's 0.0.0.0:10256; default: none")
	f.StringVar(&o.ProxyMetrics, "proxy-metrics-address", "",
		"IP address and port for the service proxy's /metrics and /proxyMode, like kube-proxy's 127.0.0.1:10249; default: none")
	f.StringSliceVar(&o.ClusterDNS, "cluster-dns", nil,
		"DNS server that pods use; default: the server's own; with wherry agent and another API server, the node's")
	f.StringVar(&o.ResolvConf, "resolv-conf", o.ResolvConf,
		"file that names the resolvers for names outside the cluster, and for pods with dnsPolicy Default")
	f.StringVar(&o.ClusterDomain, "cluster-domain", o.ClusterDomain, "DNS domain of the cluster")

	f.StringVar(&o.RuntimeEndpoint, "container-runtime-endpoint", "",
		"CRI socket of a container runtime, for example unix:///run/containerd/containerd.sock; default: the embedded one")
	f.StringVar(&o.Shim, "runtime", o.Shim, "shim with which the embedded runtime runs new pods: "+runtime.OwnShim+
		", one process for each pod and no pause container, or "+runtime.StockShim+", containerd's own shim for runc")
	f.StringVar(&o.CgroupDriver, "cgroup-driver", "", "cgroupfs or systemd; default: the runtime's")
	f.StringSliceVar(&o.PodCIDRs, "pod-cidr", nil,
		"pod network: one IPv4 and optionally one IPv6 subnet; default: a free /24 derived from the data folder")
	debugFlags(f, o)
	f.IntVar(&o.MaxPods, "max-pods", 110, "maximum number of pods on this node")
	f.Int64Var(&o.PodMaxPIDs, "pod-max-pids", -1, "maximum number of processes and threads in a pod; -1 for no limit")
	imageFlags(f, o)
	f.StringSliceVar(&o.UnsafeSysctls, "allowed-unsafe-sysctls", nil,
		"sysctls that pods may set besides the safe ones, for example kernel.msg*,net.core.somaxconn")
	evictionFlags(cmd, &o.Eviction)
	kubeletFlags(cmd, &o.Kubelet)
	staticFlags(cmd, &o.Static)
	f.StringVar(&o.BridgeName, "bridge-name", "",
		"network bridge for pods; default: derived from the data folder. With --container-runtime-endpoint or --cni-conf-dir: the bridge of that pod network, for example cni0, so that its pods can reach the kubernetes service")
	f.StringVar(&o.CNIConfDir, "cni-conf-dir", "",
		"folder with the configuration of CNI plug-ins that make the pod network, for example /etc/cni/net.d, which Calico, Cilium and flannel write; default: Wherry's own pod network")
	f.StringSliceVar(&o.CNIBinDirs, "cni-bin-dir", nil, "folders with these plug-ins (default /opt/cni/bin)")
	f.DurationVar(&o.RuntimeTimeout, "runtime-request-timeout", o.RuntimeTimeout,
		"how long the container runtime may take to answer a request before the request is repeated; sandboxes get "+
			"twice that, stopping containers their grace period as well, and pulls and commands have no limit")
}

// debugFlags are those of debug containers and image execs.
func debugFlags(f *pflag.FlagSet, o *server.Options) {
	f.StringVar(&o.DebugCPULimit, "debug-cpu-limit", "",
		"maximum CPU for a debug container, for example 500m; default: its pod's limit")
	f.StringVar(&o.DebugMemoryLimit, "debug-memory-limit", "",
		"maximum memory for a debug container, for example 256Mi; default: its pod's limit")
	f.Int64Var(&o.DebugMaxPIDs, "debug-max-pids", 1024,
		"maximum number of processes and threads in a debug container or image exec; -1 for no limit but its pod's")
	f.IntVar(&o.ImageExecs.Pod, "max-image-execs-per-pod", 16,
		"maximum number of image execs (wherry exec -m, wherry cp) in a pod at the same time; 0 for no limit")
	f.IntVar(&o.ImageExecs.Namespace, "max-image-execs-per-namespace", 32,
		"maximum number of image execs in a namespace at the same time; 0 for no limit")
	f.IntVar(&o.ImageExecs.Node, "max-image-execs", 64,
		"maximum number of image execs on this node at the same time; 0 for no limit")
	f.StringSliceVar(&o.DebugImageAllow, "debug-image-allow", nil,
		"images allowed for debug containers, for example registry.example.com/tools/*; default: all")
}

// imageFlags are those of where images come from, and who may use them.
func imageFlags(f *pflag.FlagSet, o *server.Options) {
	f.StringVar(&o.PullVerification, "image-pull-credentials-verification-policy", "",
		"images on the node for which a pod's pull secrets are verified: "+
			strings.Join(pullrecord.Policies(), ", ")+
			" (default NeverVerifyPreloadedImages: those that pods have pulled)")
	f.StringSliceVar(&o.PreloadedAllowlist, "preloaded-images-verification-allowlist", nil,
		"images that NeverVerifyAllowlistedImages exempts, for example registry.example.com/team/*")
	f.StringVar(&o.Snapshotter, "snapshotter", o.Snapshotter, "where the embedded runtime unpacks images: "+
		runtime.Overlayfs+", "+runtime.Native+" (copies every layer; works on any file system), or NAME=SOCKET of a "+
		"program, for example stargz=/run/containerd-stargz-grpc/containerd-stargz-grpc.sock, which may begin "+
		"before an image is downloaded")
	f.StringVar(&o.RegistryHostsDir, "registry-hosts-dir", "",
		"folder with registry settings (mirrors, insecure hosts) in containerd's format; default: <data-dir>/registries")
	f.DurationVar(&o.PullProgressDeadline, "image-pull-progress-deadline", o.PullProgressDeadline,
		"give up a pull when the registry has sent nothing for this long, or less than 64 KiB in five times this long")
}
