// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pool is where addresses come from.
type Pool struct {
	Machine []netip.Addr   // used if there are no ranges
	Ranges  []netip.Prefix // at most one of each address family
	// Busy names a program of the machine that listens there; empty: nobody does.
	Busy func(at netip.AddrPort, proto corev1.Protocol) string
}

// Result is what one service gets. Problem is for its user, and set if an address is missing.
type Result struct {
	Service *corev1.Service
	Addrs   []netip.Addr
	Problem string
	// Passing says that nothing will signal the end of the problem.
	Passing bool
}

// slot is what can be given to one service only. A port of 0 stands for the whole address.
type slot struct {
	at    netip.AddrPort
	proto corev1.Protocol
}

// Assign decides for all services of type LoadBalancer without a class. Those that have an address come first, then the
// oldest.
func Assign(services []*corev1.Service, pool Pool) []Result {
	list := slices.DeleteFunc(slices.Clone(services), func(s *corev1.Service) bool {
		return s.Spec.Type != corev1.ServiceTypeLoadBalancer || s.Spec.LoadBalancerClass != nil ||
			s.DeletionTimestamp != nil
	})
	slices.SortFunc(list, func(a, b *corev1.Service) int {
		return cmp.Or(cmp.Compare(min(1, len(held(b))), min(1, len(held(a)))),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(nameOf(a), nameOf(b)))
	})
	taken := map[slot]string{}
	var out []Result
	for _, s := range list {
		r := Result{Service: s}
		for _, family := range familiesOf(s) {
			var addr netip.Addr
			var problem string
			var passing bool
			if len(pool.Ranges) > 0 {
				addr, problem = pool.fromRange(s, family, taken)
			} else {
				addr, problem, passing = pool.ofMachine(s, family, taken)
			}
			if problem != "" {
				r.Problem, r.Passing = problem, passing
				continue
			}
			r.Addrs = append(r.Addrs, addr)
		}
		out = append(out, r)
	}
	return out
}

// Finalizer keeps a service until its load balancer has been taken away, as with Kubernetes' cloud controllers. Here
// that is no more than its address, but those who wait for it to go, or look for it, find what they know.
const Finalizer = "service.kubernetes.io/load-balancer-cleanup"

// manager is who writes the finalizer, as the object remembers it.
const manager = "wherry-load-balancer"

// Released are the services that carry our finalizer and want no address of ours any more: they are about to be
// deleted, of another type, or of a class by now. Other controllers of load balancers use the finalizer too. One of a
// service with a class may be theirs and, unless balancing, any other. (Pure.)
func Released(services []*corev1.Service, balancing bool) (out []*corev1.Service) {
	for _, s := range services {
		classed := s.Spec.LoadBalancerClass != nil
		unwanted := s.DeletionTimestamp != nil || s.Spec.Type != corev1.ServiceTypeLoadBalancer || classed
		ours := balancing && !classed || wrote(s, `"v:\"`+Finalizer+`\""`)
		if slices.Contains(s.Finalizers, Finalizer) && unwanted && ours {
			out = append(out, s)
		}
	}
	return out
}

// wrote says whether a field, as managed fields name it, is as we have written it. (Pure.)
func wrote(s *corev1.Service, field string) bool {
	return slices.ContainsFunc(s.ManagedFields, func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == manager && m.FieldsV1 != nil && strings.Contains(m.FieldsV1.GetRawString(), field)
	})
}

func nameOf(s *corev1.Service) string { return s.Namespace + "/" + s.Name }

// held are the addresses that a service has.
func held(s *corev1.Service) (out []netip.Addr) {
	for _, in := range s.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(in.IP); err == nil {
			out = append(out, a.Unmap())
		}
	}
	return out
}

func familiesOf(s *corev1.Service) []corev1.IPFamily {
	if len(s.Spec.IPFamilies) == 0 {
		return []corev1.IPFamily{corev1.IPv4Protocol}
	}
	return s.Spec.IPFamilies
}

func isOf(a netip.Addr, family corev1.IPFamily) bool {
	return a.Is6() == (family == corev1.IPv6Protocol)
}

// ofMachine gives the machine's address, if nobody has the service's ports there.
func (p Pool) ofMachine(s *corev1.Service, family corev1.IPFamily, taken map[slot]string) (netip.Addr, string, bool) {
	i := slices.IndexFunc(p.Machine, func(a netip.Addr) bool { return isOf(a, family) })
	if i < 0 {
		return netip.Addr{}, fmt.Sprintf("the node has no %s address; start the server with one as --node-ip, "+
			"or with a range as --load-balancer-cidr", family), false
	}
	addr := p.Machine[i]
	has := slices.Contains(held(s), addr)
	for _, port := range s.Spec.Ports {
		at := slot{netip.AddrPortFrom(addr, uint16(port.Port)), port.Protocol}
		if other, there := taken[at]; there {
			return addr,
				fmt.Sprintf("port %d/%s of this machine's address %s belongs to service %s; choose another port, "+
					"or start the server with --load-balancer-cidr, so that each service gets an address of its own",
					port.Port, port.Protocol, addr, other), false
		}
		if has || p.Busy == nil {
			continue
		}
		if who := p.Busy(at.at, port.Protocol); who != "" {
			return addr,
				fmt.Sprintf("port %d/%s of this machine's address %s is in use: %s; stop that, choose another port, "+
					"or start the server with --load-balancer-cidr", port.Port, port.Protocol, addr, who), true
		}
	}
	for _, port := range s.Spec.Ports {
		taken[slot{netip.AddrPortFrom(addr, uint16(port.Port)), port.Protocol}] = nameOf(s)
	}
	return addr, "", false
}

// fromRange gives an address that nobody else has: the one that the service has, the one that it asks for, or any.
func (p Pool) fromRange(s *corev1.Service, family corev1.IPFamily, taken map[slot]string) (netip.Addr, string) {
	i := slices.IndexFunc(p.Ranges, func(r netip.Prefix) bool { return isOf(r.Addr(), family) })
	if i < 0 {
		return netip.Addr{}, fmt.Sprintf("--load-balancer-cidr has no %s range", family)
	}
	r := p.Ranges[i]
	whole := func(a netip.Addr) slot { return slot{at: netip.AddrPortFrom(a, 0)} }
	wanted, err := netip.ParseAddr(s.Spec.LoadBalancerIP)
	named := err == nil && isOf(wanted, family)
	if named {
		if other, there := taken[whole(wanted)]; there {
			return wanted, fmt.Sprintf("spec.loadBalancerIP %s belongs to service %s; choose another, or leave it out",
				wanted, other)
		}
		if !usable(r, wanted) {
			return wanted,
				fmt.Sprintf("spec.loadBalancerIP %s is not in --load-balancer-cidr %s; choose another, or leave it out",
					wanted, r)
		}
	}
	give := func(a netip.Addr) (netip.Addr, string) {
		taken[whole(a)] = nameOf(s)
		return a, ""
	}
	if named {
		return give(wanted)
	}
	for _, a := range held(s) {
		if _, there := taken[whole(a)]; !there && usable(r, a) {
			return give(a)
		}
	}
	for a := r.Masked().Addr(); r.Contains(a); a = a.Next() {
		if _, there := taken[whole(a)]; !there && usable(r, a) {
			return give(a)
		}
	}
	return netip.Addr{},
		fmt.Sprintf("all addresses of --load-balancer-cidr %s are taken; delete services of type LoadBalancer, "+
			"or start the server with a larger range", r)
}

// usable leaves out what stands for a network itself and for all in it.
func usable(r netip.Prefix, a netip.Addr) bool {
	if !r.Contains(a) {
		return false
	}
	if r.Addr().BitLen()-r.Bits() < 2 {
		return true
	}
	return a != r.Masked().Addr() && (a.Is6() || r.Contains(a.Next()))
}
