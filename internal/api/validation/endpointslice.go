// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

const (
	maxEndpoints     = 1000
	maxSlicePorts    = 20000
	maxAddresses     = 100
	maxEndpointHints = 8
)

// SetDefaultsEndpointSlice names ports "" and makes them TCP.
func SetDefaultsEndpointSlice(s *discoveryv1.EndpointSlice) {
	for i := range s.Ports {
		rules.OrPointTo(&s.Ports[i].Name, "")
		rules.OrPointTo(&s.Ports[i].Protocol, corev1.ProtocolTCP)
	}
}

// ValidateEndpointSlice checks addresses by type, ports and hints.
func ValidateEndpointSlice(s *discoveryv1.EndpointSlice) field.ErrorList {
	all := rules.Meta(&s.ObjectMeta, apivalidation.NameIsDNSSubdomain)
	all = append(all, rules.OneOf(field.NewPath("addressType"), s.AddressType,
		discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)...)
	endpoints := field.NewPath("endpoints")
	if len(s.Endpoints) > maxEndpoints {
		return append(all, field.TooMany(endpoints, len(s.Endpoints), maxEndpoints))
	}
	for i := range s.Endpoints {
		all = append(all, endpoint(&s.Endpoints[i], s.AddressType, endpoints.Index(i))...)
	}
	return append(all, slicePorts(s.Ports, field.NewPath("ports"))...)
}

// ValidateEndpointSliceUpdate also keeps the address type.
func ValidateEndpointSliceUpdate(now, was *discoveryv1.EndpointSlice) field.ErrorList {
	all := rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta)
	all = append(all, rules.Immutable(field.NewPath("addressType"), now.AddressType, was.AddressType)...)
	return append(all, ValidateEndpointSlice(now)...)
}

func endpoint(e *discoveryv1.Endpoint, kind discoveryv1.AddressType, path *field.Path) (all rules.Errs) {
	at := path.Child("addresses")
	switch {
	case len(e.Addresses) == 0:
		all = append(all, field.Required(at, "must contain at least 1 address"))
	case len(e.Addresses) > maxAddresses:
		all = append(all, field.TooMany(at, len(e.Addresses), maxAddresses))
	}
	for i, address := range e.Addresses {
		all = append(all, endpointAddress(address, kind, at.Index(i))...)
	}
	if e.Hostname != nil {
		all = append(all, rules.Valid(path.Child("hostname"), *e.Hostname, validation.IsDNS1123Label(*e.Hostname))...)
	}
	if e.NodeName != nil {
		all = append(all, rules.Valid(path.Child("nodeName"), *e.NodeName,
			apivalidation.NameIsDNSSubdomain(*e.NodeName, false))...)
	}
	if e.Hints == nil {
		return all
	}
	for i, zone := range e.Hints.ForZones {
		all = append(all, rules.Valid(path.Child("hints", "forZones").Index(i).Child("name"), zone.Name,
			validation.IsValidLabelValue(zone.Name))...)
		if slices.Contains(e.Hints.ForZones[:i], zone) {
			all = append(all, field.Duplicate(path.Child("hints", "forZones").Index(i).Child("name"), zone.Name))
		}
	}
	for i, node := range e.Hints.ForNodes {
		all = append(all, rules.Valid(path.Child("hints", "forNodes").Index(i).Child("name"), node.Name,
			apivalidation.NameIsDNSSubdomain(node.Name, false))...)
		if slices.Contains(e.Hints.ForNodes[:i], node) {
			all = append(all, field.Duplicate(path.Child("hints", "forNodes").Index(i).Child("name"), node.Name))
		}
	}
	if n := len(e.Hints.ForZones); n > maxEndpointHints {
		all = append(all, field.TooMany(path.Child("hints", "forZones"), n, maxEndpointHints))
	}
	if n := len(e.Hints.ForNodes); n > maxEndpointHints {
		all = append(all, field.TooMany(path.Child("hints", "forNodes"), n, maxEndpointHints))
	}
	return all
}

func endpointAddress(address string, kind discoveryv1.AddressType, path *field.Path) rules.Errs {
	switch kind {
	case discoveryv1.AddressTypeFQDN:
		return validation.IsFullyQualifiedDomainName(path, address)
	case discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6:
	default:
		return nil // has its own error
	}
	all := validation.IsValidIPForLegacyField(path, address, false, nil)
	if len(all) > 0 {
		return all
	}
	if isIPv6(address) != (kind == discoveryv1.AddressTypeIPv6) {
		return rules.Errs{field.Invalid(path, address, fmt.Sprintf("must be an %s address", kind))}
	}
	return notLocalAddress(path, address)
}

func slicePorts(ports []discoveryv1.EndpointPort, path *field.Path) (all rules.Errs) {
	if len(ports) > maxSlicePorts {
		return rules.Errs{field.TooMany(path, len(ports), maxSlicePorts)}
	}
	names := map[string]bool{}
	for i, p := range ports {
		at := path.Index(i)
		name := ""
		if p.Name != nil {
			name = *p.Name
		}
		if name != "" {
			all = append(all, rules.Valid(at.Child("name"), name, validation.IsDNS1123Label(name))...)
		}
		if names[name] {
			all = append(all, field.Duplicate(at.Child("name"), name))
		}
		names[name] = true
		if p.Protocol == nil {
			all = append(all, field.Required(at.Child("protocol"), ""))
		}
		all = append(all, rules.OneOfIfSet(at.Child("protocol"), p.Protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP,
			corev1.ProtocolUDP)...)
		if p.AppProtocol != nil {
			all = append(all, rules.Valid(at.Child("appProtocol"), *p.AppProtocol,
				validation.IsQualifiedName(*p.AppProtocol))...)
		}
	}
	return all
}
