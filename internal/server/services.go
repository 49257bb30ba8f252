// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/runtime/network"
)

const (
	servicesFirst = 5 * time.Second  // how long an agent's start waits for its API server to answer this
	servicesRetry = time.Second      // after an error, as of an agent whose API server does not answer yet; it doubles
	servicesSlow  = 10 * time.Second // up to this
	// servicesLook is how often one looks whether the API server's name, or its service, stands for another address.
	servicesLook = time.Minute
)

// startServices has the node carry the address of service kubernetes to the API server, so that clients in pods reach
// it; a server refuses the other services' addresses too (decision 020). Before the agent starts, since pods do with
// it.
func (s *Server) startServices(ctx context.Context) error {
	log := s.log.With("component", "services")
	c, err := s.newCarrier(log)
	if err != nil || c == nil {
		return err
	}
	client, err := s.client("services")
	if err != nil {
		return err
	}
	c.client, c.url, c.names = client, s.parts.cluster.url, s.parts.names
	if c.pods, err = s.podsCgroup(ctx); err != nil {
		return err
	}
	c.proxied = s.carriesServices()
	c.networks = s.serviceNetworks(client)
	if s.parts.api == nil {
		s.parts.carrier = c
		first, cancel := context.WithTimeout(ctx, servicesFirst)
		defer cancel()
		err := c.carry(first) // pods start right after this
		s.parts.services = spawn("services", s.failed, func(ctx context.Context) error { return c.keep(ctx, err, log) })
		return nil
	}
	c.advertised = s.parts.api.Advertised()
	err = c.carry(ctx)
	if err != nil {
		if err := c.drop(); err != nil {
			log.Warn("packets from pods to services may leave this machine", "err", err)
		}
	}
	c.warnOwn(log)
	s.parts.carrier = c
	s.parts.services = spawn("services", s.failed, func(ctx context.Context) error { return c.keep(ctx, err, log) })
	return nil
}

// newCarrier is the carrier for the node's network; nil if nobody knows which that is, or there is none.
func (s *Server) newCarrier(log *slog.Logger) (*carrier, error) {
	bridge := s.opts.BridgeName
	if s.ownNetwork() {
		bridge = ""
	}
	if err := rememberOutside(s.opts.DataDir, bridge); err != nil {
		return nil, err
	}
	if s.ownNetwork() {
		_, wanted, err := s.parts.runtime.Network()
		if err != nil || !wanted {
			return nil, err
		}
		return &carrier{install: s.parts.runtime.Carry}, nil
	}
	if bridge == "" {
		s.warnNotCarried(log)
		return nil, nil
	}
	install := func(want network.Services) ([]netip.Prefix, error) { return network.CarryOutside(bridge, want) }
	return &carrier{install: install, again: true}, nil
}

// podsCgroup makes the cgroup of all pods, by which those on the host's network are known.
func (s *Server) podsCgroup(ctx context.Context) (network.Cgroup, error) {
	groups, err := podCgroups(s.opts.DataDir, s.cgroupDriver(ctx), s.opts.PodMaxPIDs)
	if err != nil {
		return network.Cgroup{}, err
	}
	if err := groups.Setup(); err != nil {
		return network.Cgroup{}, err
	}
	folder, depth := groups.Unified()
	if folder == "" {
		return network.Cgroup{}, nil
	}
	var dir unix.Stat_t
	if err := unix.Stat(folder, &dir); err != nil {
		return network.Cgroup{}, fmt.Errorf("cgroup of the pods: %w", err)
	}
	return network.Cgroup{ID: dir.Ino, Depth: uint32(depth)}, nil
}

// warnNotCarried logs what pods do without if their network is an external runtime's: whoever sees their clients time
// out would look for the cause for long. In another cluster it is that cluster's matter.
func (s *Server) warnNotCarried(log *slog.Logger) {
	if s.parts.api == nil {
		log.Info("the pod network is not Wherry's, so that decides how pods reach the kubernetes service")
		return
	}
	log.Warn("with a pod network that is not Wherry's and without --bridge-name nothing carries service addresses: programs in pods that look for the "+
		"API server there, as every in-cluster client does, do not reach it, and packets to the service network may leave this machine; "+
		"if the pod network has a bridge, name it with --bridge-name; "+
		"otherwise either route the first address of the service network to the server on this machine, or set KUBERNETES_SERVICE_HOST and _PORT in those pods to an address that it listens on",
		"service-cidr", s.opts.ServiceCIDR, "server", s.parts.cluster.url)
}

// stopServices takes the way to a server that stops away. That to another machine's stays: so do the pods.
func (s *Server) stopServices(ctx context.Context) error {
	err := stopAll(ctx, s.parts.services)
	if s.parts.carrier == nil || s.parts.api == nil || err != nil {
		return err
	}
	return s.parts.carrier.drop()
}

// carrier keeps the rules of the node's network about services.
type carrier struct {
	// install has the node's network carry these services, and keeps it so.
	install func(network.Services) (ownRoutes []netip.Prefix, err error)
	client  kubernetes.Interface
	url     string // of the API server
	// advertised is where the endpoints of service kubernetes are; zero in another cluster.
	advertised netip.AddrPort
	networks   serviceNetworks // nil: they are somebody else's matter
	proxied    bool            // see [network.Services]
	pods       network.Cgroup  // likewise
	names      *nameService    // whose address is carried too; nil: none
	again      bool            // nobody watches the rules: they are installed again at each look

	refused []netip.Prefix   // see [network.Services]
	moved   <-chan struct{}  // these have changed
	now     network.Services // as installed
	own     []netip.Prefix   // of the machine's networks, those within refused
	told    []netip.Prefix   // the same, as logged last
	last    string           // the error that was logged last
}

// carry installs the rules, unless they are as they should be.
func (c *carrier) carry(ctx context.Context) error {
	if c.networks != nil {
		c.refused, c.moved = c.networks(ctx)
	}
	api, err := c.service(ctx)
	if err != nil {
		return err
	}
	server, err := serverAddress(ctx, c.url, api.Addr().Is4(), c.now.Server)
	if err != nil {
		return err
	}
	want := network.Services{API: api, Server: server, Pods: c.pods, Refused: c.refused, Proxied: c.proxied}
	if c.advertised != server {
		want.Advertised = c.advertised
	}
	want.Names, want.Resolver = c.names.carried()
	if reflect.DeepEqual(c.now, want) && !c.again {
		c.last = ""
		return nil
	}
	if c.own, err = c.install(want); err != nil {
		return err
	}
	c.now, c.last = want, ""
	return nil
}

// keep goes on until ctx ends: after an error it tries again, after that it looks now and then.
func (c *carrier) keep(ctx context.Context, err error, log *slog.Logger) error {
	retry := servicesRetry
	for {
		wait := servicesLook
		if err == nil {
			retry = servicesRetry
		} else {
			wait, retry = retry, min(2*retry, servicesSlow)
			if ctx.Err() == nil && c.isNew(err) {
				log.Warn("clients in pods cannot reach the API server by its service yet", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		case <-c.names.changed():
		case <-c.moved:
		}
		err = c.carry(ctx)
		c.warnOwn(log)
	}
}

// warnOwn logs, once for each, that networks of this machine lie in those of services.
func (c *carrier) warnOwn(log *slog.Logger) {
	if len(c.own) > 0 && !slices.Equal(c.own, c.told) {
		log.Warn("networks of this machine overlap with networks of services: packets from pods with host networking to services there leave the machine; choose another --service-cidr, or delete the ServiceCIDR",
			"services", c.refused, "networks", c.own)
	}
	c.told = c.own
}

// drop leaves the rules that refuse, and the way to names, which are answered without a server.
func (c *carrier) drop() (err error) {
	c.now = network.Services{Refused: c.refused, Proxied: c.proxied, Pods: c.pods}
	c.now.Names, c.now.Resolver = c.names.carried()
	c.own, err = c.install(c.now)
	return err
}

// isNew notes an error and reports whether it differs from the last.
func (c *carrier) isNew(err error) bool {
	again := c.last == err.Error()
	c.last = err.Error()
	return !again
}

// service reads the address of service kubernetes.
func (c *carrier) service(ctx context.Context) (netip.AddrPort, error) {
	svc, err := c.client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("service kubernetes: %w", err)
	}
	ip, err := netip.ParseAddr(svc.Spec.ClusterIP)
	if err != nil || len(svc.Spec.Ports) == 0 {
		return netip.AddrPort{}, fmt.Errorf("service kubernetes has no address and port: %q", svc.Spec.ClusterIP)
	}
	return netip.AddrPortFrom(ip, uint16(svc.Spec.Ports[0].Port)), nil
}

// serverAddress finds the address of an API server by its URL: of several that a name stands for the one in use, if it
// is among them.
func serverAddress(ctx context.Context, base string, is4 bool, inUse netip.AddrPort) (netip.AddrPort, error) {
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" {
		return netip.AddrPort{}, fmt.Errorf("%q is not the URL of an API server", base)
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", portOf(u))
	if err != nil {
		return netip.AddrPort{}, err
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return netip.AddrPortFrom(ip.Unmap(), uint16(port)), nil
	}
	family := "ip6"
	if is4 {
		family = "ip4"
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, family, u.Hostname())
	if err != nil {
		return netip.AddrPort{}, err
	}
	for i := range found {
		found[i] = found[i].Unmap()
	}
	if slices.Contains(found, inUse.Addr()) && inUse.Port() == uint16(port) {
		return inUse, nil
	}
	return netip.AddrPortFrom(found[0], uint16(port)), nil
}

func portOf(u *url.URL) string {
	if u.Port() != "" {
		return u.Port()
	}
	return u.Scheme
}
