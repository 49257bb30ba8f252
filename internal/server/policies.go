// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wherryproject/wherry/internal/api/firsts"
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
	informers := s.parts.factory
	if s.parts.api == nil {
		if informers = s.parts.followed; informers == nil { // the cluster's policies are its CNI plug-in's matter
			return tables.Host{Bridge: c.Bridge, Pods: c.CIDRs}.Remove()
		}
	}
	client, err := s.component(rbac.Controllers, "network-policies")
	if err != nil {
		return err
	}
	names, log := s.parts.names, s.log.With("component", "network-policies")
	enforcer := netpolicy.New(netpolicy.Config{
		Host: tables.Host{Bridge: c.Bridge, Pods: c.CIDRs}, Node: s.opts.NodeName, Networks: c.CIDRs,
		Client: client, Informers: informers, Firsts: s.firsts(), Names: names.judged, NamesMoved: names.policies(),
		Log: log,
	})
	life, end := context.WithCancel(context.Background())
	later, err := s.startEnforcer(ctx, life, enforcer, log)
	if err != nil {
		end()
		return err
	}
	s.enforcer.Store(enforcer)
	s.parts.policies = spawn("network policies", s.failed, func(ctx context.Context) error {
		context.AfterFunc(ctx, end)
		defer end()
		if later {
			if err := enforcer.Start(ctx, life); err != nil {
				return err
			}
			log.Info("the API server answers: network policies are enforced as it says")
		}
		return enforcer.Run(ctx)
	})
	return nil
}

// firsts signals the first objects of a kind; nil with another process's API server.
func (s *Server) firsts() *firsts.Board {
	if s.parts.api == nil {
		return nil
	}
	return s.parts.api.Firsts()
}

// startEnforcer has policies be enforced before pods start. An agent does not wait for ever: while its API server does
// not answer, those that a process before has enforced are, and later says that the others are to be asked for.
func (s *Server) startEnforcer(ctx, life context.Context, e *netpolicy.Enforcer, log *slog.Logger) (later bool,
	err error) {
	if s.parts.api != nil {
		return false, e.Start(ctx, life)
	}
	first, cancel := context.WithTimeout(ctx, servicesFirst)
	defer cancel()
	err = e.Start(first, life)
	if err == nil || ctx.Err() != nil {
		return false, ctx.Err()
	}
	log.Warn("the API server does not tell of network policies yet: those of before are enforced", "err", err)
	return true, nil
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
	if s.opts.foreignNetwork() {
		return "a CNI plug-in of the cluster's or of the container runtime's provides the pod network, so that enforces policies, if it can"
	}
	if !closed(s.ready) {
		return "this server is still starting; if it has a pod network of its own, it enforces the policy before it " +
			"starts pods"
	}
	return "this server has no pod network of its own"
}

// enforcesPolicies is an annotation of nodes whose agents enforce network policies.
const enforcesPolicies = "wherry.dev/network-policies"

// openNodes says on which other nodes policies have no effect: those whose agents do not say that they enforce them.
func openNodes(own string, nodes []*corev1.Node) string {
	var others []string
	for _, n := range nodes {
		if n.Name != own && n.Annotations[enforcesPolicies] == "" {
			others = append(others, n.Name)
		}
	}
	if len(others) == 0 {
		return ""
	}
	slices.Sort(others)
	return fmt.Sprintf("agents without a pod network of their own enforce none, so pods are open on node %s; it is enforced on node %s",
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
