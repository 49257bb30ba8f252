// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Host is what a machine can do that not every machine can.
type Host struct {
	AppArmor     bool   // the kernel confines with AppArmor
	GroupsPolicy bool   // the container runtime can leave out the groups that the image gives its user
	NoUsers      string // why a pod cannot have users of its own; "" where it can
}

// anyHost can all that some machine can.
func anyHost() Host { return Host{AppArmor: true, GroupsPolicy: true} }

// Unsupported lists the valid fields of a Pod that Wherry does not honour yet, each with its path and what to
// do instead (PL-15: never silently ignored). It is for the API server; an agent asks UnsupportedOn, which
// also knows its machine.
func Unsupported(pod *corev1.Pod) field.ErrorList {
	return UnsupportedOn(pod, anyHost())
}

// UnsupportedOn is Unsupported for one machine.
func UnsupportedOn(pod *corev1.Pod, host Host) (all field.ErrorList) {
	spec := field.NewPath("spec")
	for _, row := range podGaps() {
		if row.used(&pod.Spec) {
			all = append(all, notYet(spec.Child(row.field), row.say))
		}
	}
	for i := range pod.Spec.Volumes {
		all = append(all, volumeGaps(&pod.Spec.Volumes[i], spec.Child("volumes").Index(i))...)
	}
	for ref := range Containers(&pod.Spec) {
		for _, row := range containerGaps() {
			if row.used(ref) {
				all = append(all, notYet(ref.Path().Child(row.field), row.say))
			}
		}
	}
	return append(all, hostGaps(pod, host)...)
}

func notYet(path *field.Path, say string) *field.Error {
	return field.Forbidden(path, "not supported yet: "+say)
}

// podGap is one field of the spec that is not honoured yet. When it is, take the row out.
type podGap struct {
	field string
	used  func(*corev1.PodSpec) bool
	say   string
}

func podGaps() []podGap {
	return []podGap{
		{"resourceClaims", func(s *corev1.PodSpec) bool { return len(s.ResourceClaims) > 0 },
			"there is no dynamic resource allocation; leave resourceClaims out"},
		{"schedulingGroup", func(s *corev1.PodSpec) bool { return s.SchedulingGroup != nil },
			"pods are scheduled one by one; leave schedulingGroup out"},
		{"evictionResponders", func(s *corev1.PodSpec) bool { return len(s.EvictionResponders) > 0 },
			"there is no eviction request API; leave evictionResponders out"},
		{"securityContext.windowsOptions", func(s *corev1.PodSpec) bool { return podSC(s).WindowsOptions != nil },
			"this node runs Linux; leave windowsOptions out"},
	}
}

func podSC(s *corev1.PodSpec) corev1.PodSecurityContext {
	if s.SecurityContext == nil {
		return corev1.PodSecurityContext{}
	}
	return *s.SecurityContext
}

// containerGap is one field of a container that is not honoured yet. When it is, take the row out.
type containerGap struct {
	field string
	used  func(ContainerRef) bool
	say   string
}

func containerGaps() []containerGap {
	return []containerGap{
		{"resources.claims", func(r ContainerRef) bool { return len(r.Container.Resources.Claims) > 0 },
			"there is no dynamic resource allocation; leave claims out"},
		{"volumeMounts", func(r ContainerRef) bool {
			for _, m := range r.Container.VolumeMounts {
				if len(m.BindMountOptions) > 0 {
					return true
				}
			}
			return false
		}, "bindMountOptions are not applied; leave them out"},
		{"securityContext.windowsOptions", func(r ContainerRef) bool { return containerSC(r).WindowsOptions != nil },
			"this node runs Linux; leave windowsOptions out"},
	}
}

func containerSC(r ContainerRef) corev1.SecurityContext {
	if r.Container.SecurityContext == nil {
		return corev1.SecurityContext{}
	}
	return *r.Container.SecurityContext
}

// hostGaps are about the machine, not about Wherry.
func hostGaps(pod *corev1.Pod, host Host) (all errs) {
	p := podSC(&pod.Spec).SupplementalGroupsPolicy
	if p != nil && *p == corev1.SupplementalGroupsPolicyStrict && !host.GroupsPolicy {
		all = append(all, notYet(field.NewPath("spec", "securityContext", "supplementalGroupsPolicy"),
			"this node's container runtime always adds the groups of the image's user; use Merge or leave it out"))
	}
	if isFalse(pod.Spec.HostUsers) && host.NoUsers != "" {
		all = append(all, notYet(field.NewPath("spec", "hostUsers"),
			host.NoUsers+"; or leave hostUsers out and set runAsUser to an unprivileged user"))
	}
	if host.AppArmor {
		return all
	}
	return append(all, appArmorGaps(pod)...)
}

func appArmorGaps(pod *corev1.Pod) (all errs) {
	const say = "this machine has no AppArmor; use type Unconfined or leave appArmorProfile out"
	confines := func(p *corev1.AppArmorProfile) bool {
		return p != nil && p.Type != corev1.AppArmorProfileTypeUnconfined
	}
	if confines(podSC(&pod.Spec).AppArmorProfile) {
		all = append(all, notYet(field.NewPath("spec", "securityContext", "appArmorProfile"), say))
	}
	for ref := range Containers(&pod.Spec) {
		if confines(containerSC(ref).AppArmorProfile) {
			all = append(all, notYet(ref.Path().Child("securityContext", "appArmorProfile"), say))
		}
	}
	for key, profile := range pod.Annotations {
		if strings.HasPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix) &&
			profile != corev1.DeprecatedAppArmorBetaProfileNameUnconfined && profile != "" {
			all = append(all, notYet(field.NewPath("metadata", "annotations").Key(key), say))
		}
	}
	return all
}
