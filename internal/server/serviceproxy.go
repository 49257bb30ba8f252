// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/serviceproxy"
	"github.com/wherryproject/wherry/internal/serviceproxy/tables"
)

// Values of --service-proxy.
const (
	ProxyNFTables = "nftables" // ours
	ProxyNone     = "none"     // somebody else's, such as a kube-proxy
)

// carriesServices says whether this server carries services: it has a pod network of its own, and nobody else is said
// to do it.
func (s *Server) carriesServices() bool {
	return s.parts.api != nil && s.parts.runtime != nil && s.opts.ServiceProxy != ProxyNone
}

// startProxy has the node carry services.
func (s *Server) startProxy(context.Context) error {
	if s.parts.runtime == nil {
		return nil
	}
	network, wanted, err := s.parts.runtime.Network()
	if err != nil || !wanted {
		return err
	}
	host := tables.Host{Bridge: network.Bridge}
	if !s.carriesServices() {
		return host.Remove() // of a start before
	}
	if c := s.parts.carrier; c != nil {
		host.Cgroup = tables.Cgroup{ID: c.pods.ID, Depth: c.pods.Depth}
	}
	users := insiders{server: s}
	proxy := serviceproxy.New(serviceproxy.Config{
		Node: s.opts.NodeName, Pods: network.CIDRs, Host: host, Client: users.client(rbac.ServiceProxy),
		Log: s.log.With("component", "service-proxy"),
	})
	if users.err != nil {
		return users.err
	}
	s.parts.proxy = spawn("service proxy", s.failed, proxy.Run)
	return nil
}

// stopProxy leaves all rules: services go on while the server is down.
func (s *Server) stopProxy(ctx context.Context) error { return stopAll(ctx, s.parts.proxy) }
