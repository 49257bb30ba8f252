// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// podSecurity: spec.securityContext.
func (s *scope) podSecurity() errs {
	sc, path := s.spec.SecurityContext, s.path.Child("securityContext")
	if sc == nil {
		return nil
	}
	all := userID(path.Child("runAsUser"), sc.RunAsUser)
	all = append(all, groupID(path.Child("runAsGroup"), sc.RunAsGroup)...)
	all = append(all, groupID(path.Child("fsGroup"), sc.FSGroup)...)
	for i := range sc.SupplementalGroups {
		all = append(all, groupID(path.Child("supplementalGroups").Index(i), &sc.SupplementalGroups[i])...)
	}
	all = append(all, oneOfIfSet(path.Child("supplementalGroupsPolicy"), sc.SupplementalGroupsPolicy,
		corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)...)
	all = append(all, oneOfIfSet(path.Child("fsGroupChangePolicy"), sc.FSGroupChangePolicy,
		corev1.FSGroupChangeOnRootMismatch, corev1.FSGroupChangeAlways)...)
	all = append(all, oneOfIfSet(path.Child("seLinuxChangePolicy"), sc.SELinuxChangePolicy,
		corev1.SELinuxChangePolicyRecursive, corev1.SELinuxChangePolicyMountOption)...)
	all = append(all, s.sysctls(sc.Sysctls, path.Child("sysctls"))...)
	all = append(all, seccomp(sc.SeccompProfile, path.Child("seccompProfile"))...)
	all = append(all, appArmor(sc.AppArmorProfile, path.Child("appArmorProfile"))...)
	all = append(all, windowsOptions(sc.WindowsOptions, path.Child("windowsOptions"))...)
	return all
}

// containerSecurity: securityContext of a container. SELinux labels and capability names are free text:
// what a kernel knows differs.
func (s *scope) containerSecurity(sc *corev1.SecurityContext, path *field.Path) errs {
	if sc == nil {
		return nil
	}
	all := userID(path.Child("runAsUser"), sc.RunAsUser)
	all = append(all, groupID(path.Child("runAsGroup"), sc.RunAsGroup)...)
	all = append(all, oneOfIfSet(path.Child("procMount"), sc.ProcMount, corev1.DefaultProcMount,
		corev1.UnmaskedProcMount)...)
	if sc.ProcMount != nil && *sc.ProcMount == corev1.UnmaskedProcMount && !isFalse(s.spec.HostUsers) {
		all = append(all, field.Invalid(path.Child("procMount"), *sc.ProcMount,
			"`hostUsers` must be false to use `Unmasked`"))
	}
	all = append(all, seccomp(sc.SeccompProfile, path.Child("seccompProfile"))...)
	all = append(all, appArmor(sc.AppArmorProfile, path.Child("appArmorProfile"))...)
	if isFalse(sc.AllowPrivilegeEscalation) {
		if isTrue(sc.Privileged) {
			all = append(all,
				field.Invalid(path, nil, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))
		}
		if sc.Capabilities != nil && slices.Contains(sc.Capabilities.Add, "CAP_SYS_ADMIN") {
			all = append(all,
				field.Invalid(path, nil,
					"cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"))
		}
	}
	if sc.Capabilities != nil {
		all = append(all, capabilities(sc.Capabilities.Add, path.Child("capabilities", "add"))...)
		all = append(all, capabilities(sc.Capabilities.Drop, path.Child("capabilities", "drop"))...)
	}
	return append(all, windowsOptions(sc.WindowsOptions, path.Child("windowsOptions"))...)
}

func capabilities(list []corev1.Capability, path *field.Path) (all errs) {
	for i, c := range list {
		all = append(all, required(path.Index(i), string(c))...)
	}
	return all
}

func seccomp(p *corev1.SeccompProfile, path *field.Path) errs {
	if p == nil {
		return nil
	}
	all := oneOf(path.Child("type"), p.Type,
		corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeRuntimeDefault,
		corev1.SeccompProfileTypeUnconfined)
	at := path.Child("localhostProfile")
	switch {
	case p.Type == corev1.SeccompProfileTypeLocalhost && (p.LocalhostProfile == nil || *p.LocalhostProfile == ""):
		all = append(all, field.Required(at, "must be set when seccomp type is Localhost"))
	case p.Type == corev1.SeccompProfileTypeLocalhost:
		all = append(all, descending(at, *p.LocalhostProfile)...)
	case p.LocalhostProfile != nil:
		all = append(all, field.Invalid(at, *p.LocalhostProfile, "can only be set when seccomp type is Localhost"))
	}
	return all
}

func appArmor(p *corev1.AppArmorProfile, path *field.Path) errs {
	if p == nil {
		return nil
	}
	all := oneOf(path.Child("type"), p.Type,
		corev1.AppArmorProfileTypeLocalhost, corev1.AppArmorProfileTypeRuntimeDefault,
		corev1.AppArmorProfileTypeUnconfined)
	at := path.Child("localhostProfile")
	switch {
	case p.Type != corev1.AppArmorProfileTypeLocalhost && p.LocalhostProfile != nil:
		all = append(all, field.Invalid(at, *p.LocalhostProfile, "can only be set when AppArmor type is Localhost"))
	case p.Type != corev1.AppArmorProfileTypeLocalhost:
	case p.LocalhostProfile == nil || strings.TrimSpace(*p.LocalhostProfile) == "":
		all = append(all, field.Required(at, "must be set when AppArmor type is Localhost"))
	case strings.TrimSpace(*p.LocalhostProfile) != *p.LocalhostProfile:
		all = append(all, field.Invalid(at, *p.LocalhostProfile, "must not be padded with whitespace"))
	case len(*p.LocalhostProfile) > 4095:
		all = append(all, field.TooLong(at, *p.LocalhostProfile, 4095))
	}
	return all
}
