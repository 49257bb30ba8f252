// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

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
		Host: tables.Host{Bridge: c.Bridge, Pods: c.CIDRs}, Node: s.opts.NodeName, Networks: c.CIDRs,
		Client:    users.client(rbac.Controllers),
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
		if why := e.Problem(); why != "" {
			return why
		}
		nodes, err := s.parts.factory.Core().V1().Nodes().Lister().List(labels.Everything()) // the node controller's
		if err != nil {
			return err.Error()
		}
		return openNodes(s.opts.NodeName, nodes)
	}
	if s.opts.RuntimeEndpoint != "" {
		return "the container runtime provides the pod network, so its CNI plug-in enforces policies, if it can"
	}
	if !closed(s.ready) {
		return "this server is still starting; if it has a pod network of its own, it enforces the policy before it " +
			"starts pods"
	}
	return "this server has no pod network of its own"
}

// openNodes says on which other nodes policies have no effect: agents that have joined enforce none.
func openNodes(own string, nodes []*corev1.Node) string {
	var others []string
	for _, n := range nodes {
		if n.Name != own {
			others = append(others, n.Name)
		}
	}
	if len(others) == 0 {
		return ""
	}
	slices.Sort(others)
	return fmt.Sprintf("agents that have joined enforce none, so pods are open on node %s; it is enforced on node %s",
		strings.Join(others, ", "), own)
}

// judged is the name server as network policies see it; nil if it is not ours.
func (n *nameService) judged() *policy.Names {
	asked, listen := n.carried()
	if !asked.IsValid() {
		return nil
	}
	return &policy.Names{Asked: asked, Listen: listen}
}
