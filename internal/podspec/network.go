// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxNameservers  = 3
	maxSearches     = 32
	maxSearchLength = 2048
	maxHostname     = 64 // what the kernel's struct utsname holds
)

// names: what the Pod is called on the network, and whom it knows by name.
func (s *scope) names() (all errs) {
	spec, path := s.spec, s.path
	if spec.Hostname != "" {
		all = append(all, dnsLabel(path.Child("hostname"), spec.Hostname)...)
	}
	if spec.Subdomain != "" {
		all = append(all, dnsLabel(path.Child("subdomain"), spec.Subdomain)...)
	}
	if o := spec.HostnameOverride; o != nil {
		at := path.Child("hostnameOverride")
		all = append(all, valid(at, *o, validation.IsDNS1123Subdomain(*o))...)
		if len(*o) > maxHostname {
			all = append(all, field.Invalid(at, *o, fmt.Sprintf("must be no more than %d bytes", maxHostname)))
		}
		if isTrue(spec.SetHostnameAsFQDN) {
			all = append(all, field.Forbidden(at, "may not be set when `setHostnameAsFQDN` is true"))
		}
		if spec.HostNetwork {
			all = append(all, field.Forbidden(at, "may not be set when `hostNetwork` is true"))
		}
	}
	for i, alias := range spec.HostAliases {
		at := path.Child("hostAliases").Index(i)
		all = append(all, ipAddress(at.Child("ip"), alias.IP)...)
		for j, name := range alias.Hostnames {
			all = append(all, valid(at.Child("hostnames").Index(j), name, validation.IsDNS1123Subdomain(name))...)
		}
	}
	return all
}

// dns: policy and configuration.
func (s *scope) dns() errs {
	policy, config := s.spec.DNSPolicy, s.spec.DNSConfig
	all := oneOf(s.path.Child("dnsPolicy"), policy,
		corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)
	path := s.path.Child("dnsConfig")
	if config == nil {
		if policy == corev1.DNSNone {
			all = append(all, field.Required(path, "must provide `dnsConfig` when `dnsPolicy` is None"))
		}
		return all
	}
	if policy == corev1.DNSNone && len(config.Nameservers) == 0 {
		all = append(all, field.Required(path.Child("nameservers"),
			"must provide at least one DNS nameserver when `dnsPolicy` is None"))
	}
	if len(config.Nameservers) > maxNameservers {
		all = append(all, field.Invalid(path.Child("nameservers"), config.Nameservers,
			fmt.Sprintf("must not have more than %d nameservers", maxNameservers)))
	}
	for i, server := range config.Nameservers {
		all = append(all, ipAddress(path.Child("nameservers").Index(i), server)...)
	}
	all = append(all, dnsSearches(config.Searches, path.Child("searches"))...)
	for i, option := range config.Options { // their values are the resolver's business
		all = append(all, required(path.Child("options").Index(i), option.Name)...)
	}
	return all
}

func dnsSearches(list []string, path *field.Path) (all errs) {
	if len(list) > maxSearches {
		all = append(all, field.Invalid(path, list, fmt.Sprintf("must not have more than %d search paths",
			maxSearches)))
	}
	if len(strings.Join(list, " ")) > maxSearchLength {
		all = append(all, field.Invalid(path, list,
			fmt.Sprintf("must not have more than %d characters (including spaces) in the search list",
				maxSearchLength)))
	}
	for i, search := range list {
		if search == "." { // only fully qualified names
			continue
		}
		name := strings.TrimSuffix(search, ".")
		all = append(all, valid(path.Index(i), search, validation.IsDNS1123SubdomainWithUnderscore(name))...)
	}
	return all
}
