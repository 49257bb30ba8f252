// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// operatingSystem: spec.os, and the fields that make no sense on the other one.
func (s *scope) operatingSystem() errs {
	if s.spec.OS == nil {
		return nil
	}
	all := required(s.path.Child("os").Child("name"), string(s.spec.OS.Name))
	if s.spec.OS.Name != "" {
		all = append(all, oneOf(s.path.Child("os"), s.spec.OS.Name, corev1.Linux, corev1.Windows)...)
	}
	switch s.spec.OS.Name {
	case corev1.Linux:
		all = append(all, s.noWindowsOptions()...)
	case corev1.Windows:
		all = append(all, s.noLinuxOptions()...)
	}
	return all
}

func (s *scope) noWindowsOptions() (all errs) {
	const words = "windows options cannot be set for a linux pod"
	if sc := s.spec.SecurityContext; sc != nil && sc.WindowsOptions != nil {
		all = append(all, field.Forbidden(s.path.Child("securityContext", "windowsOptions"), words))
	}
	for ref := range containersBelow(s.spec, s.path) {
		if sc := ref.Container.SecurityContext; sc != nil && sc.WindowsOptions != nil {
			all = append(all, field.Forbidden(ref.Path().Child("securityContext", "windowsOptions"), words))
		}
	}
	return all
}

func (s *scope) noLinuxOptions() (all errs) {
	type option struct {
		name string
		set  bool
	}
	refuse := func(path *field.Path, list []option) {
		for _, o := range list {
			if o.set {
				all = append(all, field.Forbidden(path.Child(o.name), "cannot be set for a windows pod"))
			}
		}
	}
	spec := s.spec
	refuse(s.path, []option{
		{"hostPID", spec.HostPID},
		{"hostIPC", spec.HostIPC},
		{"hostUsers", spec.HostUsers != nil},
		{"shareProcessNamespace", spec.ShareProcessNamespace != nil},
		{"resources", spec.Resources != nil},
	})
	if sc := spec.SecurityContext; sc != nil {
		refuse(s.path.Child("securityContext"), []option{
			{"appArmorProfile", sc.AppArmorProfile != nil},
			{"seLinuxOptions", sc.SELinuxOptions != nil},
			{"seccompProfile", sc.SeccompProfile != nil},
			{"fsGroup", sc.FSGroup != nil},
			{"fsGroupChangePolicy", sc.FSGroupChangePolicy != nil},
			{"seLinuxChangePolicy", sc.SELinuxChangePolicy != nil},
			{"sysctls", len(sc.Sysctls) > 0},
			{"runAsUser", sc.RunAsUser != nil},
			{"runAsGroup", sc.RunAsGroup != nil},
			{"supplementalGroups", sc.SupplementalGroups != nil},
			{"supplementalGroupsPolicy", sc.SupplementalGroupsPolicy != nil},
		})
	}
	for ref := range containersBelow(spec, s.path) {
		sc := ref.Container.SecurityContext
		if sc == nil {
			continue
		}
		refuse(ref.Path().Child("securityContext"), []option{
			{"appArmorProfile", sc.AppArmorProfile != nil},
			{"seLinuxOptions", sc.SELinuxOptions != nil},
			{"seccompProfile", sc.SeccompProfile != nil},
			{"capabilities", sc.Capabilities != nil},
			{"readOnlyRootFilesystem", sc.ReadOnlyRootFilesystem != nil},
			{"privileged", sc.Privileged != nil},
			{"allowPrivilegeEscalation", sc.AllowPrivilegeEscalation != nil},
			{"runAsUser", sc.RunAsUser != nil},
			{"runAsGroup", sc.RunAsGroup != nil},
			{"procMount", sc.ProcMount != nil},
		})
	}
	return all
}

const (
	maxGMSASpec        = 64 * 1024
	maxRunAsUserName   = 104
	maxRunAsDomainName = 256
)

// windowsOptions holds their general rules; this node runs no Windows, so they are refused anyway.
func windowsOptions(o *corev1.WindowsSecurityContextOptions, path *field.Path) (all errs) {
	if o == nil {
		return nil
	}
	if o.GMSACredentialSpecName != nil {
		all = append(all, dnsSubdomain(path.Child("gmsaCredentialSpecName"), *o.GMSACredentialSpecName)...)
	}
	if spec := o.GMSACredentialSpec; spec != nil {
		at := path.Child("gmsaCredentialSpec")
		switch {
		case *spec == "":
			all = append(all, field.Invalid(at, *spec, "gmsaCredentialSpec cannot be an empty string"))
		case len(*spec) > maxGMSASpec:
			all = append(all, field.TooLong(at, "", maxGMSASpec))
		}
	}
	if o.RunAsUserName != nil {
		all = append(all, runAsUserName(*o.RunAsUserName, path.Child("runAsUserName"))...)
	}
	return all
}

// runAsUserName: [DOMAIN\]USER.
func runAsUserName(name string, path *field.Path) errs {
	domain, user, ok := strings.Cut(name, `\`)
	if !ok {
		domain, user = "", name
	}
	switch {
	case name == "":
		return errs{field.Invalid(path, name, "runAsUserName cannot be an empty string")}
	case strings.ContainsFunc(name, func(r rune) bool { return r < 32 || r == 127 }):
		return errs{field.Invalid(path, name, "runAsUserName cannot contain control characters")}
	case user == "" || strings.ContainsAny(user, `"/\:;|=,+*?<>@[]`) || strings.Trim(user, ". ") == "":
		return errs{field.Invalid(path, name, "runAsUserName's User is not a valid Windows user name")}
	case len(user) > maxRunAsUserName:
		return errs{field.Invalid(path, name, "runAsUserName's User length must not be longer than 104 characters")}
	case ok && (domain == "" || len(domain) >= maxRunAsDomainName):
		return errs{field.Invalid(path, name, "runAsUserName's Domain doesn't match the NetBIOS nor the DNS format")}
	}
	return nil
}
