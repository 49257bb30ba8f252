// SPDX-License-Identifier: Apache-2.0

package serviceips

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/api/serviceips/ranges"
)

// Addresses hands out the cluster IPs of services, out of all ranges. What is taken is rebuilt from what is stored at
// start; the server is the only writer of its store.
type Addresses struct {
	own  netip.Prefix // that the server was started with
	told Told

	mu      sync.Mutex
	ranges  *ranges.Set
	open    []netip.Prefix // of them, where addresses are given from
	known   []netip.Prefix // of them, where services may be
	changed chan struct{}  // closed when known changes
	used    map[netip.Addr]Owner
	held    map[netip.Addr][]types.UID // by IPAddress objects of others
	moved   map[types.UID][]move
	early   map[types.UID]bool // services that were deleted before Load, which may know of them; nil afterwards
}

// Owner is the service that has an address.
type Owner = types.NamespacedName

// Told is who hears what becomes of addresses. Each may be nil, and is called by the one who writes.
type Told struct {
	// Settled is called with an address that a write has given to a service or taken from it, when that has happened.
	Settled func(netip.Addr)
	// Astray is called with an address whose IPAddress object somebody has written or deleted, or may have to be.
	Astray func(netip.Addr)
	// Freed is called when an address is in use no more.
	Freed func()
	// Made is called with the name of a new ServiceCIDR, before the client has its answer.
	Made func(name string)
	// Range is called with the name of a ServiceCIDR that was written or deleted. It must not block.
	Range func(name string)
}

// New hands out those of a network, which must have room for two. Those of other ranges come with their objects.
func New(cidr netip.Prefix) (*Addresses, error) {
	cidr = cidr.Masked()
	if cidr.Addr().BitLen()-cidr.Bits() < 2 {
		return nil, fmt.Errorf("service range %s: too small, use at least a /30 (IPv4) or /126 (IPv6)", cidr)
	}
	a := &Addresses{own: cidr, ranges: ranges.NewSet(cidr), changed: make(chan struct{}), used: map[netip.Addr]Owner{},
		held: map[netip.Addr][]types.UID{}, moved: map[types.UID][]move{}, early: map[types.UID]bool{}}
	a.open, a.known = a.ranges.Open(), a.ranges.Known()
	return a, nil
}

// Tell says who hears. It must be called before the store is in use.
func (a *Addresses) Tell(t Told) { a.told = t }

// Range is the network that the server was started with.
func (a *Addresses) Range() netip.Prefix { return a.own }

// Known are the networks in which services may have addresses; the channel is closed when they have changed.
func (a *Addresses) Known() ([]netip.Prefix, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.known), a.changed
}

// First is the address of the API server's own service.
func (a *Addresses) First() netip.Addr { return nth(a.own, 0) }

// nth is an address of a network, its first one being 0.
func nth(p netip.Prefix, n uint64) netip.Addr {
	if p.Addr().Is4() {
		b := p.Addr().As4()
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(n)+1)
		return netip.AddrFrom4(b)
	}
	b := p.Addr().As16()
	binary.BigEndian.PutUint64(b[8:], binary.BigEndian.Uint64(b[8:])+n+1)
	return netip.AddrFrom16(b)
}

// size is how many addresses of a network are given out: not the network's own and not the last one. A million services
// are enough.
func size(p netip.Prefix) uint64 {
	bits := min(p.Addr().BitLen()-p.Bits(), 20)
	return max(uint64(1)<<bits, 2) - 2
}

// Owner is the service that has an address; the zero value if none has.
func (a *Addresses) Owner(ip netip.Addr) Owner {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used[ip]
}

// take reserves the wanted address, or any free one when wanted is the zero Addr.
func (a *Addresses) take(wanted netip.Addr, owner Owner) (netip.Addr, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ip := wanted
	switch {
	case !wanted.IsValid():
		if ip = a.free(); !ip.IsValid() {
			return ip,
				fmt.Errorf("%s: delete services that are not needed, or create a ServiceCIDR with more addresses",
					full(a.open))
		}
	case !slices.ContainsFunc(a.open, func(p netip.Prefix) bool { return ranges.Usable(p, wanted) }):
		return wanted, fmt.Errorf("the provided IP (%s) is not in the valid range. The range of valid IPs is %s",
			wanted, texts(a.open))
	case a.isTaken(wanted):
		return wanted, fmt.Errorf("provided IP is already allocated")
	}
	a.used[ip] = owner
	return ip, nil
}

func (a *Addresses) isTaken(ip netip.Addr) bool {
	_, taken := a.used[ip]
	return taken || len(a.held[ip]) > 0
}

// free is an address that nobody has; the zero Addr if there is none. The server's own is not given away.
func (a *Addresses) free() netip.Addr {
	first := a.First()
	for _, p := range a.open {
		n := size(p)
		if n == 0 {
			continue
		}
		start := rand.Uint64N(n) // anywhere, so that an address is not reused at once
		for i := range n {
			if ip := nth(p, (start+i)%n); ip != first && !a.isTaken(ip) {
				return ip
			}
		}
	}
	return netip.Addr{}
}

func full(open []netip.Prefix) string {
	switch len(open) {
	case 0:
		return "there is no range of addresses that is not being deleted"
	case 1:
		return fmt.Sprintf("range %s is full", open[0])
	}
	return fmt.Sprintf("ranges %s are full", texts(open))
}

func texts(list []netip.Prefix) string {
	var out []string
	for _, p := range list {
		out = append(out, p.String())
	}
	return strings.Join(out, ", ")
}

// release gives an address of a service back.
func (a *Addresses) release(ip netip.Addr, owner Owner) {
	a.mu.Lock()
	had := a.used[ip] == owner
	if had {
		delete(a.used, ip)
	}
	a.mu.Unlock()
	if had && a.told.Freed != nil {
		a.told.Freed()
	}
}

// Load takes the addresses of the services in the store.
func (a *Addresses) Load(services []corev1.Service) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range services {
		ip, err := netip.ParseAddr(services[i].Spec.ClusterIP)
		if _, taken := a.used[ip]; err == nil && !taken && !a.early[services[i].UID] {
			a.used[ip] = ownerOf(&services[i])
		}
	}
	a.early = nil
}

// InUse are the addresses that services have.
func (a *Addresses) InUse() map[netip.Addr]Owner {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.used)
}

func ownerOf(s *corev1.Service) Owner { return Owner{Namespace: s.Namespace, Name: s.Name} }
