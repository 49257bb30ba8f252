// SPDX-License-Identifier: Apache-2.0

package validation

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

// ValidateEndpoints checks addresses and ports.
func ValidateEndpoints(e *corev1.Endpoints) field.ErrorList {
	return append(rules.Meta(&e.ObjectMeta, apivalidation.NameIsDNSSubdomain),
		subsets(e.Subsets, field.NewPath("subsets"))...)
}

// ValidateEndpointsUpdate is ValidateEndpoints for changed ones; subsets that did not change are as good as they were.
func ValidateEndpointsUpdate(now, was *corev1.Endpoints) field.ErrorList {
	all := append(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta),
		rules.Meta(&now.ObjectMeta, apivalidation.NameIsDNSSubdomain)...)
	if equality.Semantic.DeepEqual(now.Subsets, was.Subsets) {
		return all
	}
	return append(all, subsets(now.Subsets, field.NewPath("subsets"))...)
}

func subsets(list []corev1.EndpointSubset, path *field.Path) (all rules.Errs) {
	for i, s := range list {
		at := path.Index(i)
		if len(s.Addresses)+len(s.NotReadyAddresses) == 0 {
			all = append(all, field.Required(at, "must specify `addresses` or `notReadyAddresses`"))
		}
		for j := range s.Addresses {
			all = append(all, subsetAddress(&s.Addresses[j], at.Child("addresses").Index(j))...)
		}
		for j := range s.NotReadyAddresses {
			all = append(all, subsetAddress(&s.NotReadyAddresses[j], at.Child("notReadyAddresses").Index(j))...)
		}
		for j := range s.Ports {
			all = append(all, subsetPort(&s.Ports[j], len(s.Ports) > 1, at.Child("ports").Index(j))...)
		}
	}
	return all
}

func subsetAddress(a *corev1.EndpointAddress, path *field.Path) rules.Errs {
	all := validation.IsValidIPForLegacyField(path.Child("ip"), a.IP, false, nil)
	if len(all) == 0 {
		all = notLocalAddress(path.Child("ip"), a.IP)
	}
	if a.Hostname != "" {
		all = append(all, rules.Valid(path.Child("hostname"), a.Hostname, validation.IsDNS1123Label(a.Hostname))...)
	}
	if a.NodeName != nil {
		all = append(all, rules.Valid(path.Child("nodeName"), *a.NodeName,
			apivalidation.NameIsDNSSubdomain(*a.NodeName, false))...)
	}
	return all
}

func subsetPort(p *corev1.EndpointPort, named bool, path *field.Path) (all rules.Errs) {
	switch {
	case p.Name != "":
		all = append(all, rules.Valid(path.Child("name"), p.Name, validation.IsDNS1123Label(p.Name))...)
	case named:
		all = append(all, field.Required(path.Child("name"), ""))
	}
	all = append(all, rules.Valid(path.Child("port"), p.Port, validation.IsValidPortNum(int(p.Port)))...)
	all = append(all, rules.OneOf(path.Child("protocol"), p.Protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP,
		corev1.ProtocolUDP)...)
	if p.AppProtocol != nil {
		all = append(all, rules.Valid(path.Child("appProtocol"), *p.AppProtocol,
			validation.IsQualifiedName(*p.AppProtocol))...)
	}
	return all
}
