// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateDataKey(path *field.Path, key string) (errs field.ErrorList) {
	for _, msg := range validation.IsConfigMapKey(key) {
		errs = append(errs, field.Invalid(path.Key(key), key, msg))
	}
	return errs
}

func validateSecret(s *corev1.Secret) (errs field.ErrorList) {
	data := field.NewPath("data")
	size := 0
	for k, v := range s.Data {
		errs = append(errs, validateDataKey(data, k)...)
		size += len(v)
	}
	if size > maxDataBytes {
		errs = append(errs, field.TooLong(data, "", maxDataBytes))
	}
	need := func(key string) {
		if _, ok := s.Data[key]; !ok {
			errs = append(errs, field.Required(data.Key(key), ""))
		}
	}
	needJSON := func(key string) {
		v, ok := s.Data[key]
		if !ok {
			errs = append(errs, field.Required(data.Key(key), ""))
			return
		}
		if !json.Valid(v) {
			errs = append(errs, field.Invalid(data.Key(key), "<secret contents redacted>", "is not JSON"))
		}
	}
	switch s.Type {
	case corev1.SecretTypeDockercfg:
		needJSON(corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		needJSON(corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		_, user := s.Data[corev1.BasicAuthUsernameKey]
		_, password := s.Data[corev1.BasicAuthPasswordKey]
		if !user && !password {
			need(corev1.BasicAuthUsernameKey)
			need(corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		need(corev1.SSHAuthPrivateKey)
	case corev1.SecretTypeTLS:
		need(corev1.TLSCertKey)
		need(corev1.TLSPrivateKeyKey)
	case corev1.SecretTypeServiceAccountToken:
		if s.Annotations[corev1.ServiceAccountNameKey] == "" {
			errs = append(errs, field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), ""))
		}
	}
	return errs
}

func validateEndpointSlice(s *discoveryv1.EndpointSlice) (errs field.ErrorList) {
	switch s.AddressType {
	case discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN:
	case "":
		errs = append(errs, field.Required(field.NewPath("addressType"), ""))
	default:
		errs = append(errs, field.NotSupported(field.NewPath("addressType"), s.AddressType,
			[]discoveryv1.AddressType{discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6}))
	}
	for i, e := range s.Endpoints {
		path := field.NewPath("endpoints").Index(i).Child("addresses")
		if len(e.Addresses) == 0 {
			errs = append(errs, field.Required(path, "must contain at least 1 item"))
		}
		for j, a := range e.Addresses {
			ip, err := netip.ParseAddr(a)
			switch {
			case s.AddressType == discoveryv1.AddressTypeIPv4 && (err != nil || !ip.Is4()):
				errs = append(errs, field.Invalid(path.Index(j), a, "must be an IPv4 address"))
			case s.AddressType == discoveryv1.AddressTypeIPv6 && (err != nil || !ip.Is6()):
				errs = append(errs, field.Invalid(path.Index(j), a, "must be an IPv6 address"))
			}
		}
	}
	return errs
}

func validateLease(l *coordinationv1.Lease) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	if l.Spec.LeaseDurationSeconds != nil && *l.Spec.LeaseDurationSeconds <= 0 {
		errs = append(errs, field.Invalid(spec.Child("leaseDurationSeconds"), *l.Spec.LeaseDurationSeconds, "must be greater than 0"))
	}
	if l.Spec.LeaseTransitions != nil && *l.Spec.LeaseTransitions < 0 {
		errs = append(errs, field.Invalid(spec.Child("leaseTransitions"), *l.Spec.LeaseTransitions, "must be greater than or equal to 0"))
	}
	return errs
}

func validateService(s *corev1.Service) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	switch s.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer:
		if len(s.Spec.Ports) == 0 && s.Spec.ClusterIP != corev1.ClusterIPNone {
			errs = append(errs, field.Required(spec.Child("ports"), ""))
		}
	case corev1.ServiceTypeExternalName:
		if name := strings.TrimSuffix(s.Spec.ExternalName, "."); name == "" {
			errs = append(errs, field.Required(spec.Child("externalName"), ""))
		} else {
			for _, msg := range validation.IsDNS1123Subdomain(name) {
				errs = append(errs, field.Invalid(spec.Child("externalName"), s.Spec.ExternalName, msg))
			}
		}
	default:
		errs = append(errs, field.NotSupported(spec.Child("type"), s.Spec.Type, []corev1.ServiceType{
			corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort}))
	}
	switch s.Spec.SessionAffinity {
	case corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP:
	default:
		errs = append(errs, field.NotSupported(spec.Child("sessionAffinity"), s.Spec.SessionAffinity,
			[]corev1.ServiceAffinity{corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone}))
	}
	for k, v := range s.Spec.Selector {
		for _, msg := range append(validation.IsQualifiedName(k), validation.IsValidLabelValue(v)...) {
			errs = append(errs, field.Invalid(spec.Child("selector"), k, msg))
		}
	}
	return append(errs, validateServicePorts(spec.Child("ports"), s.Spec.Ports)...)
}

func validateServicePorts(path *field.Path, ports []corev1.ServicePort) (errs field.ErrorList) {
	names, numbers := map[string]bool{}, map[string]bool{}
	for i, p := range ports {
		at := path.Index(i)
		switch {
		case p.Name == "" && len(ports) > 1:
			errs = append(errs, field.Required(at.Child("name"), ""))
		case p.Name != "":
			for _, msg := range validation.IsDNS1123Label(p.Name) {
				errs = append(errs, field.Invalid(at.Child("name"), p.Name, msg))
			}
			if names[p.Name] {
				errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
			}
			names[p.Name] = true
		}
		for _, msg := range validation.IsValidPortNum(int(p.Port)) {
			errs = append(errs, field.Invalid(at.Child("port"), p.Port, msg))
		}
		switch p.Protocol {
		case corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP:
		default:
			errs = append(errs, field.NotSupported(at.Child("protocol"), p.Protocol,
				[]corev1.Protocol{corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP}))
		}
		if key := fmt.Sprintf("%s/%d", p.Protocol, p.Port); numbers[key] {
			errs = append(errs, field.Duplicate(at, corev1.ServicePort{Port: p.Port, Protocol: p.Protocol}))
		} else {
			numbers[key] = true
		}
		var msgs []string
		if p.TargetPort.Type == intstr.Int {
			msgs = validation.IsValidPortNum(p.TargetPort.IntValue())
		} else {
			msgs = validation.IsValidPortName(p.TargetPort.StrVal)
		}
		for _, msg := range msgs {
			errs = append(errs, field.Invalid(at.Child("targetPort"), p.TargetPort, msg))
		}
	}
	return errs
}
