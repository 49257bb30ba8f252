// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/controllers/nodeipam"
	"github.com/wherryproject/wherry/internal/runtime/network"
)

// validateClusterCIDRs refuses networks that nodes cannot get parts of.
func (o Options) validateClusterCIDRs() error {
	var errs []error
	for _, c := range parsePrefixes(o.ClusterCIDRs) {
		if s, err := netip.ParsePrefix(o.ServiceCIDR); err == nil && s.Overlaps(c) {
			errs = append(errs, fmt.Errorf("--cluster-cidr: %s overlaps with --service-cidr %s: choose another one", c,
				s))
		}
		if c.Bits() < 8 || c.Addr().Is6() && (c.Bits() < 32 || c.Bits() > 64) {
			errs = append(errs,
				fmt.Errorf("--cluster-cidr: %s is not of a size for nodes: use /8 to /24, or /32 to /64 of IPv6", c))
		}
	}
	own := parsePrefixes(o.PodCIDRs)
	for _, p := range own {
		if len(o.ClusterCIDRs) > 0 && !within(p, parsePrefixes(o.ClusterCIDRs)) {
			errs = append(errs, fmt.Errorf("--pod-cidr: %s, the server's own part, is not in --cluster-cidr", p))
		}
	}
	return errors.Join(errs...)
}

func within(p netip.Prefix, ranges []netip.Prefix) bool {
	return slices.ContainsFunc(ranges,
		func(r netip.Prefix) bool { return r.Bits() <= p.Bits() && r.Contains(p.Addr()) })
}

// partOfCluster is the server's own part of --cluster-cidr: that of before, if it has one of each, else the first that
// is free on this machine.
func (s *Server) partOfCluster() ([]string, error) {
	ranges := parsePrefixes(s.opts.ClusterCIDRs)
	bridge := s.opts.BridgeName
	if record, err := readNetwork(s.opts.DataDir); err == nil {
		bridge = record.Bridge
		before := parsePrefixes(record.CIDRs)
		if ownPart(before, ranges) {
			return record.CIDRs, nil
		}
		held, err := heldNetworks(s.opts.DataDir, record)
		if err != nil {
			return nil, err
		}
		if len(held) > 0 {
			return nil,
				&Refusal{Code: 1, What: fmt.Sprintf("pods run with addresses of %s, which is not in --cluster-cidr",
					nodeipam.Join(held)),
					Do: "start without it and delete them first, or choose one that this network is in"}
		}
	}
	taken, err := network.Routes(bridge)
	if err != nil {
		return nil, err
	}
	facts := nodeipam.Facts{Ranges: ranges, Avoid: taken, Nodes: []nodeipam.Node{{Name: s.opts.NodeName}}}
	r := nodeipam.Decide(facts)[0]
	if r.Problem != "" {
		return nil,
			&Refusal{Code: 1,
				What: "no part of --cluster-cidr is free on this machine, which has routes to all of them",
				Do:   "choose another one, or the server's own part with --pod-cidr"}
	}
	return texts(r.Networks), nil
}

// ownPart reports whether networks are one of each range.
func ownPart(networks, ranges []netip.Prefix) bool {
	return len(networks) == len(ranges) && !slices.ContainsFunc(networks,
		func(p netip.Prefix) bool { return !within(p, ranges) })
}

// startNodeIPAM has nodes be given the networks of their pods.
func (s *Server) startNodeIPAM(context.Context) error {
	config, err := s.nodeIPAM()
	if err != nil {
		return err
	}
	users := loopbackClients{server: s}
	c := nodeipam.New(users.client(rbac.NodeIPAM), s.parts.factory, config, s.log.With("component", "controllers"))
	if users.err != nil {
		return users.err
	}
	s.parts.nodeipam = spawn("networks of nodes", s.failed, func(ctx context.Context) error {
		s.parts.factory.Start(ctx.Done())
		return c.Run(ctx)
	})
	return nil
}

// nodeIPAM is what there is to give: by default what is around the server's own network, or, without one, around the
// one that it would have.
func (s *Server) nodeIPAM() (nodeipam.Config, error) {
	config := nodeipam.Config{Own: s.opts.NodeName, Ranges: parsePrefixes(s.opts.ClusterCIDRs)}
	config.Never = func() []netip.Prefix {
		services, _ := s.parts.api.ServiceNetworks()
		return services
	}
	bridge := ""
	if s.parts.runtime != nil {
		c, wanted, err := s.parts.runtime.Network()
		if err != nil {
			return config, err
		}
		if wanted {
			bridge, config.OwnNetworks = c.Bridge, c.CIDRs
		}
	}
	config.Avoid = func() ([]netip.Prefix, error) { return network.Routes(bridge) }
	if len(config.Ranges) > 0 {
		return config, nil
	}
	around := config.OwnNetworks
	if len(around) == 0 {
		_, p, err := network.Derive(s.opts.DataDir, nil)
		if err != nil {
			return config, err
		}
		around = []netip.Prefix{p}
	}
	config.Ranges = nodeipam.Around(around)
	return config, nil
}

func (s *Server) stopNodeIPAM(ctx context.Context) error { return stopAll(ctx, s.parts.nodeipam) }
