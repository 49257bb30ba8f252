// SPDX-License-Identifier: Apache-2.0

package ranges

import (
	"iter"
	"maps"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/apis/networking"
)

// Finalizer keeps a ServiceCIDR while addresses in it are in use. It is Kubernetes' own.
const Finalizer = "networking.k8s.io/service-cidr-finalizer"

// Range is what one ServiceCIDR says.
type Range struct {
	Name     string
	UID      types.UID
	Version  uint64 // of the object
	Networks []netip.Prefix
	Kept     bool // it has the finalizer: it cannot go before its addresses have
	Leaving  bool // its deletion was asked for
	Released bool // it was decided that it may go
}

// Of reads a ServiceCIDR. What is no network in it is left out.
func Of(o *networking.ServiceCIDR, version uint64) Range {
	r := Range{Name: o.Name, UID: o.UID, Version: version, Kept: slices.Contains(o.Finalizers, Finalizer),
		Leaving: o.DeletionTimestamp != nil}
	for _, text := range o.Spec.CIDRs {
		if p, err := netip.ParsePrefix(text); err == nil {
			r.Networks = append(r.Networks, p.Masked())
		}
	}
	return r
}

func (r Range) contains(a netip.Addr) bool {
	return slices.ContainsFunc(r.Networks, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Set is all ranges that there are. Services have addresses of one family, that of Own; of ranges only networks of
// that family count.
type Set struct {
	own    netip.Prefix
	listed bool // own was in an object: it counts as long as that says
	named  map[string]Range
	ended  map[types.UID]bool // so that news which come late do not bring one back
}

// NewSet is a set with the network that the server was started with, and no objects yet.
func NewSet(own netip.Prefix) *Set {
	return &Set{own: own.Masked(), named: map[string]Range{}, ended: map[types.UID]bool{}}
}

// Put takes in a version of a ServiceCIDR, and reports whether that was news.
func (s *Set) Put(r Range) bool {
	have, there := s.named[r.Name]
	if s.ended[r.UID] || there && have.UID == r.UID && have.Version >= r.Version {
		return false
	}
	r.Released = there && have.UID == r.UID && have.Released
	s.named[r.Name] = r
	s.listed = s.listed || slices.Contains(r.Networks, s.own)
	return true
}

// End takes out a ServiceCIDR that is gone.
func (s *Set) End(name string, uid types.UID) {
	s.ended[uid] = true
	if s.named[name].UID == uid {
		delete(s.named, name)
	}
}

// Open are the networks that addresses are given from: that of the server's start first, the others by their ranges'
// names.
func (s *Set) Open() []netip.Prefix {
	return s.networks(func(r Range) bool { return r.Kept && !r.Leaving })
}

// largest is the size of the largest network that is taken for services' alone: whoever makes a larger one by mistake,
// such as 0.0.0.0/0, would have nodes refuse what goes to the world.
const largest = 8

// Known are the networks that are services' alone, also those of ranges that are leaving: what is sent there and to no
// service is refused. None lies within another.
func (s *Set) Known() []netip.Prefix {
	all := slices.DeleteFunc(s.networks(func(Range) bool { return true }),
		func(p netip.Prefix) bool { return p != s.own && p.Bits() < largest })
	within := func(p, q netip.Prefix) bool { return p != q && q.Bits() <= p.Bits() && q.Contains(p.Addr()) }
	return slices.DeleteFunc(slices.Clone(all), func(p netip.Prefix) bool {
		return slices.ContainsFunc(all, func(q netip.Prefix) bool { return within(p, q) })
	})
}

// networks are those of the ranges that count, each once, and of the server's start unless an object says where that
// is.
func (s *Set) networks(counts func(Range) bool) (out []netip.Prefix) {
	if !s.listed {
		out = append(out, s.own)
	}
	for _, name := range slices.Sorted(maps.Keys(s.named)) {
		r := s.named[name]
		for _, p := range r.Networks {
			if !counts(r) || p.Addr().Is4() != s.own.Addr().Is4() || slices.Contains(out, p) {
				continue
			}
			if p == s.own {
				out = slices.Insert(out, 0, p)
			} else {
				out = append(out, p)
			}
		}
	}
	return out
}

// Leaving are the names of the ranges whose deletion was asked for.
func (s *Set) Leaving() (out []string) {
	for _, name := range slices.Sorted(maps.Keys(s.named)) {
		if s.named[name].Leaving {
			out = append(out, name)
		}
	}
	return out
}

// Release decides whether a range that is leaving may go, and notes it: from then on it holds no address that another
// range might go for. If it may not, needs is an address in use that would be in no range any more.
func (s *Set) Release(name string, used iter.Seq[netip.Addr]) (needs netip.Addr, may bool) {
	r, there := s.named[name]
	if !there || !r.Leaving {
		return needs, false
	}
	for a := range used {
		if !r.Released && r.contains(a) && !s.besides(name, a) {
			return a, false
		}
	}
	r.Released = true
	s.named[name] = r
	return needs, true
}

// besides reports whether an address lies in another range than that of the name.
func (s *Set) besides(name string, a netip.Addr) bool {
	for _, r := range s.named {
		if r.Name != name && !r.Released && r.contains(a) {
			return true
		}
	}
	return !s.listed && s.own.Contains(a)
}

// Usable reports whether an address of a network may be a service's: neither the first one, which names the network,
// nor the last one of IPv4, which is everybody's.
func Usable(network netip.Prefix, a netip.Addr) bool {
	first := network.Masked().Addr()
	if !network.Contains(a) || a == first {
		return false
	}
	return a.Is6() || network.Contains(a.Next())
}
