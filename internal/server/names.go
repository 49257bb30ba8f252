// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/controllers/servicenames"
	"github.com/wherryproject/wherry/internal/names"
	"github.com/wherryproject/wherry/internal/names/asked"
	"github.com/wherryproject/wherry/internal/names/link"
	"github.com/wherryproject/wherry/internal/names/wire"
	"github.com/wherryproject/wherry/internal/release"
	"github.com/wherryproject/wherry/internal/runtime/network"
)

// Values of Options.DNS.
const (
	DNSEmbedded = "embedded"
	DNSNone     = "none"
)

// nameService is the way from pods to the resolver of names. A nil one is none.
type nameService struct {
	resolver link.Resolver
	started  bool // by this start

	poke  chan struct{} // it is to be carried anew
	moves chan struct{} // the same, for network policies

	mu      sync.Mutex
	process netip.AddrPort // where it listens
	ask     netip.Addr     // whom pods ask: the address of service kube-dns
	at      netip.AddrPort // where that leads to; not valid: that is somebody else's matter
}

// carried is the address that pods ask, and where they are answered.
func (n *nameService) carried() (service, resolver netip.AddrPort) {
	if n == nil {
		return service, resolver
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ask.IsValid() || !n.at.IsValid() {
		return service, resolver
	}
	return netip.AddrPortFrom(n.ask, servicenames.Port), n.at
}

// changed signals that it is to be carried anew.
func (n *nameService) changed() <-chan struct{} {
	if n == nil {
		return nil
	}
	return n.poke
}

// policies signals network policies that it is elsewhere.
func (n *nameService) policies() <-chan struct{} {
	if n == nil {
		return nil
	}
	return n.moves
}

func (n *nameService) set(ask netip.Addr, at netip.AddrPort) {
	n.mu.Lock()
	same := n.ask == ask && n.at == at
	n.ask, n.at = ask, at
	n.mu.Unlock()
	if same {
		return
	}
	for _, who := range []chan struct{}{n.poke, n.moves} {
		select {
		case who <- struct{}{}:
		default:
		}
	}
}

// where is where pods are answered, and moved says so.
func (n *nameService) where() netip.AddrPort {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

func (n *nameService) moved(to netip.AddrPort) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.process = to
}

// servers are the resolvers of pods, for the agent.
func (n *nameService) servers() []string {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ask.IsValid() {
		return nil
	}
	return []string{n.ask.String()}
}

// clusterDNS is whom pods ask.
func (s *Server) clusterDNS() []string {
	if len(s.opts.ClusterDNS) > 0 {
		return s.opts.ClusterDNS
	}
	if m := s.parts.member.Server; m != nil && len(m.ClusterDNS) > 0 {
		return m.ClusterDNS
	}
	return s.parts.names.servers()
}

// namesAsked finds out which names a pod has looked up; nil without a resolver of our own.
func (s *Server) namesAsked() func(context.Context, string) ([]asked.Asked, error) {
	n := s.parts.names
	if n == nil || s.parts.api == nil { // the resolver is another machine's
		return nil
	}
	return func(ctx context.Context, uid string) ([]asked.Asked, error) {
		answer, err := link.Ask(ctx, n.resolver.Dir, uid)
		if err == nil && answer.Off {
			err = errors.New("this server does not remember which names pods look up: it runs with --dns-log=false")
		}
		return answer.Asked, err
	}
}

// startResolver starts the process that answers pods, or finds that of a server before. It does not wait for the API:
// the process is there before anybody knows a name.
func (s *Server) startResolver(ctx context.Context) error {
	dir := wire.Dir(s.opts.DataDir)
	if s.opts.DNS == DNSNone || len(s.opts.Resolver) == 0 {
		return link.End(ctx, dir)
	}
	log := s.log.With("component", "names")
	address, err := s.resolverAddress()
	if err != nil {
		log.Warn("pods cannot look up the names of services", "err", err)
		return link.End(ctx, dir)
	}
	program, err := programIdentity()
	if err != nil {
		return err
	}
	n := &nameService{poke: make(chan struct{}, 1), moves: make(chan struct{}, 1),
		resolver: link.Resolver{Dir: dir, Address: address, Command: s.opts.Resolver, Program: program}}
	n.process, n.started, err = n.resolver.Start(ctx)
	if err != nil {
		return err
	}
	s.parts.names = n
	return nil
}

// resolverAddress is one of the machine that pods reach, of the address family of services.
func (s *Server) resolverAddress() (netip.Addr, error) {
	services, err := netip.ParsePrefix(s.opts.ServiceCIDR)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("--service-cidr: %w", err)
	}
	if !s.ownNetwork() {
		if s.opts.BridgeName == "" {
			return netip.Addr{},
				errors.New("the pod network is not Wherry's: name its bridge with --bridge-name, or tell pods of a resolver with --cluster-dns")
		}
		p, err := network.BridgeNetwork(s.opts.BridgeName, services.Addr().Is4())
		return p.Addr(), err
	}
	c, wanted, err := s.parts.runtime.Network()
	if err != nil || !wanted {
		return netip.Addr{}, errors.Join(err, errors.New("there is no pod network"))
	}
	for _, p := range c.CIDRs {
		if p.Addr().Is4() == services.Addr().Is4() {
			return network.Gateway(p), nil
		}
	}
	return netip.Addr{}, fmt.Errorf("the pod network has no address of the family of --service-cidr %s", services)
}

// programIdentity identifies this program's file, also of the same version.
func programIdentity() (string, error) {
	info, err := os.Stat("/proc/self/exe")
	if err != nil {
		return "", fmt.Errorf("resolver: this program's file: %w", err)
	}
	return fmt.Sprintf("%s-%d-%d", release.Version(), info.Size(), info.ModTime().UnixNano()), nil
}

// startNames gives the resolver its service and keeps it fed.
func (s *Server) startNames(ctx context.Context) error {
	users := loopbackClients{server: s}
	client := users.client(rbac.NamesController)
	if users.err != nil {
		return users.err
	}
	n := s.parts.names
	if n == nil {
		if s.opts.DNS == DNSNone {
			return servicenames.Remove(ctx, client)
		}
		return nil
	}
	services, err := netip.ParsePrefix(s.opts.ServiceCIDR)
	if err != nil {
		return fmt.Errorf("--service-cidr: %w", err)
	}
	log := s.log.With("component", "names")
	ensure := func(ctx context.Context, at netip.AddrPort) error {
		ip, err := servicenames.Ensure(ctx, client, servicenames.Usual(services), at)
		if errors.Is(err, servicenames.ErrForeign) {
			at = netip.AddrPort{} // whoever has made it sees to it
		}
		if ip.IsValid() && (err == nil || errors.Is(err, servicenames.ErrForeign)) {
			n.set(ip, at)
		}
		return err
	}
	if err := ensure(ctx, n.where()); errors.Is(err, servicenames.ErrForeign) {
		log.Warn("pods ask the service that is there: to have names answered by this server, delete it and start again; with --dns=none this server does not try", "err", err)
	} else if err != nil {
		return err
	}
	settings := wire.Settings{Zone: names.Zone{Domain: s.opts.ClusterDomain, Networks: s.nameNetworks(services)},
		ResolvConf: s.opts.ResolvConf, NoBook: !s.opts.DNSLog}
	settings.Service = n.ask
	var feed *link.Link
	controller := servicenames.New(s.parts.factory, log, func(current func() names.Change) { feed.Send(current) },
		func(ctx context.Context) error { return ensure(ctx, n.where()) })
	feed = link.New(n.resolver, settings, controller.All, func(ctx context.Context, hello wire.Hello) error {
		n.moved(hello.Address)
		if err := ensure(ctx, hello.Address); !errors.Is(err, servicenames.ErrForeign) {
			return err
		}
		return nil
	}, log)
	s.parts.namesLoop = spawn("names", s.failed, func(ctx context.Context) error {
		s.parts.factory.Start(ctx.Done())
		if !controller.Known(ctx) {
			return nil
		}
		done := make(chan struct{})
		go func() { defer close(done); feed.Run(ctx) }()
		defer func() { <-done }()
		return controller.Run(ctx)
	})
	return nil
}

// nameNetworks are those whose addresses have no names elsewhere. Of ranges that come later, names that there are are
// told, and those that there are not are looked for elsewhere until the next start.
func (s *Server) nameNetworks(services netip.Prefix) []netip.Prefix {
	out, _ := s.parts.api.ServiceNetworks()
	if s.parts.runtime != nil {
		if c, wanted, err := s.parts.runtime.Network(); err == nil && wanted {
			return append(out, c.CIDRs...)
		}
	}
	if n, err := network.BridgeNetwork(s.opts.BridgeName, services.Addr().Is4()); err == nil {
		out = append(out, n.Masked())
	}
	return out
}

// emptyPatience is how long the end of a server waits to hear whether pods run.
const emptyPatience = 2 * time.Second

// stopResolver leaves the resolver to the pods. Without pods, and after a start that failed, nobody needs it.
func (s *Server) stopResolver(ctx context.Context) error {
	n := s.parts.names
	if n == nil || s.refused.Load() && !n.started {
		return nil
	}
	if !s.refused.Load() {
		ctx, cancel := context.WithTimeout(ctx, emptyPatience)
		defer cancel()
		list, err := s.parts.cri.Runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{
			Filter: &runtimeapi.PodSandboxFilter{State: &runtimeapi.PodSandboxStateValue{
				State: runtimeapi.PodSandboxState_SANDBOX_READY}}})
		if err != nil || len(list.GetItems()) > 0 {
			return nil // they go on, and so do names
		}
	}
	return link.End(ctx, n.resolver.Dir)
}

func (s *Server) stopNames(ctx context.Context) error { return stopAll(ctx, s.parts.namesLoop) }
