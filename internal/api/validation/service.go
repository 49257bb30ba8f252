// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

// SetDefaultsService fills type, affinity, policies and ports. Addresses are for an allocator to give.
func SetDefaultsService(svc *corev1.Service) {
	s := &svc.Spec
	rules.OrElse(&s.Type, corev1.ServiceTypeClusterIP)
	rules.OrElse(&s.SessionAffinity, corev1.ServiceAffinityNone)
	switch s.SessionAffinity {
	case corev1.ServiceAffinityNone:
		s.SessionAffinityConfig = nil
	case corev1.ServiceAffinityClientIP:
		if c := s.SessionAffinityConfig; c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil {
			s.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{
				TimeoutSeconds: new(corev1.DefaultClientIPServiceAffinitySeconds),
			}}
		}
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		rules.OrElse(&p.Protocol, corev1.ProtocolTCP)
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	if IsExternallyAccessible(s) {
		rules.OrElse(&s.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if isExternal(s.Type) || s.Type == corev1.ServiceTypeClusterIP {
		rules.OrPointTo(&s.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if s.Type == corev1.ServiceTypeLoadBalancer {
		rules.OrPointTo(&s.AllocateLoadBalancerNodePorts, true)
		for i := range svc.Status.LoadBalancer.Ingress {
			if in := &svc.Status.LoadBalancer.Ingress[i]; in.IP != "" {
				rules.OrPointTo(&in.IPMode, corev1.LoadBalancerIPModeVIP)
			}
		}
	}
}

// IsExternallyAccessible reports whether a service can be reached from outside: by its type, or by addresses of its
// own.
func IsExternallyAccessible(s *corev1.ServiceSpec) bool {
	return isExternal(s.Type) || s.Type == corev1.ServiceTypeClusterIP && len(s.ExternalIPs) > 0
}

// isExternal: reachable from outside by its type.
func isExternal(t corev1.ServiceType) bool {
	return t == corev1.ServiceTypeNodePort || t == corev1.ServiceTypeLoadBalancer
}

// ValidateService checks everything of the spec.
func ValidateService(svc *corev1.Service) field.ErrorList {
	all := rules.Meta(&svc.ObjectMeta, apivalidation.NameIsDNSLabel) // KEP-5311
	s, path := &svc.Spec, field.NewPath("spec")
	all = append(all, rules.OneOf(path.Child("type"), s.Type, corev1.ServiceTypeClusterIP,
		corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort)...)
	all = append(all, unversioned.ValidateLabels(s.Selector, path.Child("selector"))...)
	all = append(all, affinity(s, path)...)
	all = append(all, servicePorts(s, path.Child("ports"))...)
	all = append(all, clusterIPs(s, path)...)
	all = append(all, trafficPolicies(s, path)...)
	if s.Type == corev1.ServiceTypeExternalName {
		name := strings.TrimSuffix(s.ExternalName, ".")
		if name == "" {
			all = append(all, field.Required(path.Child("externalName"), ""))
		} else {
			all = append(all, rules.Valid(path.Child("externalName"), s.ExternalName,
				validation.IsDNS1123Subdomain(name))...)
		}
	}
	for i, ip := range s.ExternalIPs {
		at := path.Child("externalIPs").Index(i)
		wrong := validation.IsValidIPForLegacyField(at, ip, false, nil)
		if len(wrong) == 0 {
			wrong = notLocalAddress(at, ip)
		}
		all = append(all, wrong...)
	}
	return append(all, loadBalancer(s, path)...)
}

// ValidateServiceUpdate also keeps the addresses once they are given, unless the type turns to or from
// ExternalName, which has none.
func ValidateServiceUpdate(now, was *corev1.Service) field.ErrorList {
	all := rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta)
	path := field.NewPath("spec")
	hasIP := func(s *corev1.Service) bool { return s.Spec.Type != corev1.ServiceTypeExternalName }
	if hasIP(now) && hasIP(was) && was.Spec.ClusterIP != "" {
		if a, b := addressOf(&now.Spec), addressOf(&was.Spec); a != b {
			all = append(all, field.Invalid(path.Child("clusterIPs").Index(0), now.Spec.ClusterIPs,
				"may not change once set"))
		} else if f, g := now.Spec.IPFamilies, was.Spec.IPFamilies; a != corev1.ClusterIPNone && len(f) > 0 &&
			len(g) > 0 && f[0] != g[0] {
			all = append(all, field.Invalid(path.Child("ipFamilies").Index(0), f, "may not change once set"))
		}
	}
	if needsHealthCheck(&now.Spec) && needsHealthCheck(&was.Spec) {
		if now.Spec.HealthCheckNodePort != was.Spec.HealthCheckNodePort {
			all = append(all, field.Forbidden(path.Child("healthCheckNodePort"), "field is immutable"))
		}
	}
	if now.Spec.Type == was.Spec.Type && was.Spec.LoadBalancerClass != nil {
		all = append(all, rules.Immutable(path.Child("loadBalancerClass"), now.Spec.LoadBalancerClass,
			was.Spec.LoadBalancerClass)...)
	}
	return append(all, ValidateService(now)...)
}

// ValidateServiceStatusUpdate checks where a load balancer is said to be.
func ValidateServiceStatusUpdate(now, was *corev1.Service) field.ErrorList {
	all := rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta)
	path, list := field.NewPath("status", "loadBalancer", "ingress"), now.Status.LoadBalancer.Ingress
	var existing []string // what was let in before
	for _, in := range was.Status.LoadBalancer.Ingress {
		existing = append(existing, in.IP)
	}
	if now.Spec.Type != corev1.ServiceTypeLoadBalancer {
		if len(list) > 0 {
			all = append(all, field.Forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'"))
		}
		return all
	}
	for i, in := range list {
		at := path.Index(i)
		switch {
		case in.IP == "" && in.IPMode != nil:
			all = append(all, field.Forbidden(at.Child("ipMode"), "may not be specified when `ip` is not set"))
		case in.IP != "":
			all = append(all, validation.IsValidIPForLegacyField(at.Child("ip"), in.IP, false, existing)...)
			all = append(all, rules.OneOfIfSet(at.Child("ipMode"), in.IPMode, corev1.LoadBalancerIPModeProxy,
				corev1.LoadBalancerIPModeVIP)...)
		}
		if in.Hostname != "" {
			all = append(all, rules.Valid(at.Child("hostname"), in.Hostname,
				validation.IsDNS1123Subdomain(in.Hostname))...)
			if netutils.ParseIPSloppy(in.Hostname) != nil {
				all = append(all, field.Invalid(at.Child("hostname"), in.Hostname,
					"must be a DNS name, not an IP address"))
			}
		}
	}
	return all
}

// addressOf is the first address, whichever field has it.
func addressOf(s *corev1.ServiceSpec) string {
	if len(s.ClusterIPs) > 0 {
		return s.ClusterIPs[0]
	}
	return s.ClusterIP
}

// needsHealthCheck: a load balancer asks for pods of the node only.
func needsHealthCheck(s *corev1.ServiceSpec) bool {
	return s.Type == corev1.ServiceTypeLoadBalancer &&
		s.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

func affinity(s *corev1.ServiceSpec, path *field.Path) rules.Errs {
	all := rules.OneOf(path.Child("sessionAffinity"), s.SessionAffinity, corev1.ServiceAffinityClientIP,
		corev1.ServiceAffinityNone)
	at := path.Child("sessionAffinityConfig")
	c := s.SessionAffinityConfig
	switch {
	case s.SessionAffinity == corev1.ServiceAffinityNone && c != nil:
		all = append(all, field.Forbidden(at, "must not be set when session affinity is None"))
	case s.SessionAffinity == corev1.ServiceAffinityClientIP &&
		(c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil):
		all = append(all, field.Required(at.Child("clientIP", "timeoutSeconds"), ""))
	case s.SessionAffinity == corev1.ServiceAffinityClientIP:
		if n := *c.ClientIP.TimeoutSeconds; n <= 0 || n > 86400 {
			all = append(all, field.Invalid(at.Child("clientIP", "timeoutSeconds"), n,
				"must be greater than 0 and less than 86400"))
		}
	}
	return all
}

func servicePorts(s *corev1.ServiceSpec, path *field.Path) (all rules.Errs) {
	headless := s.ClusterIP == corev1.ClusterIPNone
	if len(s.Ports) == 0 && !headless && s.Type != corev1.ServiceTypeExternalName {
		all = append(all, field.Required(path, ""))
	}
	names, numbers, nodePorts := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range s.Ports {
		p, at := &s.Ports[i], path.Index(i)
		switch {
		case p.Name == "" && len(s.Ports) > 1:
			all = append(all, field.Required(at.Child("name"), ""))
		case p.Name != "":
			all = append(all, rules.Valid(at.Child("name"), p.Name, validation.IsDNS1123Label(p.Name))...)
			if names[p.Name] {
				all = append(all, field.Duplicate(at.Child("name"), p.Name))
			}
			names[p.Name] = true
		}
		all = append(all, rules.Valid(at.Child("port"), p.Port, validation.IsValidPortNum(int(p.Port)))...)
		all = append(all, rules.OneOf(at.Child("protocol"), p.Protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP,
			corev1.ProtocolUDP)...)
		all = append(all, targetPort(p.TargetPort, at.Child("targetPort"))...)
		if p.AppProtocol != nil {
			all = append(all, rules.Valid(at.Child("appProtocol"), *p.AppProtocol,
				validation.IsQualifiedName(*p.AppProtocol))...)
		}
		key := fmt.Sprint(p.Protocol, "/", p.Port)
		if numbers[key] {
			all = append(all, field.Duplicate(at, map[string]any{"protocol": p.Protocol, "port": p.Port}))
		}
		numbers[key] = true
		if p.NodePort == 0 {
			continue
		}
		if s.Type == corev1.ServiceTypeClusterIP {
			all = append(all, field.Forbidden(at.Child("nodePort"),
				fmt.Sprintf("may not be used when `type` is '%s'", s.Type)))
		}
		all = append(all, rules.Valid(at.Child("nodePort"), p.NodePort, validation.IsValidPortNum(int(p.NodePort)))...)
		key = fmt.Sprint(p.Protocol, "/", p.NodePort)
		if nodePorts[key] {
			all = append(all, field.Duplicate(at.Child("nodePort"), p.NodePort))
		}
		nodePorts[key] = true
	}
	return all
}

func targetPort(port intstr.IntOrString, path *field.Path) rules.Errs {
	if port.Type == intstr.String {
		return rules.Valid(path, port.StrVal, validation.IsValidPortName(port.StrVal))
	}
	return rules.Valid(path, port.IntVal, validation.IsValidPortNum(int(port.IntVal)))
}

// clusterIPs: none, "None", or up to one address of each family; the first is also the single one.
func clusterIPs(s *corev1.ServiceSpec, path *field.Path) (all rules.Errs) {
	at := path.Child("clusterIPs")
	if s.Type == corev1.ServiceTypeExternalName {
		for _, f := range []struct {
			name string
			set  bool
		}{{"clusterIPs", s.ClusterIP != "" || len(s.ClusterIPs) > 0}, {"ipFamilies", len(s.IPFamilies) > 0},
			{"ipFamilyPolicy", s.IPFamilyPolicy != nil}} {
			if f.set {
				all = append(all, field.Forbidden(path.Child(f.name), "may not be set for ExternalName services"))
			}
		}
		return all
	}
	list := s.ClusterIPs
	if len(list) == 0 && s.ClusterIP != "" {
		list = []string{s.ClusterIP}
	}
	if len(s.ClusterIPs) > 0 && s.ClusterIPs[0] != s.ClusterIP {
		all = append(all, field.Invalid(at, s.ClusterIPs, "first value must match `clusterIP`"))
	}
	if len(list) > 2 {
		all = append(all, field.Invalid(at, list, "may only hold up to 2 values"))
	}
	six := map[bool]bool{}
	for i, ip := range list {
		if ip == corev1.ClusterIPNone {
			if len(list) > 1 {
				all = append(all, field.Invalid(at.Index(i), list, "'None' must be the first and only value"))
			}
			if isExternal(s.Type) {
				all = append(all, field.Invalid(path.Child("clusterIP"), ip,
					fmt.Sprintf("may not be set to 'None' for %s services", s.Type)))
			}
			continue
		}
		wrong := validation.IsValidIPForLegacyField(at.Index(i), ip, false, nil)
		all = append(all, wrong...)
		if len(wrong) == 0 {
			if six[isIPv6(ip)] {
				all = append(all, field.Invalid(at, list, "may specify no more than one IP for each IP family"))
			}
			six[isIPv6(ip)] = true
		}
	}
	return append(all, families(s, path)...)
}

func families(s *corev1.ServiceSpec, path *field.Path) rules.Errs {
	all := rules.OneOfIfSet(path.Child("ipFamilyPolicy"), s.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack,
		corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack)
	at, known := path.Child("ipFamilies"), map[corev1.IPFamily]bool{}
	for i, f := range s.IPFamilies {
		all = append(all, rules.OneOf(at.Index(i), f, corev1.IPv4Protocol, corev1.IPv6Protocol)...)
		if known[f] {
			all = append(all, field.Duplicate(at.Index(i), f))
		}
		known[f] = true
		if i < len(s.ClusterIPs) && s.ClusterIPs[i] != corev1.ClusterIPNone &&
			isIPv6(s.ClusterIPs[i]) != (f == corev1.IPv6Protocol) {
			all = append(all, field.Invalid(path.Child("clusterIPs").Index(i), s.ClusterIPs[i],
				fmt.Sprintf("expected an %s value as indicated by `ipFamilies[%d]`", f, i)))
		}
	}
	return all
}

func trafficPolicies(s *corev1.ServiceSpec, path *field.Path) (all rules.Errs) {
	if (isExternal(s.Type) || s.Type == corev1.ServiceTypeClusterIP) && s.InternalTrafficPolicy == nil {
		all = append(all, field.Required(path.Child("internalTrafficPolicy"), ""))
	}
	all = append(all, rules.OneOfIfSet(path.Child("internalTrafficPolicy"), s.InternalTrafficPolicy,
		corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)...)
	all = append(all, rules.OneOfIfSet(path.Child("trafficDistribution"), s.TrafficDistribution,
		corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone,
		corev1.ServiceTrafficDistributionPreferSameNode)...)
	at := path.Child("externalTrafficPolicy")
	external := IsExternallyAccessible(s)
	switch {
	case s.ExternalTrafficPolicy == "" && external:
		all = append(all, field.Required(at, ""))
	case s.ExternalTrafficPolicy == "":
	case !external:
		all = append(all, field.Invalid(at, s.ExternalTrafficPolicy,
			"may only be set for externally-accessible services"))
	default:
		all = append(all, rules.OneOf(at, s.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster,
			corev1.ServiceExternalTrafficPolicyLocal)...)
	}
	if n := s.HealthCheckNodePort; n != 0 {
		at := path.Child("healthCheckNodePort")
		if !needsHealthCheck(s) {
			all = append(all,
				field.Invalid(at, n,
					"may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
		}
		all = append(all, rules.Valid(at, n, validation.IsValidPortNum(int(n)))...)
	}
	return all
}

func loadBalancer(s *corev1.ServiceSpec, path *field.Path) (all rules.Errs) {
	is := s.Type == corev1.ServiceTypeLoadBalancer
	if len(s.LoadBalancerSourceRanges) > 0 && !is {
		all = append(all, field.Forbidden(path.Child("loadBalancerSourceRanges"),
			"may only be used when `type` is 'LoadBalancer'"))
	}
	for i, cidr := range s.LoadBalancerSourceRanges {
		at := path.Child("loadBalancerSourceRanges").Index(i)
		all = append(all, validation.IsValidCIDRForLegacyField(at, strings.TrimSpace(cidr), false, nil)...)
	}
	if s.AllocateLoadBalancerNodePorts != nil && !is {
		all = append(all, field.Forbidden(path.Child("allocateLoadBalancerNodePorts"),
			"may only be used when `type` is 'LoadBalancer'"))
	}
	if is && s.AllocateLoadBalancerNodePorts == nil {
		all = append(all, field.Required(path.Child("allocateLoadBalancerNodePorts"), ""))
	}
	if c := s.LoadBalancerClass; c != nil {
		if !is {
			all = append(all, field.Forbidden(path.Child("loadBalancerClass"),
				"may only be used when `type` is 'LoadBalancer'"))
		}
		all = append(all, rules.Valid(path.Child("loadBalancerClass"), *c, validation.IsQualifiedName(*c))...)
	}
	return all
}
