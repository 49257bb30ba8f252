// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/version"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/node"
	"github.com/wherryproject/wherry/internal/node/cgroup"
	"github.com/wherryproject/wherry/internal/node/ops"
	"github.com/wherryproject/wherry/internal/podspec"
	"github.com/wherryproject/wherry/internal/socketpair"
)

// startAgent starts the node agent against the API: the server's own, or the one that was joined. It is up when the
// node is registered.
func (s *Server) startAgent(ctx context.Context) error {
	config, err := s.agentConfig(ctx)
	if err != nil {
		return err
	}
	cert, err := s.nodeCertificate()
	if err != nil {
		return err
	}
	config.GetCertificate = cert.get
	forget, err := s.openAgent(&config)
	if err != nil {
		return err
	}
	a, err := node.New(ctx, config)
	if err != nil {
		config.Listener.Close()
		if config.ReadOnly != nil {
			config.ReadOnly.Close()
		}
		forget()
		return err
	}
	s.parts.agent = spawn("agent", s.failed, func(ctx context.Context) error {
		defer forget()
		return cert.during(ctx, a.Run)
	})
	if err := s.parts.agent.await(ctx, a.Ready()); err != nil {
		return err
	}
	s.agent.Store(a)
	return nil
}

// agentConfig is the agent's configuration, but for its certificate and where it listens.
func (s *Server) agentConfig(ctx context.Context) (c node.Config, err error) {
	o := s.opts
	pods, links := LogDirs(o.DataDir)
	c = node.Config{
		NodeName: o.NodeName, NodeIPs: o.NodeIPs, CRI: s.parts.cri,
		Attach: s.attacher(), Exec: s.execer(), Streams: s.running(), Forward: s.forwarder(), DataDir: o.DataDir,
		StoreID: s.storeID(), Logs: ops.LogFolders{Pods: pods, Links: links}, DockerConfig: registryLogins(o.DataDir),
		ImageRuntime: s.imageRuntime(), NoImageRuntime: s.parts.noImageExec, RuntimeFolder: s.runtimeFolder(),
		ClientCAs: s.parts.cluster.clientCAs, ClusterDNS: s.clusterDNS(), ClusterDomain: s.clusterDomain(),
		ResolvConf: o.ResolvConf, Names: s.namesAsked(), Version: version.Get().GitVersion, Features: s.features,
		Flags: o.Flags, ImageExecs: o.ImageExecs, MaxPods: o.MaxPods, PodMaxPIDs: o.PodMaxPIDs,
		Static: o.Static.pods(), DiskMeasured: s.parts.reserve.measured, Blockers: s.blockers(),
		Logger: s.log.With("component", "agent"),
	}
	if s.parts.runtime != nil {
		c.DropPulls = s.parts.runtime.DropPulls
	}
	if c.Client, err = s.client("agent"); err != nil {
		return c, err
	}
	if c.Annotations, err = s.nodeAnnotations(); err != nil {
		return c, err
	}
	if c.Cgroups, err = podCgroups(o.DataDir, s.cgroupDriver(ctx), o.PodMaxPIDs); err != nil {
		return c, err
	}
	return c, o.agent(&c)
}

// agent reads the flags of the agent that are words.
func (o Options) agent(c *node.Config) (err error) {
	if c.DebugCap, err = o.debugCap(); err != nil {
		return err
	}
	if c.DebugImages, err = o.debugImages(); err != nil {
		return err
	}
	if c.Eviction, err = o.eviction(); err != nil {
		return err
	}
	if c.UnsafeSysctls, err = podspec.ParseSysctlPatterns(o.UnsafeSysctls); err != nil {
		return fmt.Errorf("--allowed-unsafe-sysctls: %w", err)
	}
	if c.VerifyPulls, err = o.verifyPulls(); err != nil {
		return err
	}
	if c.MinTLSVersion, c.CipherSuites, err = o.Serving.TLS(); err != nil {
		return err
	}
	return o.kubelet(c)
}

// openAgent opens the ways to the agent. forget closes the one from this process's API server.
func (s *Server) openAgent(c *node.Config) (forget func(), err error) {
	if err := s.opts.openPorts(c); err != nil {
		return nil, err
	}
	c.Conns, c.ReadOnlyConns = s.nodeConns(), s.readOnlyConns()
	c.Local, c.LocalUser, forget = s.localKubelet()
	return forget, nil
}

// openPorts opens the agent's ports.
func (o Options) openPorts(c *node.Config) (err error) {
	c.Listener, err = net.Listen("tcp", net.JoinHostPort(o.KubeletAddress, strconv.Itoa(o.KubeletPort)))
	if err != nil {
		return fmt.Errorf("--kubelet-port: %w", err)
	}
	if port := o.Kubelet.ReadOnlyPort; port != 0 {
		c.ReadOnly, err = net.Listen("tcp", net.JoinHostPort(o.KubeletAddress, strconv.Itoa(port)))
		if err != nil {
			c.Listener.Close()
			return fmt.Errorf("--read-only-port: %w", err)
		}
	}
	return nil
}

// localKubelet makes the way from this process's API server to the agent. With another API server there is none.
func (s *Server) localKubelet() (net.Listener, user.Info, func()) {
	if s.parts.api == nil {
		return nil, nil, func() {}
	}
	l := socketpair.New()
	return l, s.parts.api.KubeletUser(), s.parts.api.ServeKubelet(s.opts.NodeName, l.Dial)
}

func (s *Server) stopAgent(ctx context.Context) error { return s.parts.agent.stop(ctx) }

// client makes a client of the API for one component; nil where there is none.
func (s *Server) client(component string) (kubernetes.Interface, error) {
	if s.opts.Standalone {
		return nil, nil
	}
	return kubernetes.NewForConfig(clientConfig(s.parts.cluster.config, component))
}

func clientConfig(config *rest.Config, component string) *rest.Config {
	config = rest.CopyConfig(config)
	config.UserAgent = "wherry-" + component
	config.QPS = -1 // what the server cannot take it says itself
	return config
}

// cgroupDriver is how the runtime makes cgroups, which the agent must do alike: "cgroupfs", "systemd", or "" for
// whatever suits this machine. A runtime too old to report it is taken to use files, as its and the kubelet's defaults
// are.
func (s *Server) cgroupDriver(ctx context.Context) string {
	switch {
	case s.opts.CgroupDriver != "":
		return s.opts.CgroupDriver
	case s.opts.RuntimeEndpoint == "":
		return ""
	}
	r, err := s.parts.cri.Runtime.RuntimeConfig(ctx, &runtimeapi.RuntimeConfigRequest{})
	if err == nil && r.GetLinux().GetCgroupDriver() == runtimeapi.CgroupDriver_SYSTEMD {
		return "systemd"
	}
	return "cgroupfs"
}

// podCgroups makes the driver of the pods' cgroups. Servers with other data folders than the default one have trees of
// their own, so that they do not meet.
func podCgroups(dataDir, driver string, maxPIDs int64) (cgroup.Driver, error) {
	host, err := cgroup.Detect()
	if err != nil {
		return nil, err
	}
	if driver != "" {
		host.Systemd = driver == "systemd"
	}
	root := ""
	if dataDir != DefaultDataDir {
		sum := sha256.Sum256([]byte(dataDir))
		root = "wherry-" + hex.EncodeToString(sum[:4])
	}
	return cgroup.New(cgroup.Config{Host: host, Root: root, Limits: cgroup.Limits{PodPIDs: max(maxPIDs, 0),
		HugePageSizes: host.HugePages}})
}
