// SPDX-License-Identifier: Apache-2.0

package serviceips

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// fillFamilies sets a service's policy for IP families and its families where they are not given, and says what cannot
// be had of those that are, on a server whose services have addresses of one family. A service without selector and
// address (clusterIP None) may have both: its addresses are whatever somebody lists for it. (KEP-563.)
func fillFamilies(s *corev1.ServiceSpec, own corev1.IPFamily) (all field.ErrorList) {
	listed := s.ClusterIP == corev1.ClusterIPNone && len(s.Selector) == 0
	if s.IPFamilyPolicy == nil {
		s.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicySingleStack)
		if listed {
			s.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack)
		}
	}
	all = familiesWanted(s, own, listed)
	if len(all) > 0 {
		return all
	}
	if len(s.IPFamilies) == 0 {
		s.IPFamilies = []corev1.IPFamily{own}
	}
	if listed && len(s.IPFamilies) == 1 && *s.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		s.IPFamilies = append(s.IPFamilies, other(s.IPFamilies[0]))
	}
	return nil
}

// familiesWanted says what cannot be had of a service's families.
func familiesWanted(s *corev1.ServiceSpec, own corev1.IPFamily, listed bool) (all field.ErrorList) {
	spec := field.NewPath("spec")
	at, policy := spec.Child("ipFamilyPolicy"), *s.IPFamilyPolicy
	if policy == corev1.IPFamilyPolicySingleStack {
		const msg = "must be 'RequireDualStack' or 'PreferDualStack' when multiple %s are specified"
		if len(s.ClusterIPs) > 1 {
			all = append(all, field.Invalid(at, policy, fmt.Sprintf(msg, "cluster IPs")))
		}
		if len(s.IPFamilies) > 1 {
			all = append(all, field.Invalid(at, policy, fmt.Sprintf(msg, "IP families")))
		}
	}
	if listed {
		return all
	}
	if policy == corev1.IPFamilyPolicyRequireDualStack {
		all = append(all, field.Invalid(at, policy, fmt.Sprintf(
			"this cluster is not configured for dual-stack services: its services have %s addresses only", own)))
	}
	for i, f := range s.IPFamilies {
		if f != own {
			all = append(all, field.Invalid(spec.Child("ipFamilies").Index(i), f, "not configured on this cluster"))
		}
	}
	for i, text := range s.ClusterIPs {
		ip, err := netip.ParseAddr(text)
		if err == nil && i >= len(s.IPFamilies) && familyOf(ip) != own {
			all = append(all, field.Invalid(spec.Child("clusterIPs").Index(i), text,
				fmt.Sprintf("%s is not configured on this cluster", familyOf(ip))))
		}
	}
	return all
}

func familyOf(ip netip.Addr) corev1.IPFamily {
	if ip.Is6() {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

func other(f corev1.IPFamily) corev1.IPFamily {
	if f == corev1.IPv4Protocol {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}
