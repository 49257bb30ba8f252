// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/netip"
	"slices"
	"sync"

	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/membership"
)

// serviceNetworks tells the networks of services' addresses, and by a channel that they have changed.
type serviceNetworks func(context.Context) ([]netip.Prefix, <-chan struct{})

// serviceNetworks tells those of the services which this process carries; nil if they are somebody else's matter. A
// server is told of changes. An agent asks at each of its looks, and when it sees a service outside of what it knows.
func (s *Server) serviceNetworks(client kubernetes.Interface) serviceNetworks {
	if s.parts.api != nil {
		return func(context.Context) ([]netip.Prefix, <-chan struct{}) { return s.parts.api.ServiceNetworks() }
	}
	m := s.parts.member.Server
	if m == nil || !s.carriesServices() || len(m.ServiceCIDRs) == 0 {
		return nil
	}
	s.parts.learnt = &learntNetworks{client: client, stale: make(chan struct{}, 1),
		known: parsePrefixes(m.ServiceCIDRs)}
	return s.parts.learnt.ask
}

// servicesNow are the networks of services as far as this process knows them.
func (s *Server) servicesNow() []netip.Prefix {
	switch m := s.parts.member.Server; {
	case s.parts.api != nil:
		known, _ := s.parts.api.ServiceNetworks()
		return known
	case s.parts.learnt != nil:
		return s.parts.learnt.now()
	case m != nil:
		return parsePrefixes(m.ServiceCIDRs)
	}
	return nil
}

// learntNetworks are those that an agent has learnt of its server.
type learntNetworks struct {
	client kubernetes.Interface
	stale  chan struct{} // holds a token when there are others, it seems

	mu    sync.Mutex
	known []netip.Prefix
}

// ask asks for them. What was known holds when the server does not answer.
func (l *learntNetworks) ask(ctx context.Context) ([]netip.Prefix, <-chan struct{}) {
	cluster, err := membership.Cluster(ctx, l.client)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && cluster != nil && len(cluster.ServiceCIDRs) > 0 {
		l.known = parsePrefixes(cluster.ServiceCIDRs)
	}
	return slices.Clone(l.known), l.stale
}

func (l *learntNetworks) now() []netip.Prefix {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.known)
}

// seen hears of a service's address.
func (l *learntNetworks) seen(a netip.Addr) {
	if l == nil || slices.ContainsFunc(l.now(), func(p netip.Prefix) bool { return p.Contains(a) }) {
		return
	}
	select {
	case l.stale <- struct{}{}:
	default:
	}
}
