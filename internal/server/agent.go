// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/version"

	"github.com/wherryproject/wherry/internal/node"
	"github.com/wherryproject/wherry/internal/node/cgroup"
	"github.com/wherryproject/wherry/internal/node/ops"
)

// startAgent starts the node agent against the server's own API. It is up when the node is registered.
func (s *Server) startAgent(ctx context.Context) error {
	client, err := s.client("agent")
	if err != nil {
		return err
	}
	o := s.opts
	groups, err := podCgroups(o.DataDir)
	if err != nil {
		return err
	}
	cert, err := s.nodeCertificate()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(o.NodeIPs[0], strconv.Itoa(o.KubeletPort)))
	if err != nil {
		return fmt.Errorf("--kubelet-port: %w", err)
	}
	pods, links := LogDirs(o.DataDir)
	a, err := node.New(ctx, node.Config{
		NodeName: o.NodeName, NodeIPs: o.NodeIPs, Client: client, CRI: s.parts.cri,
		DataDir: o.DataDir, Logs: ops.LogFolders{Pods: pods, Links: links}, DockerConfig: filepath.Join(o.DataDir, "config.json"),
		Cgroups: groups, Listener: listener, Certificate: cert, ClientCAs: s.parts.api.CA().Pool(),
		ClusterDNS: o.ClusterDNS, ClusterDomain: o.ClusterDomain, Version: version.Get().GitVersion,
		Logger: s.log.With("component", "agent"),
	})
	if err != nil {
		listener.Close()
		return err
	}
	s.parts.agent = spawn("agent", s.failed, a.Run)
	return s.parts.agent.await(ctx, a.Ready())
}

func (s *Server) stopAgent(ctx context.Context) error { return s.parts.agent.stop(ctx) }

// client makes a client of the own API for one component, over memory.
func (s *Server) client(component string) (kubernetes.Interface, error) {
	config := rest.CopyConfig(s.parts.api.Loopback())
	config.UserAgent = "wherry-" + component
	config.QPS = -1 // it is our own server: what it cannot take it says itself
	return kubernetes.NewForConfig(config)
}

// nodeCertificate is what the kubelet's API shows, signed by the own CA.
func (s *Server) nodeCertificate() (tls.Certificate, error) {
	var ips []net.IP
	for _, ip := range s.opts.NodeIPs {
		ips = append(ips, net.ParseIP(ip))
	}
	certPEM, keyPEM, err := s.parts.api.CA().Serving([]string{s.opts.NodeName}, ips)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certPEM, keyPEM)
}

// podCgroups makes the driver of the pods' cgroups. Servers with other data folders than the default one have trees of
// their own, so that they do not meet.
func podCgroups(dataDir string) (cgroup.Driver, error) {
	host, err := cgroup.Detect()
	if err != nil {
		return nil, err
	}
	root := ""
	if dataDir != DefaultDataDir {
		sum := sha256.Sum256([]byte(dataDir))
		root = "wherry-" + hex.EncodeToString(sum[:4])
	}
	return cgroup.New(cgroup.Config{Host: host, Root: root})
}
