// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ProfileNeeded is the debug profile that an ephemeral container of a pod amounts to, if that is more than "general":
// "netadmin" or "sysadmin". By the one the container changes the pod's network, by the other it can do to the node what
// root can. "" is no more than general, which, like exec, stays within what the pod's own containers can do.
//
// It goes by what the container is given, not by how it was asked for: kubectl debug sends a security context, with --custom
// any.
func ProfileNeeded(pod *corev1.Pod, c *corev1.EphemeralContainer) string {
	sc := c.SecurityContext
	if sc == nil {
		return ""
	}
	switch {
	case sc.Privileged != nil && *sc.Privileged,
		unconfined(sc),
		sc.ProcMount != nil && *sc.ProcMount != corev1.DefaultProcMount,
		sc.SELinuxOptions != nil && (sc.SELinuxOptions.User != "" || sc.SELinuxOptions.Role != "" ||
			!confinedType(sc.SELinuxOptions.Type)),
		sc.WindowsOptions != nil && sc.WindowsOptions.HostProcess != nil && *sc.WindowsOptions.HostProcess:
		return profileSysadmin
	}
	needed := ""
	if sc.Capabilities == nil {
		return needed
	}
	for _, added := range sc.Capabilities.Add {
		switch name := capability(added); {
		case slices.Contains(usualCapabilities(), name):
		case name == "SYS_PTRACE" && NamespaceModes(pod).PID != NamespaceNode:
		case name == "NET_ADMIN":
			needed = profileNetadmin
		default: // among them SYS_PTRACE over the node's own processes
			return profileSysadmin
		}
	}
	return needed
}

// Names of the profiles that take a right of their own.
const (
	profileNetadmin = "netadmin"
	profileSysadmin = "sysadmin"
)

// PrivilegedProfiles are the debug profiles above general, the least first: those that [ProfileNeeded] returns.
func PrivilegedProfiles() []string { return []string{profileNetadmin, profileSysadmin} }

// unconfined reports whether a security context takes away the confinement that a container has otherwise.
func unconfined(sc *corev1.SecurityContext) bool {
	return sc.SeccompProfile != nil && sc.SeccompProfile.Type == corev1.SeccompProfileTypeUnconfined ||
		sc.AppArmorProfile != nil && sc.AppArmorProfile.Type == corev1.AppArmorProfileTypeUnconfined
}

// confinedType reports whether an SELinux type is one that the baseline Pod Security Standard lets containers have.
func confinedType(name string) bool {
	return slices.Contains([]string{"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"},
		name)
}

// capability is the name of a capability as the kernel's documents write it, without CAP_.
func capability(c corev1.Capability) string {
	return strings.TrimPrefix(strings.ToUpper(string(c)), "CAP_")
}

// usualCapabilities are those that container runtimes give to every container, and the baseline Pod Security Standard
// allows.
func usualCapabilities() []string {
	return []string{"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE",
		"NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"}
}
