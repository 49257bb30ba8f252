// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/node/userns"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Paths of /proc and /sys that containers do not see, or see read-only, unless they are privileged: the set that all
// runtimes of Kubernetes agree on.
func maskedPaths() []string {
	return []string{"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys",
		"/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi",
		"/sys/firmware", "/sys/devices/virtual/powercap"}
}

func readonlyPaths() []string {
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}

// namespaces translates the pod's modes for the CRI (PID-01, PID-02), with its own users if it has some (PL-24).
func namespaces(m podspec.Namespaces, users *userns.Range) *runtimeapi.NamespaceOption {
	mode := func(n podspec.NamespaceMode) runtimeapi.NamespaceMode {
		return runtimeapi.NamespaceMode(runtimeapi.NamespaceMode_value[string(n)])
	}
	return &runtimeapi.NamespaceOption{Network: mode(m.Network), Pid: mode(m.PID), Ipc: mode(m.IPC),
		UsernsOptions: UserOptions(users)}
}

// containerNamespaces are the pod's modes, but an ephemeral container with a target is put into the PID namespace that
// the target has (PID-07).
func containerNamespaces(in ContainerInput) *runtimeapi.NamespaceOption {
	out := namespaces(podspec.NamespaceModes(in.Pod), in.Users)
	if in.TargetID != "" {
		out.Pid, out.TargetId = runtimeapi.NamespaceMode_TARGET, in.TargetID
	}
	return out
}

// sandboxSecurity is the security context of the pod's sandbox (PL-07).
func sandboxSecurity(p *corev1.Pod, users *userns.Range) *runtimeapi.LinuxSandboxSecurityContext {
	s := &runtimeapi.LinuxSandboxSecurityContext{
		NamespaceOptions: namespaces(podspec.NamespaceModes(p), users),
		Seccomp:          &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
	}
	for ref := range podspec.Containers(&p.Spec) {
		if c := ref.Container.SecurityContext; c != nil && isTrue(c.Privileged) {
			s.Privileged = true
		}
	}
	ps := p.Spec.SecurityContext
	if ps == nil {
		return s
	}
	if ps.RunAsUser != nil {
		s.RunAsUser = &runtimeapi.Int64Value{Value: *ps.RunAsUser}
	}
	if ps.RunAsGroup != nil && ps.RunAsUser != nil {
		s.RunAsGroup = &runtimeapi.Int64Value{Value: *ps.RunAsGroup}
	}
	s.SupplementalGroups, s.SupplementalGroupsPolicy = groups(ps), groupsPolicy(ps)
	s.SelinuxOptions = selinux(ps.SELinuxOptions)
	return s
}

// groups are the pod's supplemental groups; fsGroup is one of them.
func groups(ps *corev1.PodSecurityContext) []int64 {
	out := append([]int64(nil), ps.SupplementalGroups...)
	if ps.FSGroup != nil {
		out = append(out, *ps.FSGroup)
	}
	return out
}

// groupsPolicy tells whether the groups that the image gives its user are added (PL-29).
func groupsPolicy(ps *corev1.PodSecurityContext) runtimeapi.SupplementalGroupsPolicy {
	if p := ps.SupplementalGroupsPolicy; p != nil && *p == corev1.SupplementalGroupsPolicyStrict {
		return runtimeapi.SupplementalGroupsPolicy_Strict
	}
	return runtimeapi.SupplementalGroupsPolicy_Merge
}

func selinux(o *corev1.SELinuxOptions) *runtimeapi.SELinuxOption {
	if o == nil {
		return nil
	}
	return &runtimeapi.SELinuxOption{User: o.User, Role: o.Role, Type: o.Type, Level: o.Level}
}

// containerSecurity is a container's security context: its own, over the pod's, over the image's (PL-07).
func containerSecurity(in ContainerInput) (*runtimeapi.LinuxContainerSecurityContext, error) {
	sc := in.Container.SecurityContext
	if sc == nil {
		sc = &corev1.SecurityContext{}
	}
	ps := in.Pod.Spec.SecurityContext
	if ps == nil {
		ps = &corev1.PodSecurityContext{}
	}
	out := &runtimeapi.LinuxContainerSecurityContext{
		NamespaceOptions:   containerNamespaces(in),
		Privileged:         isTrue(sc.Privileged),
		ReadonlyRootfs:     isTrue(sc.ReadOnlyRootFilesystem),
		NoNewPrivs:         sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation,
		SupplementalGroups: groups(ps), SupplementalGroupsPolicy: groupsPolicy(ps),
		SelinuxOptions: selinux(first(sc.SELinuxOptions, ps.SELinuxOptions)),
		Seccomp:        seccomp(first(sc.SeccompProfile, ps.SeccompProfile), in.Node.SeccompDir),
		Apparmor:       apparmor(first(sc.AppArmorProfile, ps.AppArmorProfile)),
	}
	if c := sc.Capabilities; c != nil {
		out.Capabilities = &runtimeapi.Capability{}
		for _, a := range c.Add {
			out.Capabilities.AddCapabilities = append(out.Capabilities.AddCapabilities, string(a))
		}
		for _, d := range c.Drop {
			out.Capabilities.DropCapabilities = append(out.Capabilities.DropCapabilities, string(d))
		}
	}
	if !out.Privileged && !unmasked(sc) {
		out.MaskedPaths, out.ReadonlyPaths = maskedPaths(), readonlyPaths()
	}
	user, group := first(sc.RunAsUser, ps.RunAsUser), first(sc.RunAsGroup, ps.RunAsGroup)
	if in.User != nil && NeedsUser(in.Pod, in.Container, in.Kind, in.Image) {
		user, group = &in.User.ID, first(group, in.User.Group)
	}
	return out, setUser(out, in, user, group, isTrue(first(sc.RunAsNonRoot, ps.RunAsNonRoot)))
}

// unmasked: the container sees /proc as it is (PL-29). The API lets only pods with users of their own ask for it.
func unmasked(sc *corev1.SecurityContext) bool {
	return sc.ProcMount != nil && *sc.ProcMount == corev1.UnmaskedProcMount
}

// setUser decides whom the container runs as, and refuses root where the pod forbids it.
func setUser(out *runtimeapi.LinuxContainerSecurityContext, in ContainerInput, user, group *int64, nonRoot bool) error {
	img := in.Image
	switch {
	case user != nil:
		out.RunAsUser = &runtimeapi.Int64Value{Value: *user}
	case img.GetUid() != nil:
		out.RunAsUser = &runtimeapi.Int64Value{Value: img.GetUid().GetValue()}
	case img.GetUsername() != "":
		out.RunAsUsername = img.GetUsername()
	default:
		out.RunAsUser = &runtimeapi.Int64Value{Value: 0}
	}
	if group != nil {
		out.RunAsGroup = &runtimeapi.Int64Value{Value: *group}
	}
	if !nonRoot {
		return nil
	}
	where := fmt.Sprintf("(pod: %q, container: %s)", in.Pod.Name+"_"+in.Pod.Namespace+"("+string(in.Pod.UID)+")",
		in.Container.Name)
	switch {
	case user != nil && *user == 0:
		return fmt.Errorf("container's runAsUser breaks non-root policy %s: %s", where, userAdvice(in))
	case user == nil && img.GetUid() == nil && img.GetUsername() != "":
		return fmt.Errorf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root %s: %s",
			img.GetUsername(), where, userAdvice(in))
	case user == nil && out.GetRunAsUser().GetValue() == 0:
		return fmt.Errorf("container has runAsNonRoot and image will run as root %s: %s", where, userAdvice(in))
	}
	return nil
}

// anyUser is the number of nobody in most images.
const anyUser = 65534

// userAdvice says what to do about a container that may not run as root.
func userAdvice(in ContainerInput) string {
	if in.Kind != podspec.Ephemeral {
		return "set securityContext.runAsUser to a number above 0, or use an image with a numeric USER"
	}
	return fmt.Sprintf("say which user to run as, for example --user %d (kubectl debug: securityContext.runAsUser %d in the --custom file), or use an image with a numeric USER", anyUser, anyUser)
}

func seccomp(p *corev1.SeccompProfile, dir string) *runtimeapi.SecurityProfile {
	switch {
	case p == nil || p.Type == corev1.SeccompProfileTypeUnconfined:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
	case p.Type == corev1.SeccompProfileTypeLocalhost && p.LocalhostProfile != nil:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost,
			LocalhostRef: filepath.Join(dir, filepath.Clean("/"+*p.LocalhostProfile))}
	}
	return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
}

func apparmor(p *corev1.AppArmorProfile) *runtimeapi.SecurityProfile {
	switch {
	case p == nil:
		return nil
	case p.Type == corev1.AppArmorProfileTypeUnconfined:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
	case p.Type == corev1.AppArmorProfileTypeLocalhost && p.LocalhostProfile != nil:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost,
			LocalhostRef: strings.TrimPrefix(*p.LocalhostProfile, "localhost/")}
	}
	return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
}

// first returns the first pointer that is set.
func first[T any](list ...*T) *T {
	for _, p := range list {
		if p != nil {
			return p
		}
	}
	return nil
}

func isTrue(b *bool) bool { return b != nil && *b }
