// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Facts are what is known of the node.
type Facts struct {
	Node string         // its name
	Zone string         // that it is in, by its label; empty: not known
	Pods []netip.Prefix // networks of its pods
	// Reserved are the other networks whose addresses the cluster gives: those of services, and of other nodes' pods.
	Reserved []netip.Prefix
	// Machine are its own addresses: an end there is on this machine, though on no pod network.
	Machine []netip.Addr
	// Rules is what else there is to a rule besides its chain: the network, the version of the program.
	Rules string
}

// here says whether an address is on this machine.
func (f Facts) here(a netip.Addr) bool {
	return slices.Contains(f.Machine, a) || slices.ContainsFunc(f.Pods,
		func(p netip.Prefix) bool { return p.Contains(a) })
}

// Part is what one service adds to the tables.
type Part struct {
	Name    string    // namespace/name
	Created time.Time // of the service
	Tables
	// Local is how many ends on this node are ready, for those who ask at HealthPort; 0: nobody may.
	Local      int
	HealthPort int32
}

// headless is the label of services and slices that no proxy carries, whatever addresses they have (KEP-2447).
const headless = corev1.IsHeadlessService

// otherProxy is the label of services that are another program's to carry.
const otherProxy = "service.kubernetes.io/service-proxy-name"

// Carried says whether a service is one that a proxy carries: it has an address, and is not the API server's own,
// which has rules of its own (decision 020), nor somebody else's to carry.
func Carried(s *corev1.Service) bool {
	if s.Namespace == corev1.NamespaceDefault && s.Name == "kubernetes" {
		return false
	}
	_, other := s.Labels[otherProxy]
	_, none := s.Labels[headless]
	return !other && !none && s.Spec.Type != corev1.ServiceTypeExternalName && s.Spec.ClusterIP != "" &&
		s.Spec.ClusterIP != corev1.ClusterIPNone
}

// Of decides about one service that is carried. Its slices may be of any order.
func Of(f Facts, s *corev1.Service, ends []*discoveryv1.EndpointSlice) *Part {
	p := &Part{Name: s.Namespace + "/" + s.Name, Created: s.CreationTimestamp.Time, Tables: Tables{
		Chains: map[string]Chain{}, Clients: map[string]bool{}, Keys: map[Key]string{}, Beyond: map[Beyond]bool{}}}
	for _, six := range []bool{false, true} {
		if !has(s, six) {
			continue
		}
		for i := range s.Spec.Ports {
			port := &s.Spec.Ports[i]
			found := candidates(f, port, six, ends)
			p.port(f, s, port, six, found)
			p.Local = max(p.Local, ready(found))
		}
	}
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer &&
		s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		p.HealthPort = s.Spec.HealthCheckNodePort
	}
	for name, c := range p.Chains {
		c.Print = Print(f.Rules, c.String())
		p.Chains[name] = c
	}
	return p
}

// has says whether a service has addresses of a family.
func has(s *corev1.Service, six bool) bool {
	return slices.ContainsFunc(clusterIPs(s), func(a netip.Addr) bool { return a.Is6() == six })
}

func clusterIPs(s *corev1.Service) []netip.Addr {
	list := s.Spec.ClusterIPs
	if len(list) == 0 {
		list = []string{s.Spec.ClusterIP}
	}
	return parseAll(list)
}

func parseAll(list []string) (out []netip.Addr) {
	for _, text := range list {
		if a, err := netip.ParseAddr(text); err == nil {
			out = append(out, a.Unmap())
		}
	}
	return out
}

// affinityTimeout is how long clients of a service keep their endpoint; 0: it has no affinity.
func affinityTimeout(s *corev1.Service) time.Duration {
	if s.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return 0
	}
	if c := s.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		return time.Duration(*c.ClientIP.TimeoutSeconds) * time.Second
	}
	return 3 * time.Hour
}

// port adds what one port of a service needs in one address family.
func (p *Part) port(f Facts, s *corev1.Service, port *corev1.ServicePort, six bool, found []candidate) {
	proto := protoOf(port.Protocol)
	name := fmt.Sprintf("4/%s/%s/%d", p.Name, proto, port.Port)
	if six {
		name = "6" + name[1:]
	}
	timeout := affinityTimeout(s)
	// to makes a chain that leads to ends, or to Refuse if there are none.
	to := func(kind string, c Chain, ends []candidate) string {
		if len(ends) == 0 && (c.Inside == "" || c.Inside == Refuse) {
			return Refuse
		}
		c.Six, c.Timeout = six, timeout
		for _, e := range ends {
			c.Ends = append(c.Ends, p.end(name, six, proto, timeout, e))
		}
		p.Chains[kind+name] = c
		return kind + name
	}
	internal := s.Spec.InternalTrafficPolicy
	everywhere, here := choose(near(found), false), choose(found, true)
	inside := everywhere
	if internal != nil && *internal == corev1.ServiceInternalTrafficPolicyLocal {
		inside = here
	}
	cluster := to("cluster", Chain{}, inside)
	keys := func(place Place, chain string, addrs []netip.Addr) {
		for _, a := range addrs {
			if a.Is6() == six {
				p.Keys[Key{Place: place, Six: six, Addr: a, Proto: proto, Port: uint16(port.Port)}] = chain
			}
		}
	}
	keys(Cluster, cluster, clusterIPs(s))

	outside, balanced := parseAll(s.Spec.ExternalIPs), balancers(s)
	if len(outside) == 0 && len(balanced) == 0 && port.NodePort == 0 {
		return
	}
	// From outside; who is inside has the whole choice also where the others have only what is here.
	external := cluster
	if s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		whole := to("whole", Chain{}, everywhere)
		external = to("external", Chain{Inside: whole}, here)
	} else if internal != nil && *internal == corev1.ServiceInternalTrafficPolicyLocal {
		external = to("whole", Chain{}, everywhere)
	}
	keys(External, external, outside)
	if port.NodePort != 0 {
		p.Keys[Key{Place: NodePort, Six: six, Proto: proto, Port: uint16(port.NodePort)}] = external
	}
	if sources := ranges(s, six); len(sources) > 0 && external != Refuse {
		c := p.Chains[external]
		c.Sources = sources
		p.Chains["balancer"+name] = c
		external = "balancer" + name
	}
	keys(External, external, balanced)
}

// end is one that a chain may lead to; with affinity it has a chain and a set of clients.
func (p *Part) end(service string, six bool, proto Proto, timeout time.Duration, e candidate) End {
	if e.beyond {
		p.Beyond[Beyond{e.at, proto}] = true
	}
	if timeout == 0 {
		return End{At: e.at}
	}
	// Colons would make nft's own words ambiguous.
	at := strings.ReplaceAll(e.at.Addr().String(), ":", "_") + "/" + fmt.Sprint(e.at.Port())
	end := End{At: e.at, Chain: "end" + service + "/" + at, Clients: "clients" + service + "/" + at}
	p.Clients[end.Clients] = six
	p.Chains[end.Chain] = Chain{Six: six, Ends: []End{{At: e.at}}, Timeout: timeout, Remember: end.Clients}
	return end
}

func balancers(s *corev1.Service) (out []netip.Addr) {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil
	}
	for _, in := range s.Status.LoadBalancer.Ingress {
		if in.IPMode == nil || *in.IPMode == corev1.LoadBalancerIPModeVIP {
			out = append(out, parseAll([]string{in.IP})...)
		}
	}
	return out
}

func ranges(s *corev1.Service, six bool) (out []netip.Prefix) {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil
	}
	all := true
	for _, text := range s.Spec.LoadBalancerSourceRanges {
		if r, err := netip.ParsePrefix(strings.TrimSpace(text)); err == nil {
			all = all && r.Bits() == 0
			if r.Addr().Is6() == six {
				out = append(out, r.Masked())
			}
		}
	}
	if all {
		return nil
	}
	if len(out) == 0 { // only ranges of the other family: nobody
		none := netip.MustParsePrefix("255.255.255.255/32")
		if six {
			none = netip.MustParsePrefix("::/128")
		}
		out = []netip.Prefix{none}
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return slices.Compact(out)
}

func protoOf(p corev1.Protocol) Proto {
	switch p {
	case corev1.ProtocolUDP:
		return UDP
	case corev1.ProtocolSCTP:
		return SCTP
	}
	return TCP
}
