// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestService(t *testing.T) {
	type sv = corev1.Service
	good := func() *sv {
		s := &sv{ObjectMeta: object("s"), Spec: corev1.ServiceSpec{
			Selector: map[string]string{"a": "b"}, Ports: []corev1.ServicePort{{Port: 80}}, ClusterIP: "10.0.0.1", ClusterIPs: []string{"10.0.0.1"},
		}}
		SetDefaultsService(s)
		return s
	}
	if s := good().Spec; s.Type != "ClusterIP" || s.SessionAffinity != "None" || *s.InternalTrafficPolicy != "Cluster" ||
		s.Ports[0].Protocol != "TCP" || s.Ports[0].TargetPort != intstr.FromInt32(80) || s.ExternalTrafficPolicy != "" {
		t.Errorf("defaults: %+v", s)
	}
	sticky := &sv{Spec: corev1.ServiceSpec{Type: "LoadBalancer", SessionAffinity: "ClientIP"}}
	SetDefaultsService(sticky)
	if s := sticky.Spec; *s.SessionAffinityConfig.ClientIP.TimeoutSeconds != 10800 || s.ExternalTrafficPolicy != "Cluster" || !*s.AllocateLoadBalancerNodePorts {
		t.Errorf("defaults: %+v", s)
	}
	spec := func(change func(*corev1.ServiceSpec)) func(*sv) { return func(s *sv) { change(&s.Spec) } }
	check(t, good, ValidateService, []row[sv]{
		{"name", func(s *sv) { s.Name = "1.a" }, "metadata.name", "dots"},
		{"type", spec(func(s *corev1.ServiceSpec) { s.Type = "x" }), "spec.type", "NodePort"},
		{"selector", spec(func(s *corev1.ServiceSpec) { s.Selector["a b"] = "" }), "spec.selector", ""},
		{"no ports", spec(func(s *corev1.ServiceSpec) { s.Ports = nil }), "spec.ports", "Required"},
		{"headless without ports", spec(func(s *corev1.ServiceSpec) { s.Ports, s.ClusterIP, s.ClusterIPs = nil, "None", []string{"None"} }), "", ""},
		{"port", spec(func(s *corev1.ServiceSpec) { s.Ports[0].Port = 0 }), "spec.ports[0].port", "1 and 65535"},
		{"protocol", spec(func(s *corev1.ServiceSpec) { s.Ports[0].Protocol = "x" }), "spec.ports[0].protocol", "SCTP"},
		{"target port", spec(func(s *corev1.ServiceSpec) { s.Ports[0].TargetPort = intstr.FromString("A") }), "spec.ports[0].targetPort", ""},
		{"app protocol", spec(func(s *corev1.ServiceSpec) { s.Ports[0].AppProtocol = new("a b") }), "spec.ports[0].appProtocol", ""},
		{"node port of ClusterIP", spec(func(s *corev1.ServiceSpec) { s.Ports[0].NodePort = 30000 }), "spec.ports[0].nodePort", "may not be used when `type` is 'ClusterIP'"},
		{"two ports unnamed", spec(func(s *corev1.ServiceSpec) { s.Ports = append(s.Ports, s.Ports[0]) }), "spec.ports[1].name", "Required"},
		{"two ports alike", spec(func(s *corev1.ServiceSpec) {
			a, b := s.Ports[0], s.Ports[0]
			a.Name, b.Name = "a", "b"
			s.Ports = []corev1.ServicePort{a, b}
		}), "spec.ports[1]", "Duplicate"},
		{"port names alike", spec(func(s *corev1.ServiceSpec) {
			a, b := s.Ports[0], s.Ports[0]
			a.Name, b.Name, b.Port = "a", "a", 81
			s.Ports = []corev1.ServicePort{a, b}
		}), "spec.ports[1].name", "Duplicate"},
		{"cluster IP", spec(func(s *corev1.ServiceSpec) { s.ClusterIP, s.ClusterIPs = "x", []string{"x"} }), "spec.clusterIPs[0]", "valid IP"},
		{"cluster IPs differ", spec(func(s *corev1.ServiceSpec) { s.ClusterIP = "10.0.0.2" }), "spec.clusterIPs", "first value must match"},
		{"cluster IPs of one family", spec(func(s *corev1.ServiceSpec) { s.ClusterIPs = []string{"10.0.0.1", "10.0.0.2"} }), "spec.clusterIPs", "no more than one IP"},
		{"family", spec(func(s *corev1.ServiceSpec) { s.IPFamilies = []corev1.IPFamily{"IPv6"} }), "spec.clusterIPs[0]", "expected an IPv6 value"},
		{"families alike", spec(func(s *corev1.ServiceSpec) { s.IPFamilies = []corev1.IPFamily{"IPv4", "IPv4"} }), "spec.ipFamilies[1]", "Duplicate"},
		{"family policy", spec(func(s *corev1.ServiceSpec) { s.IPFamilyPolicy = new(corev1.IPFamilyPolicy("x")) }), "spec.ipFamilyPolicy", "SingleStack"},
		{"affinity", spec(func(s *corev1.ServiceSpec) { s.SessionAffinity = "x" }), "spec.sessionAffinity", "ClientIP"},
		{"affinity without seconds", spec(func(s *corev1.ServiceSpec) { s.SessionAffinity = "ClientIP" }), "spec.sessionAffinityConfig.clientIP.timeoutSeconds", "Required"},
		{"external IP", spec(func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{"127.0.0.1"} }), "spec.externalIPs[0]", "loopback"},
		{"external name missing", spec(func(s *corev1.ServiceSpec) { s.Type, s.ClusterIP, s.ClusterIPs = "ExternalName", "", nil }), "spec.externalName", "Required"},
		{"external name", spec(func(s *corev1.ServiceSpec) {
			s.Type, s.ClusterIP, s.ClusterIPs, s.ExternalName = "ExternalName", "", nil, "a b"
		}), "spec.externalName", "RFC 1123"},
		{"external name with IP", spec(func(s *corev1.ServiceSpec) { s.Type, s.ExternalName = "ExternalName", "a.b" }), "spec.clusterIPs", "may not be set for ExternalName"},
		{"internal policy", spec(func(s *corev1.ServiceSpec) { s.InternalTrafficPolicy = nil }), "spec.internalTrafficPolicy", "Required"},
		{"external policy", spec(func(s *corev1.ServiceSpec) { s.ExternalTrafficPolicy = "Local" }), "spec.externalTrafficPolicy", "externally-accessible"},
		{"traffic distribution", spec(func(s *corev1.ServiceSpec) { s.TrafficDistribution = new("x") }), "spec.trafficDistribution", "PreferSameZone"},
		{"health check port", spec(func(s *corev1.ServiceSpec) { s.HealthCheckNodePort = 1 }), "spec.healthCheckNodePort", "LoadBalancer"},
		{"source ranges", spec(func(s *corev1.ServiceSpec) { s.LoadBalancerSourceRanges = []string{"x"} }), "spec.loadBalancerSourceRanges[0]", "CIDR"},
		{"load balancer class", spec(func(s *corev1.ServiceSpec) { s.LoadBalancerClass = new("a") }), "spec.loadBalancerClass", "LoadBalancer"},
	})
	checkUpdate(t, good, ValidateServiceUpdate, nil, []row[sv]{
		{"ports", spec(func(s *corev1.ServiceSpec) { s.Ports[0].Port = 81 }), "", ""},
		{"cluster IP", spec(func(s *corev1.ServiceSpec) { s.ClusterIP, s.ClusterIPs = "10.0.0.2", []string{"10.0.0.2"} }), "spec.clusterIPs[0]", "may not change once set"},
		{"to ExternalName", spec(func(s *corev1.ServiceSpec) {
			s.Type, s.ClusterIP, s.ClusterIPs, s.ExternalName, s.InternalTrafficPolicy = "ExternalName", "", nil, "a.b", nil
		}), "", ""},
	})
	balanced := func() *sv {
		s := good()
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
		return s
	}
	at := func(in corev1.LoadBalancerIngress) func(*sv) {
		return func(s *sv) { s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{in} }
	}
	checkUpdate(t, balanced, ValidateServiceStatusUpdate, nil, []row[sv]{
		{"address", at(corev1.LoadBalancerIngress{IP: "192.0.2.1", IPMode: new(corev1.LoadBalancerIPModeVIP)}), "", ""},
		{"no address", at(corev1.LoadBalancerIngress{IP: "x"}), "status.loadBalancer.ingress[0].ip", "IP address"},
		{"mode alone", at(corev1.LoadBalancerIngress{IPMode: new(corev1.LoadBalancerIPModeVIP)}), "status.loadBalancer.ingress[0].ipMode", "`ip` is not set"},
		{"mode", at(corev1.LoadBalancerIngress{IP: "192.0.2.1", IPMode: new(corev1.LoadBalancerIPMode("x"))}), "status.loadBalancer.ingress[0].ipMode", "Proxy"},
		{"address as name", at(corev1.LoadBalancerIngress{Hostname: "192.0.2.1"}), "status.loadBalancer.ingress[0].hostname", "not an IP address"},
		{"other type", func(s *sv) {
			s.Spec.Type, s.Status.LoadBalancer.Ingress = "NodePort", []corev1.LoadBalancerIngress{{Hostname: "a.b"}}
		}, "status.loadBalancer.ingress", "LoadBalancer"},
	})
}

func TestEndpointSlice(t *testing.T) {
	type es = discoveryv1.EndpointSlice
	good := func() *es {
		s := &es{
			ObjectMeta: object("e"), AddressType: "IPv4", Ports: []discoveryv1.EndpointPort{{Port: new(int32(80))}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.2"}, Hostname: new("a"), NodeName: new("n")}},
		}
		SetDefaultsEndpointSlice(s)
		return s
	}
	if p := good().Ports[0]; *p.Name != "" || *p.Protocol != "TCP" {
		t.Errorf("defaults: %+v", p)
	}
	first := func(change func(*discoveryv1.Endpoint)) func(*es) { return func(s *es) { change(&s.Endpoints[0]) } }
	check(t, good, ValidateEndpointSlice, []row[es]{
		{"address type", func(s *es) { s.AddressType = "x" }, "addressType", "IPv6"},
		{"no address", first(func(e *discoveryv1.Endpoint) { e.Addresses = nil }), "endpoints[0].addresses", "at least 1 address"},
		{"address", first(func(e *discoveryv1.Endpoint) { e.Addresses[0] = "x" }), "endpoints[0].addresses[0]", "valid IP"},
		{"family", first(func(e *discoveryv1.Endpoint) { e.Addresses[0] = "fd00::1" }), "endpoints[0].addresses[0]", "must be an IPv4 address"},
		{"loopback", first(func(e *discoveryv1.Endpoint) { e.Addresses[0] = "127.0.0.1" }), "endpoints[0].addresses[0]", "loopback"},
		{"hostname", first(func(e *discoveryv1.Endpoint) { e.Hostname = new("A") }), "endpoints[0].hostname", ""},
		{"node", first(func(e *discoveryv1.Endpoint) { e.NodeName = new("a b") }), "endpoints[0].nodeName", ""},
		{"hints", first(func(e *discoveryv1.Endpoint) {
			e.Hints = &discoveryv1.EndpointHints{ForZones: make([]discoveryv1.ForZone, 9)}
		}), "endpoints[0].hints.forZones", "8"},
		{"a zone's name", first(func(e *discoveryv1.Endpoint) {
			e.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "a b"}}}
		}), "endpoints[0].hints.forZones[0].name", ""},
		{"port name", func(s *es) { s.Ports[0].Name = new("a b") }, "ports[0].name", ""},
		{"port names alike", func(s *es) { s.Ports = append(s.Ports, s.Ports[0]) }, "ports[1].name", "Duplicate"},
		{"port protocol", func(s *es) { s.Ports[0].Protocol = new(corev1.Protocol("x")) }, "ports[0].protocol", "UDP"},
		{"too many", func(s *es) { s.Endpoints = make([]discoveryv1.Endpoint, 1001) }, "endpoints", "1000"},
	})
	checkUpdate(t, good, ValidateEndpointSliceUpdate, nil, []row[es]{
		{"address type", func(s *es) { s.AddressType, s.Endpoints = "IPv6", nil }, "addressType", "immutable"},
		{"endpoints", func(s *es) { s.Endpoints = nil }, "", ""},
	})
}
