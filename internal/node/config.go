// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/connlimit"
	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/features"
	"github.com/wherryproject/wherry/internal/names/asked"
	"github.com/wherryproject/wherry/internal/node/cgroup"
	"github.com/wherryproject/wherry/internal/node/httpapi"
	"github.com/wherryproject/wherry/internal/node/image"
	"github.com/wherryproject/wherry/internal/node/imageexec"
	"github.com/wherryproject/wherry/internal/node/ops"
	"github.com/wherryproject/wherry/internal/node/pullrecord"
	"github.com/wherryproject/wherry/internal/node/shutdown"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Config is what an Agent works with.
type Config struct {
	NodeName string
	NodeIPs  []string // the primary one first
	// Annotations are those that the node's object has from this agent.
	Annotations map[string]string
	// Registration is what that object is made with besides.
	Registration Registration
	// Client is of the API server; nil: there is none, and the agent runs static pods alone (PL-31).
	Client kubernetes.Interface
	CRI    *cri.Client
	// of a runtime that runs commands in containers without the CRI's streams; nil: through the CRI
	Exec    httpapi.Execer
	Streams httpapi.Streams   // of one that attaches without them; nil: through the CRI
	Forward httpapi.Forwarder // of one that reaches pods' ports without the CRI's streams; nil: through the CRI
	Attach  httpapi.Attacher  // of a runtime that keeps output for those who attach (EC-16); nil: through the CRI

	DataDir string         // pods' volumes lie in <DataDir>/pods, seccomp profiles in <DataDir>/seccomp
	Logs    ops.LogFolders // of pods
	// of the store that the pods come from; "": nothing is recorded beside it (package record)
	StoreID      string
	DockerConfig string // the node's own registry credentials: path of a docker config.json, "" for none
	// ImageRuntime is what image exec needs of the runtime; nil: it is not implemented.
	ImageRuntime imageexec.Runtime
	// NoImageRuntime says why there is none, for people.
	NoImageRuntime string
	// RuntimeFolder is that of the embedded runtime: pods with users of their own need a way to it. "": not known.
	RuntimeFolder string
	Cgroups       cgroup.Driver // nil: pods go where the runtime puts them

	// Listener is where the kubelet's API is served; its port is published as the node's endpoint.
	Listener net.Listener
	Conns    *connlimit.Limiter // keeps connections to Listener within limits; nil: there are none
	// ReadOnly is where pods, figures and health are shown to anybody; nil: nowhere.
	ReadOnly      net.Listener
	ReadOnlyConns *connlimit.Limiter // keeps connections to ReadOnly within limits; nil: there are none
	// SystemLogs shows the machine's logs, and answers questions about them; nil: pods' logs are shown, no others.
	SystemLogs http.Handler
	// Local is where the API server of this process reaches the kubelet's API, as LocalUser; nil: there is none.
	Local       net.Listener
	LocalUser   user.Info
	Certificate tls.Certificate
	// GetCertificate is asked at every connection, in place of Certificate, where that is renewed.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	ClientCAs      *x509.CertPool
	MinTLSVersion  uint16   // of the kubelet's API; 0: TLS 1.3
	CipherSuites   []uint16 // of TLS 1.2; none: Go's

	Static StaticPods // where pods of the node's own are from

	// CPUs says who has CPUs to himself, and which are kept for the system.
	CPUs CPUManager
	// Placing says how CPUs, devices and memory are brought together on NUMA nodes.
	Placing Placing

	// KubeletFolder is where programs on the node look for the kubelet's sockets: device plug-ins to register, and
	// those that ask who has which device. "": there are none.
	KubeletFolder string

	ImageExecs  imageexec.Limits // how many image execs there may be at the same time
	LogMaxSize  int64            // bytes of a container's log before it is rotated; 0: Kubernetes' default
	LogMaxFiles int              // of a container, with the one that is written; 0: Kubernetes' default

	Shutdown   []shutdown.Period // in which order pods end when the machine goes down; none: they are not ended
	PowerFails <-chan os.Signal  // gets SIGPWR; nil: the signal is not handled

	LimitedSwap bool // burstable containers may swap (LimitedSwap); else nobody (NoSwap)

	PodMaxPIDs int64      // as the cgroup driver has it, for /configz; 0: no limit
	DebugCap   cgroup.Cap // of each debug container
	// VerifyPulls says for which images on the node pods must show their credentials.
	VerifyPulls pullrecord.Policy
	DebugImages image.AllowList // of debug containers; empty: all

	UnsafeSysctls podspec.SysctlPatterns // that pods may set besides the safe ones

	Eviction Eviction // what happens when a resource runs out
	// DiskMeasured, if set, is called with how many bytes are free on the disk of DataDir, at least every ten seconds.
	// It must be quick.
	DiskMeasured func(free int64)
	// DropPulls, if set, gives up what image pulls that failed have left for the next ones to go on from. It is called
	// when the disk of images needs room.
	DropPulls func(context.Context) error
	// Blockers, if set, names the firewall chains that may drop pods' packets. It is asked every ten seconds.
	Blockers func() ([]string, error)

	ClusterDNS []string
	ResolvConf string // names the node's own resolvers; empty: /etc/resolv.conf
	// Names are those that a pod has looked up; nil: nobody knows
	Names         func(ctx context.Context, uid string) ([]asked.Asked, error)
	ClusterDomain string
	MaxPods       int               // 0: 110
	Version       string            // of the agent, as the node's kubeletVersion
	Features      *features.Gates   // nil: all at their defaults
	Flags         map[string]string // as given, for /configz
	Logger        *slog.Logger
}

// podPIDs is the limit of a pod's processes as the kubelet's configuration has it.
func (c *Config) podPIDs() int64 {
	if c.PodMaxPIDs <= 0 {
		return -1
	}
	return c.PodMaxPIDs
}

// DefaultMaxPods is how many pods a node takes by default.
const DefaultMaxPods = 110

func (c *Config) check() error {
	switch {
	case c.NodeName == "":
		return errors.New("agent: a node name is required")
	case c.CRI == nil:
		return errors.New("agent: a client of the runtime is required")
	case c.DataDir == "" || c.Logs.Pods == "":
		return errors.New("agent: folders for data and logs are required")
	case c.Listener == nil:
		return errors.New("agent: a listener for the kubelet's API is required")
	}
	if c.MaxPods == 0 {
		c.MaxPods = DefaultMaxPods
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

func (c *Config) podsFolder() string { return podsFolder(c.DataDir) }

func podsFolder(dataDir string) string { return filepath.Join(dataDir, "pods") }
