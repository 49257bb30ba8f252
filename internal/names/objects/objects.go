// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/wherryproject/wherry/internal/names"
)

// Service is a service's.
func Service(s *corev1.Service) names.Service {
	out := names.Service{Namespace: s.Namespace, Name: s.Name}
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		out.ExternalName = s.Spec.ExternalName
		return out
	}
	ips := s.Spec.ClusterIPs
	if len(ips) == 0 {
		ips = []string{s.Spec.ClusterIP}
	}
	out.IPs = addresses(ips) // "None" is no address
	for _, p := range s.Spec.Ports {
		out.Ports = append(out.Ports, names.Port{Name: p.Name, Protocol: protocol(p.Protocol), Number: uint16(p.Port)})
	}
	return out
}

// Slice is an endpoint slice's. Endpoints that do not say whether they are ready are; those of a service that publishes
// the ones that are not are marked as ready by whoever writes the slice.
func Slice(s *discoveryv1.EndpointSlice) names.Slice {
	out := names.Slice{Namespace: s.Namespace, Name: s.Name, Service: s.Labels[discoveryv1.LabelServiceName]}
	if s.AddressType == discoveryv1.AddressTypeFQDN {
		return out
	}
	for _, p := range s.Ports {
		if p.Port == nil {
			continue // any port, which has no number
		}
		port := names.Port{Protocol: "tcp", Number: uint16(*p.Port)}
		if p.Name != nil {
			port.Name = *p.Name
		}
		if p.Protocol != nil {
			port.Protocol = protocol(*p.Protocol)
		}
		out.Ports = append(out.Ports, port)
	}
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if e.Conditions.Ready != nil && !*e.Conditions.Ready {
			continue
		}
		ready := names.Endpoint{Addresses: addresses(e.Addresses)}
		if e.Hostname != nil {
			ready.Hostname = *e.Hostname
		}
		out.Endpoints = append(out.Endpoints, ready)
	}
	return out
}

// Node is a node's.
func Node(n *corev1.Node) names.Node {
	out := names.Node{Name: n.Name}
	for _, text := range n.Spec.PodCIDRs {
		if p, err := netip.ParsePrefix(text); err == nil {
			out.Networks = append(out.Networks, p.Masked())
		}
	}
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			out.Addresses = append(out.Addresses, addresses([]string{a.Address})...)
		}
	}
	return out
}

// Pod is a pod's. One on the host's network has no address of its own, and one that has ended none any more.
func Pod(p *corev1.Pod) names.Pod {
	out := names.Pod{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}
	if p.Spec.HostNetwork || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return out
	}
	var ips []string
	for _, ip := range p.Status.PodIPs {
		ips = append(ips, ip.IP)
	}
	out.IPs = addresses(ips)
	return out
}

func addresses(texts []string) (out []netip.Addr) {
	for _, t := range texts {
		if ip, err := netip.ParseAddr(t); err == nil {
			out = append(out, ip.Unmap())
		}
	}
	return out
}

// protocol is as names have it. The default is TCP.
func protocol(p corev1.Protocol) string {
	if p == "" {
		p = corev1.ProtocolTCP
	}
	return strings.ToLower(string(p))
}
