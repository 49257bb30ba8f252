// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/api/admission"
	"github.com/wherryproject/wherry/internal/api/authn"
	"github.com/wherryproject/wherry/internal/api/serviceips"
	"github.com/wherryproject/wherry/internal/audit"
	"github.com/wherryproject/wherry/internal/controllers/certificates"
	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/datadir"
	"github.com/wherryproject/wherry/internal/names/resolvers"
	"github.com/wherryproject/wherry/internal/node/imageexec"
	"github.com/wherryproject/wherry/internal/podspec"
	"github.com/wherryproject/wherry/internal/runtime"
	"github.com/wherryproject/wherry/internal/store"
)

// Defaults of Options.
const (
	DefaultDataDir     = datadir.Default
	DefaultSecurePort  = 6443
	DefaultKubeletPort = 10250
	DefaultServiceCIDR = "10.96.0.0/12"
)

// minSigning is the least one may ask for in a CertificateSigningRequest.
const minSigning = 10 * time.Minute

// Options say what server is wanted. Defaults fills what may be left empty.
type Options struct {
	DataDir       string // absolute; holds everything
	Again         bool   // this process takes the place of one whose disk was full; so a full disk is waited for
	BindAddress   string // IP the API listens on
	SecurePort    int    // of the API; 0 = any free one
	ExtraSANs     []string
	TokenAuthFile string
	ServiceCIDR   string
	NodePorts     string // range, such as 30000-32767; empty: that
	// ranges that services of type LoadBalancer get an address of their own from; none: they have the machine's
	LoadBalancerCIDRs []string
	ServiceProxy      string // who carries services: ProxyNFTables, or ProxyNone
	// where our service proxy answers as a kube-proxy does at its ports 10256 and 10249: address:port; empty: nowhere
	ProxyHealthz, ProxyMetrics string
	// a second place for the administrator's kubeconfig; empty: only <DataDir>/kubeconfig
	WriteKubeconfig string
	// of that place, or without one of <DataDir>/kubeconfig, octal; empty: 600, or with a group 640
	KubeconfigMode  string
	KubeconfigGroup string          // that may read it, name or id; empty: none
	FeatureGates    map[string]bool // those of package features
	Audit           audit.Options
	Serving         api.Serving // of the API; its TLS also of the node's API
	Page            bool        // the API's port serves the page too, below /ui/
	Admission       admission.Options

	NodeName       string
	NodeIPs        []string // first one is the node's InternalIP
	KubeletPort    int      // 0 = any free one
	KubeletAddress string   // IP the node's API listens on; empty: see complete
	ClusterDNS     []string
	ClusterDomain  string
	DNS            string // who answers pods: DNSEmbedded or DNSNone
	DNSLog         bool   // what pods ask is remembered
	ResolvConf     string // file that names the machine's resolvers
	// Resolver is the command that answers pods in a process of its own; empty: none is there
	Resolver []string

	EtcdServers  []string // empty: the embedded one
	EtcdCAFile   string
	EtcdCertFile string
	EtcdKeyFile  string
	EtcdPrefix   string
	Snapshots    SnapshotOptions
	Adopt        bool // pods that run and that the embedded store does not know are written back into it
	Forget       bool // they are ended, or with Adopt those that cannot be written back
	// command that reads a database file of the store in a process of its own; empty: see store.Config
	Inspector []string
	EtcdQuota int64 // bytes that objects may take in the embedded one; 0: the store's default

	Authentication  authn.Options
	SigningDuration time.Duration // how long certificates live at most that are signed on request

	Standalone bool // the agent alone, for no API server: it runs static pods
	Static     StaticOptions

	Join string // kubeconfig of another API server: the agent alone, for that one
	// with Join: kubeconfig to ask for a certificate with, while there is no Join or its certificate has ended
	Bootstrap string
	// with Join: the API server signs the certificate that the node's API shows, once a person has approved it
	RotateServer bool
	ClientCAFile string // with Join: CA of the certificates that may use the node's API; empty: that of the kubeconfig

	// with Join: certificate that the node's API shows; empty: one of an own CA, which not every API server takes
	CertFile string
	KeyFile  string

	RuntimeEndpoint  string // empty: the embedded one
	Shim             string // what the embedded runtime runs pods by: runtime.OwnShim (default) or runtime.StockShim
	Snapshotter      string // of the embedded runtime: a name, or NAME=SOCKET; see [runtime.ParseSnapshotter]
	CgroupDriver     string // cgroupfs or systemd; empty: as the runtime has it
	PodCIDRs         []string
	ClusterCIDRs     []string // what nodes get their pod networks from; empty: what is around the server's own
	BridgeName       string
	CNIConfDir       string           // of plug-ins that make the pod network; empty: the node's own
	CNIBinDirs       []string         // where these are
	DebugCPULimit    string           // of each debug container, a quantity; empty: none
	DebugMemoryLimit string           // of each debug container, a quantity; empty: none
	DebugMaxPIDs     int64            // processes and threads of each debug container and image exec; 0 or -1: no limit
	MaxPods          int              // on the node; 0: 110
	PodMaxPIDs       int64            // processes and threads of each pod; 0 or -1: no limit
	ImageExecs       imageexec.Limits // at the same time
	DebugImageAllow  []string         // patterns of images that debug containers may have; none: all
	UnsafeSysctls    []string         // patterns of sysctls that pods may set besides the safe ones
	RegistryHostsDir string
	// PullVerification is the kubelet's imagePullCredentialsVerificationPolicy, PreloadedAllowlist its
	// preloadedImagesVerificationAllowlist.
	PullVerification   string
	PreloadedAllowlist []string
	// PullProgressDeadline is how long the embedded runtime waits for a byte of an image before it gives a pull up.
	PullProgressDeadline time.Duration
	// RuntimeTimeout is how long the runtime may take to answer one request; see [cri.WithRequestTimeout].
	RuntimeTimeout time.Duration
	Eviction       EvictionOptions
	Kubelet        KubeletOptions
	Flags          map[string]string // of the command, for /configz; nil: not shown
}

// Defaults returns the options of `wherry server` without a flag.
func Defaults() Options {
	return Options{
		DataDir:       DefaultDataDir,
		Shim:          runtime.OwnShim,
		Snapshotter:   runtime.Overlayfs,
		BindAddress:   "127.0.0.1",
		SecurePort:    DefaultSecurePort,
		KubeletPort:   DefaultKubeletPort,
		ServiceCIDR:   DefaultServiceCIDR,
		NodePorts:     serviceips.DefaultNodePorts,
		ServiceProxy:  ProxyNFTables,
		ClusterDomain: defaultDomain,
		DNS:           DNSEmbedded,
		DNSLog:        true,
		ResolvConf:    resolvers.File,
		EtcdPrefix:    "/registry",
		Audit:         audit.Defaults(),
		Serving:       api.DefaultServing(),

		SigningDuration: certificates.Longest,

		PullProgressDeadline: time.Minute,
		RuntimeTimeout:       cri.DefaultRequestTimeout,

		Eviction:  defaultEviction(),
		Kubelet:   defaultKubelet(),
		Snapshots: defaultSnapshots(),
	}
}

// complete fills what is derived from the machine and checks all of it. Its errors name the flag.
func (o Options) complete() (Options, error) {
	var err error
	if o.DataDir == "" {
		return o, errors.New("--data-dir must not be empty")
	}
	if o.DataDir, err = filepath.Abs(o.DataDir); err != nil {
		return o, fmt.Errorf("--data-dir: %w", err)
	}
	if o.Snapshots.Dir != "" {
		if o.Snapshots.Dir, err = filepath.Abs(o.Snapshots.Dir); err != nil {
			return o, fmt.Errorf("--etcd-snapshot-dir: %w", err)
		}
	}
	if o.NodeName == "" {
		if o.NodeName, err = os.Hostname(); err != nil {
			return o, fmt.Errorf("--node-name is not given and the host name cannot be determined: %w", err)
		}
		o.NodeName = strings.ToLower(o.NodeName)
	}
	if len(o.NodeIPs) == 0 {
		o.NodeIPs = []string{hostAddress()}
	}
	if o.Static, err = o.Static.complete(); err != nil {
		return o, err
	}
	if o.KubeletAddress == "" {
		o.KubeletAddress = o.kubeletAddress()
	}
	return o, o.validate()
}

// kubeletAddress is where the node's API listens by default: where others need it, the node's own address; on loopback
// if the API server, which alone needs it then, is on loopback too.
func (o Options) kubeletAddress() string {
	if ip := net.ParseIP(o.BindAddress); o.Join == "" && ip != nil && ip.IsLoopback() {
		return o.BindAddress
	}
	return o.NodeIPs[0]
}

// validate checks what can be checked without touching the machine.
func (o Options) validate() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if o.DataDir == "/" {
		fail("--data-dir: / cannot be the data folder; choose one below it")
	}
	o.validateAddresses(fail)
	o.validateKubelet(fail)
	o.validateNames(fail)
	o.validateServing(fail)
	if _, err := serviceips.NewNodePorts(o.NodePorts); o.NodePorts != "" && err != nil {
		fail("--service-node-port-range: %w", err)
	}
	if o.ServiceProxy != "" && o.ServiceProxy != ProxyNFTables && o.ServiceProxy != ProxyNone {
		fail("--service-proxy: %q is neither %s nor %s (for those who run a kube-proxy)", o.ServiceProxy, ProxyNFTables,
			ProxyNone)
	}
	o.validateProxyAddresses(fail)
	if o.SigningDuration != 0 && o.SigningDuration < minSigning {
		fail("--cluster-signing-duration: %s is too short; use %s or more", o.SigningDuration, minSigning)
	}
	if _, err := o.kubeconfigAccess(); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, validateCIDRs("--service-cidr", []string{o.ServiceCIDR}, 1, 28),
		validateCIDRs("--pod-cidr", o.PodCIDRs, 0, 29),
		validateCIDRs("--cluster-cidr", o.ClusterCIDRs, 0, 24), o.validateClusterCIDRs(),
		validateCIDRs("--load-balancer-cidr", o.LoadBalancerCIDRs, 0, 32), o.Authentication.Validate(),
		o.validateEtcd(), o.validateRuntime(), o.validateDebug(), o.validateSysctls(), o.Audit.Validate(),
		o.Admission.Validate(), o.Snapshots.validate(), o.Serving.Validate(), o.validateEviction(), o.Static.validate())
	return errors.Join(errs...)
}

func (o Options) validateAddresses(fail func(format string, args ...any)) {
	if net.ParseIP(o.BindAddress) == nil {
		fail("--bind-address: %q is not an IP address", o.BindAddress)
	}
	for _, p := range []struct {
		flag string
		port int
	}{{"--secure-port", o.SecurePort}, {"--kubelet-port", o.KubeletPort}} {
		if p.port < 0 || p.port > 65535 {
			fail("%s: %d is not a port; use 1 to 65535, or 0 for any free one", p.flag, p.port)
		}
	}
	if o.SecurePort != 0 && o.SecurePort == o.KubeletPort {
		fail("--secure-port and --kubelet-port are both %d; they must differ", o.SecurePort)
	}
	if o.KubeletAddress != "" && net.ParseIP(o.KubeletAddress) == nil {
		fail("--kubelet-address: %q is not an IP address", o.KubeletAddress)
	}
	for _, ip := range append(append([]string{}, o.NodeIPs...), o.ClusterDNS...) {
		if net.ParseIP(ip) == nil {
			fail("--node-ip, --cluster-dns: %q is not an IP address", ip)
		}
	}
}

func (o Options) validateNames(fail func(format string, args ...any)) {
	if msgs := validation.IsDNS1123Subdomain(o.NodeName); len(msgs) > 0 {
		fail("--node-name: %q: %s", o.NodeName, strings.Join(msgs, "; "))
	}
	if msgs := validation.IsDNS1123Subdomain(strings.TrimSuffix(o.ClusterDomain, ".")); o.ClusterDomain != "" &&
		len(msgs) > 0 {
		fail("--cluster-domain: %q: %s", o.ClusterDomain, strings.Join(msgs, "; "))
	}
	if o.DNS != "" && o.DNS != DNSEmbedded && o.DNS != DNSNone {
		fail("--dns: %q is neither %s nor %s", o.DNS, DNSEmbedded, DNSNone)
	}
	if _, err := os.Stat(o.ResolvConf); err != nil && o.ResolvConf != resolvers.File && o.ResolvConf != "" {
		fail("--resolv-conf: %w", err)
	}
}

func (o Options) validateServing(fail func(format string, args ...any)) {
	if o.RotateServer && o.CertFile != "" {
		fail("--rotate-server-certificates and --tls-cert-file exclude one another")
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		fail("--tls-cert-file and --tls-private-key-file belong together; give both or none")
	}
	if oidc := o.Authentication.OIDC; !o.Page {
		if oidc.SecretFile != "" {
			fail("--ui-oidc-client-secret-file needs --ui: people sign in with it to the page, and nowhere else")
		}
		if len(oidc.Scopes) > 0 {
			fail("--ui-oidc-scopes needs --ui: it is the page that asks for them")
		}
	}
	for _, name := range o.ExtraSANs {
		if net.ParseIP(name) == nil && len(validation.IsDNS1123Subdomain(strings.TrimPrefix(strings.ToLower(name),
			"*."))) > 0 {
			fail("--tls-san: %q is neither a host name nor an IP address", name)
		}
	}
}

func (o Options) validateEtcd() error {
	var errs []error
	if o.EtcdQuota != 0 && o.EtcdQuota < store.MinQuota {
		errs = append(errs, fmt.Errorf("--etcd-quota-backend-bytes: %d is too small; use %d (24 MiB) or more",
			o.EtcdQuota, store.MinQuota))
	}
	if o.EtcdQuota != 0 && len(o.EtcdServers) > 0 {
		errs = append(errs,
			errors.New("--etcd-quota-backend-bytes is for the embedded etcd; with --etcd-servers, set the quota of that etcd"))
	}
	for _, s := range o.EtcdServers {
		if scheme, _, _ := strings.Cut(s, "://"); scheme != "http" && scheme != "https" && scheme != "unix" {
			errs = append(errs, fmt.Errorf("--etcd-servers: %q must begin with http://, https:// or unix://", s))
		}
	}
	for _, f := range []struct{ flag, path string }{
		{"--etcd-cafile", o.EtcdCAFile}, {"--etcd-certfile", o.EtcdCertFile}, {"--etcd-keyfile", o.EtcdKeyFile},
		{"--token-auth-file", o.TokenAuthFile},
	} {
		if f.path == "" {
			continue
		}
		if strings.HasPrefix(f.flag, "--etcd") && len(o.EtcdServers) == 0 {
			errs = append(errs, fmt.Errorf("%s is for an external etcd; use it with --etcd-servers", f.flag))
		} else if _, err := os.Stat(f.path); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.flag, err))
		}
	}
	if (o.EtcdCertFile == "") != (o.EtcdKeyFile == "") {
		errs = append(errs, errors.New("--etcd-certfile and --etcd-keyfile belong together; give both or none"))
	}
	if !strings.HasPrefix(o.EtcdPrefix, "/") {
		errs = append(errs, fmt.Errorf("--etcd-prefix: %q must begin with /", o.EtcdPrefix))
	}
	return errors.Join(errs...)
}

func (o Options) validateRuntime() error {
	if len(o.BridgeName) > 15 || strings.ContainsAny(o.BridgeName, "/ \t:%") || strings.HasPrefix(o.BridgeName, "-") {
		return fmt.Errorf("--bridge-name: %q is not an interface name (at most 15 characters, no / : %% or space, no - in front)", o.BridgeName)
	}
	if o.PullProgressDeadline != 0 && o.PullProgressDeadline < time.Second {
		return fmt.Errorf("--image-pull-progress-deadline: must be a second or more, not %s", o.PullProgressDeadline)
	}
	if o.RuntimeTimeout != 0 && o.RuntimeTimeout < time.Second {
		return fmt.Errorf("--runtime-request-timeout: must be a second or more, not %s", o.RuntimeTimeout)
	}
	if o.RuntimeEndpoint != "" && !strings.HasPrefix(o.RuntimeEndpoint, "unix://") &&
		!filepath.IsAbs(o.RuntimeEndpoint) {
		return fmt.Errorf("--container-runtime-endpoint: %q is not a socket, for example unix:///run/containerd/containerd.sock", o.RuntimeEndpoint)
	}
	if o.CgroupDriver != "" && o.CgroupDriver != "cgroupfs" && o.CgroupDriver != "systemd" {
		return fmt.Errorf("--cgroup-driver: %q is neither cgroupfs nor systemd", o.CgroupDriver)
	}
	if o.Shim != "" && o.Shim != runtime.OwnShim && o.Shim != runtime.StockShim {
		return fmt.Errorf("--runtime: %q is neither %s nor %s", o.Shim, runtime.OwnShim, runtime.StockShim)
	}
	if o.RuntimeEndpoint != "" && o.Shim == runtime.StockShim {
		return errors.New("--runtime is for the embedded runtime; the one behind --container-runtime-endpoint has shims of its own")
	}
	if o.Snapshotter != "" {
		if _, _, err := runtime.ParseSnapshotter(o.Snapshotter); err != nil {
			return fmt.Errorf("--snapshotter: %w", err)
		}
	}
	if o.RuntimeEndpoint != "" && o.Snapshotter != "" && o.Snapshotter != runtime.Overlayfs {
		return errors.New("--snapshotter is for the embedded runtime; the one behind --container-runtime-endpoint has its own")
	}
	if o.RuntimeEndpoint != "" && (len(o.PodCIDRs) > 0 || o.RegistryHostsDir != "") {
		return errors.New("--pod-cidr and --registry-hosts-dir are for the embedded runtime; configure the runtime behind --container-runtime-endpoint itself")
	}
	return o.validateCNI()
}

func (o Options) validateSysctls() error {
	if _, err := podspec.ParseSysctlPatterns(o.UnsafeSysctls); err != nil {
		return fmt.Errorf("--allowed-unsafe-sysctls: %w", err)
	}
	return nil
}

// validateCIDRs checks that there is at most one CIDR per address family, with at least `least` of them and room for
// pods.
func validateCIDRs(flag string, cidrs []string, least, longest4 int) error {
	if len(cidrs) < least {
		return fmt.Errorf("%s must not be empty", flag)
	}
	seen := map[bool]bool{}
	for _, c := range cidrs {
		p, err := netip.ParsePrefix(c)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %q is not a network such as 10.20.0.0/24", flag, c)
		case p.Masked() != p:
			return fmt.Errorf("%s: %s has bits set beyond its length; write %s", flag, c, p.Masked())
		case p.Addr().Is4() && p.Bits() > longest4:
			return fmt.Errorf("%s: %s is too small; use /%d or larger", flag, c, longest4)
		case seen[p.Addr().Is4()]:
			return fmt.Errorf("%s: give at most one IPv4 and one IPv6 network", flag)
		}
		seen[p.Addr().Is4()] = true
	}
	return nil
}

// hostAddress is the address this machine shows to others: that of its default route, else loopback.
func hostAddress() string {
	// Connecting a UDP socket sends nothing; it only makes the kernel choose a source address.
	conn, err := net.Dial("udp4", "192.0.2.1:9")
	if err != nil {
		return "127.0.0.1"
	}
	defer conn.Close()
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	if err != nil {
		return "127.0.0.1"
	}
	return host
}

// LogDirs are where pod logs and the containers' links to them lie: where log shippers look when the data folder is the
// default one, else inside the data folder, so that servers do not meet there.
func LogDirs(dataDir string) (pods, containers string) {
	root := "/var/log"
	if dataDir != DefaultDataDir {
		root = filepath.Join(dataDir, "log")
	}
	return filepath.Join(root, "pods"), filepath.Join(root, "containers")
}

// AgentKubeconfig is where an agent with this data folder writes its kubeconfig when it joins by itself.
func AgentKubeconfig(dataDir string) string { return filepath.Join(dataDir, "agent.kubeconfig") }

// CRISocket is where a server with this data folder serves its embedded runtime's CRI.
func CRISocket(dataDir string) string { return filepath.Join(dataDir, "cri.sock") }
