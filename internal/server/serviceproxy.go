// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/controllers/loadbalancer"
	"github.com/wherryproject/wherry/internal/controllers/nodeipam"
	"github.com/wherryproject/wherry/internal/runtime/network"
	"github.com/wherryproject/wherry/internal/serviceproxy"
	"github.com/wherryproject/wherry/internal/serviceproxy/tables"
)

// Values of --service-proxy.
const (
	ProxyNFTables = "nftables" // ours
	ProxyNone     = "none"     // somebody else's, such as a kube-proxy
)

// carriesServices says whether this server carries services, or this agent those of a wherry server: it has a pod
// network of its own, and the settings name nobody else for it.
func (s *Server) carriesServices() bool {
	return (s.parts.api != nil || s.parts.member.Server != nil) && s.parts.runtime != nil &&
		s.opts.ServiceProxy != ProxyNone
}

// startProxy has the node carry services.
func (s *Server) startProxy(context.Context) error {
	if s.parts.runtime == nil {
		return nil
	}
	c, wanted, err := s.parts.runtime.Network()
	if err != nil || !wanted {
		return err
	}
	host := tables.Host{Bridge: c.Bridge, Pods: c.CIDRs}
	if !s.carriesServices() {
		return host.Remove() // of a start before
	}
	if carrier := s.parts.carrier; carrier != nil {
		host.Cgroup = tables.Cgroup{ID: carrier.pods.ID, Depth: carrier.pods.Depth}
	}
	client, err := s.component(rbac.ServiceProxy, "service-proxy")
	if err != nil {
		return err
	}
	proxy := serviceproxy.New(serviceproxy.Config{
		Node: s.opts.NodeName, Pods: c.CIDRs, Reserved: s.reserver(c.CIDRs), Busy: network.Taken, Host: host,
		Seen:   s.parts.learnt.seen,
		Client: client, Conns: s.healthConns(), Log: s.log.With("component", "service-proxy"),
	})
	s.parts.proxy = spawn("service proxy", s.failed, proxy.Run)
	return nil
}

// reserver tells the networks that no service takes external addresses from: those of services, and what nodes get
// their pod networks from, unless load balancers are to have addresses there.
func (s *Server) reserver(pods []netip.Prefix) func() []netip.Prefix {
	nodes := parsePrefixes(s.opts.ClusterCIDRs)
	if len(nodes) == 0 {
		nodes = nodeipam.Around(pods)
	}
	given := parsePrefixes(s.opts.LoadBalancerCIDRs)
	nodes = slices.DeleteFunc(nodes, func(p netip.Prefix) bool {
		return slices.ContainsFunc(given, p.Overlaps)
	})
	return func() []netip.Prefix { return append(s.servicesNow(), nodes...) }
}

// balancerPool is where services of type LoadBalancer get their addresses.
func (o Options) balancerPool() (loadbalancer.Pool, error) {
	pool := loadbalancer.Pool{Busy: func(at netip.AddrPort, proto corev1.Protocol) string {
		return network.Taken(at, string(proto))
	}}
	for _, text := range o.LoadBalancerCIDRs {
		r, err := netip.ParsePrefix(text)
		if err != nil {
			return pool, fmt.Errorf("--load-balancer-cidr: %w", err)
		}
		pool.Ranges = append(pool.Ranges, r)
	}
	for _, text := range o.NodeIPs {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return pool, fmt.Errorf("--node-ip: %w", err)
		}
		pool.Machine = append(pool.Machine, a.Unmap())
	}
	return pool, nil
}

// stopProxy leaves all rules: services go on while the server is down.
func (s *Server) stopProxy(ctx context.Context) error { return stopAll(ctx, s.parts.proxy) }
