// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/controllers/nodeipam"
	"github.com/wherryproject/wherry/internal/membership"
	"github.com/wherryproject/wherry/internal/noderoutes"
	"github.com/wherryproject/wherry/internal/runtime"
	"github.com/wherryproject/wherry/internal/runtime/network"
)

// startMember has an agent learn what its cluster is, before it makes a pod network: the cluster may give it one.
func (s *Server) startMember(ctx context.Context) error {
	if s.opts.foreignNetwork() {
		return nil // the network is that runtime's, or of the cluster's plug-ins
	}
	client, err := s.client("membership")
	if err != nil {
		return err
	}
	config, err := s.memberConfig(client)
	if err != nil {
		return err
	}
	m, err := membership.Learn(ctx, config)
	if errors.Is(err, membership.ErrNoNetwork) {
		return &Refusal{Code: 1, What: err.Error(),
			Do: "see why with kubectl describe node " + s.opts.NodeName +
				"; the server's --cluster-cidr may be used up"}
	}
	if err != nil {
		return err
	}
	s.parts.member = m
	log := s.log.With("component", "membership")
	switch {
	case len(m.Given) > 0:
		log.Warn("pods run with addresses of another network than the cluster has given this node, and other nodes do not reach them: restart the agent when none runs, for example after kubectl drain",
			"network", nodeipam.Join(m.Networks), "given", nodeipam.Join(m.Given))
	case !m.Asked:
		log.Warn("the API server does not answer yet; what was learnt of the cluster at an earlier start holds")
	}
	return nil
}

func (s *Server) memberConfig(client kubernetes.Interface) (membership.Config, error) {
	registration, err := s.opts.Kubelet.registration()
	if err != nil {
		return membership.Config{}, err
	}
	c := membership.Config{Client: client, Node: s.opts.NodeName,
		Object: func() *corev1.Node { return registration.Object(s.opts.NodeName) },
		Chosen: parsePrefixes(s.opts.PodCIDRs), File: filepath.Join(s.opts.DataDir, "cluster.json")}
	record, err := readNetwork(s.opts.DataDir)
	if err != nil {
		return c, nil // the first start
	}
	c.Before = parsePrefixes(record.CIDRs)
	c.Held, err = heldNetworks(s.opts.DataDir, record)
	return c, err
}

// heldNetworks are those of a data folder's network that pods have addresses of.
func heldNetworks(dataDir string, record podNetwork) (out []netip.Prefix, err error) {
	c, wanted, err := runtime.Config{DataDir: dataDir, BridgeName: record.Bridge, PodCIDRs: record.CIDRs}.Network()
	if err != nil || !wanted {
		return nil, err
	}
	leases, err := network.Leases(c)
	if err != nil {
		return nil, err
	}
	for _, p := range c.CIDRs {
		for _, l := range leases {
			if p.Contains(l.Addr) {
				out = append(out, p)
				break
			}
		}
	}
	return out, nil
}

// parsePrefixes leaves out what is none: flags are validated, and a record that cannot be read counts as none.
func parsePrefixes(list []string) (out []netip.Prefix) {
	for _, text := range list {
		if p, err := netip.ParsePrefix(text); err == nil {
			out = append(out, p)
		}
	}
	return out
}

func texts(list []netip.Prefix) (out []string) {
	for _, p := range list {
		out = append(out, p.String())
	}
	return out
}

// defaultDomain is the domain of clusters by custom.
const defaultDomain = "cluster.local"

// clusterDomain is that of names in the cluster: a wherry server's own, unless the user has set another.
func (s *Server) clusterDomain() string {
	if m := s.parts.member.Server; m != nil && m.ClusterDomain != "" &&
		strings.TrimSuffix(s.opts.ClusterDomain, ".") == defaultDomain {
		return m.ClusterDomain
	}
	return s.opts.ClusterDomain
}

// nodeAnnotations are what the node's object says of this machine's network: which one its pods have, and whether
// policies are enforced there.
func (s *Server) nodeAnnotations() (map[string]string, error) {
	if s.parts.runtime == nil {
		return nil, nil
	}
	c, wanted, err := s.parts.runtime.Network()
	if err != nil || !wanted {
		return nil, err
	}
	out := map[string]string{nodeipam.RequestedNetworks: nodeipam.Join(c.CIDRs)}
	if s.enforcer.Load() != nil {
		out[enforcesPolicies] = "enforced"
	}
	return out, nil
}

// startRoutes has the pods of other nodes be reached by their own addresses, and those here from there.
func (s *Server) startRoutes(context.Context) error {
	if s.parts.runtime == nil {
		return nil
	}
	_, wanted, err := s.parts.runtime.Network()
	if err != nil || !wanted {
		return err
	}
	factory := s.parts.factory
	if s.parts.api == nil {
		if factory = s.parts.followed; factory == nil { // another cluster's routes are its own matter
			_, err := s.parts.runtime.Reach(nil)
			return err
		}
	}
	follower := noderoutes.New(noderoutes.Config{Node: s.opts.NodeName, Nodes: factory.Core().V1().Nodes().Informer(),
		Reach: s.parts.runtime.Reach, Log: s.log.With("component", "node-routes")})
	s.parts.routes = spawn("routes to nodes", s.failed, func(ctx context.Context) error {
		factory.Start(ctx.Done())
		return follower.Run(ctx)
	})
	return nil
}

// stopRoutes leaves the routes: pods go on while the server is down.
func (s *Server) stopRoutes(ctx context.Context) error { return stopAll(ctx, s.parts.routes) }
