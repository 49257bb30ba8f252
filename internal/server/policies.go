// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/netpolicy"
	policy "github.com/wherryproject/wherry/internal/netpolicy/decide"
	"github.com/wherryproject/wherry/internal/netpolicy/tables"
)

// startPolicies has network policies be enforced: those that there are before the agent starts, since pods do with it.
func (s *Server) startPolicies(ctx context.Context) error {
	if s.parts.runtime == nil {
		return nil
	}
	c, wanted, err := s.parts.runtime.Network()
	if err != nil || !wanted {
		return err
	}
	users := insiders{server: s}
	names := s.parts.names
	enforcer := netpolicy.New(netpolicy.Config{
		Host: tables.Host{Bridge: c.Bridge, Pods: c.CIDRs}, Client: users.client(rbac.Controllers),
		Informers: s.parts.factory, Firsts: s.parts.api.Firsts(), Names: names.judged, NamesMoved: names.policies(),
		Log: s.log.With("component", "network-policies"),
	})
	if users.err != nil {
		return users.err
	}
	life, end := context.WithCancel(context.Background())
	if err := enforcer.Start(ctx, life); err != nil {
		end()
		return err
	}
	s.enforcer.Store(enforcer)
	s.parts.policies = spawn("network policies", s.failed, func(ctx context.Context) error {
		context.AfterFunc(ctx, end)
		defer end()
		return enforcer.Run(ctx)
	})
	return nil
}

// stopPolicies leaves all rules: policies hold while the server is down.
func (s *Server) stopPolicies(ctx context.Context) error { return stopAll(ctx, s.parts.policies) }

// unenforced says why network policies have no effect here; empty if they have.
func (s *Server) unenforced() string {
	if e := s.enforcer.Load(); e != nil {
		return e.Problem()
	}
	if s.opts.RuntimeEndpoint != "" {
		return "the container runtime provides the pod network, so its CNI plug-in enforces policies, if it can"
	}
	return "this server has no pod network of its own"
}

// judged is the name server as network policies see it; nil if it is not ours.
func (n *nameService) judged() *policy.Names {
	asked, listen := n.carried()
	if !asked.IsValid() {
		return nil
	}
	return &policy.Names{Asked: asked, Listen: listen}
}
