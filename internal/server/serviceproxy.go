// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net"
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
	return (s.parts.api != nil || s.parts.member.Server != nil) && s.ownNetwork() &&
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
	host := tables.Host{Bridge: c.Bridge, Pods: c.CIDRs, Liberal: tables.Liberal()}
	if !s.carriesServices() {
		for _, p := range s.opts.proxyAddresses() {
			if p.at != "" { // the agent of another cluster, whose services a kube-proxy carries
				s.log.Warn("nobody answers there: this node does not carry services itself", "flag", p.flag, "address",
					p.at)
			}
		}
		return host.Remove() // of a start before
	}
	if carrier := s.parts.carrier; carrier != nil {
		host.Cgroup = tables.Cgroup{ID: carrier.pods.ID, Depth: carrier.pods.Depth}
	}
	client, err := s.component(rbac.ServiceProxy, "service-proxy")
	if err != nil {
		return err
	}
	own, err := s.opts.listenAsProxy()
	if err != nil {
		return err
	}
	proxy := serviceproxy.New(serviceproxy.Config{
		Node: s.opts.NodeName, Pods: c.CIDRs, Reserved: s.reserver(c.CIDRs), Busy: network.Taken, Host: host,
		Seen: s.parts.learnt.seen, Healthz: own[0], Metrics: own[1],
		Client: client, Conns: s.healthConns(), Log: s.log.With("component", "service-proxy"),
	})
	s.parts.proxy = spawn("service proxy", s.failed, proxy.Run)
	return nil
}

// proxyAddress is where the service proxy answers as a kube-proxy does, and the flag that says so.
type proxyAddress struct{ flag, at string }

func (o Options) proxyAddresses() []proxyAddress {
	return []proxyAddress{{"--proxy-healthz-address", o.ProxyHealthz}, {"--proxy-metrics-address", o.ProxyMetrics}}
}

func (o Options) validateProxyAddresses(fail func(format string, args ...any)) {
	for _, p := range o.proxyAddresses() {
		if p.at == "" {
			continue
		}
		if at, err := netip.ParseAddrPort(p.at); err != nil || at.Port() == 0 {
			fail("%s: %q is not an IP address with a port; use for example 127.0.0.1:10256", p.flag, p.at)
		}
		switch {
		case o.ServiceProxy == ProxyNone:
			fail("%s is of Wherry's own service proxy, which --service-proxy=none turns off; leave out one of them",
				p.flag)
		case o.foreignNetwork():
			fail("%s is of Wherry's own service proxy, which does not run with --container-runtime-endpoint or --cni-conf-dir; leave it out",
				p.flag)
		}
	}
}

// listenAsProxy opens these addresses, in that order; nil: one that is not wanted.
func (o Options) listenAsProxy() ([]net.Listener, error) {
	list := o.proxyAddresses()
	out := make([]net.Listener, len(list))
	for i, p := range list {
		if p.at == "" {
			continue
		}
		l, err := net.Listen("tcp", p.at)
		if err != nil {
			for _, l := range out[:i] {
				if l != nil {
					_ = l.Close()
				}
			}
			return nil, fmt.Errorf("%s: %w; choose another port, or leave the flag out", p.flag, err)
		}
		out[i] = l
	}
	return out, nil
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

// balancerPool is where services of type LoadBalancer get their addresses; nil: not from this server, which does not
// carry them.
func (o Options) balancerPool() (*loadbalancer.Pool, error) {
	if o.ServiceProxy == ProxyNone || o.foreignNetwork() {
		return nil, nil
	}
	pool := &loadbalancer.Pool{Busy: func(at netip.AddrPort, proto corev1.Protocol) string {
		return network.Taken(at, string(proto))
	}}
	for _, text := range o.LoadBalancerCIDRs {
		r, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--load-balancer-cidr: %w", err)
		}
		pool.Ranges = append(pool.Ranges, r)
	}
	for _, text := range o.NodeIPs {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("--node-ip: %w", err)
		}
		pool.Machine = append(pool.Machine, a.Unmap())
	}
	return pool, nil
}

// stopProxy leaves all rules: services go on while the server is down.
func (s *Server) stopProxy(ctx context.Context) error { return stopAll(ctx, s.parts.proxy) }
