// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateStatusUpdate says what is wrong with an update through pods/status: what can be wrong in itself
// (addresses, conditions, names, counts) and what may not go back (a container that ended for good, the QoS
// class). The spec of the new Pod must be the stored one.
func ValidateStatusUpdate(newPod, oldPod *corev1.Pod) field.ErrorList {
	all := apivalidation.ValidateObjectMetaUpdate(&newPod.ObjectMeta, &oldPod.ObjectMeta, field.NewPath("metadata"))
	all = append(all, validatePodAnnotations(newPod, field.NewPath("metadata", "annotations"))...)
	if newPod.Spec.NodeName != oldPod.Spec.NodeName {
		all = append(all, field.Forbidden(field.NewPath("spec", "nodeName"), "may not be changed directly"))
	}
	path := field.NewPath("status")
	now, was := &newPod.Status, &oldPod.Status
	all = append(all, ValidateStatus(now, path)...)
	if oldPod.Spec.NodeName != "" && now.NominatedNodeName != "" && now.NominatedNodeName != was.NominatedNodeName {
		all = append(all, field.Forbidden(path.Child("nominatedNodeName"),
			"may not be set on pods that are already bound to a node"))
	}
	if was.QOSClass != "" && now.QOSClass != was.QOSClass {
		all = append(all, field.Invalid(path.Child("qosClass"), now.QOSClass, apivalidation.FieldImmutableErrorMsg))
	}
	for _, list := range []struct {
		name     string
		now, was []corev1.ContainerStatus
	}{
		{"containerStatuses", now.ContainerStatuses, was.ContainerStatuses},
		{"initContainerStatuses", now.InitContainerStatuses, was.InitContainerStatuses},
	} {
		all = append(all, endedForGood(&oldPod.Spec, list.now, list.was, path.Child(list.name))...)
	}
	return all
}

// ValidateStatus holds the rules of a status by itself.
func ValidateStatus(s *corev1.PodStatus, path *field.Path) field.ErrorList {
	all := nonNegative(path.Child("observedGeneration"), s.ObservedGeneration)
	if s.Phase != "" {
		all = append(all, oneOf(path.Child("phase"), s.Phase, corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded,
			corev1.PodFailed, corev1.PodUnknown)...)
	}
	if s.QOSClass != "" {
		all = append(all, oneOf(path.Child("qosClass"), s.QOSClass, corev1.PodQOSGuaranteed, corev1.PodQOSBurstable,
			corev1.PodQOSBestEffort)...)
	}
	all = append(all, objectName(path.Child("nominatedNodeName"), s.NominatedNodeName)...)
	all = append(all, podConditions(s.Conditions, path.Child("conditions"))...)
	podIPs := make([]string, len(s.PodIPs))
	for i, ip := range s.PodIPs {
		podIPs[i] = ip.IP
	}
	hostIPs := make([]string, len(s.HostIPs))
	for i, ip := range s.HostIPs {
		hostIPs[i] = ip.IP
	}
	all = append(all, addresses(s.PodIP, podIPs, path, "podIP", "podIPs")...)
	all = append(all, addresses(s.HostIP, hostIPs, path, "hostIP", "hostIPs")...)
	for i, c := range s.ResourceClaimStatuses {
		at := path.Child("resourceClaimStatuses").Index(i)
		all = append(all, dnsLabel(at.Child("name"), c.Name)...)
		if c.ResourceClaimName != nil {
			all = append(all, dnsSubdomain(at.Child("resourceClaimName"), *c.ResourceClaimName)...)
		}
	}
	all = append(all, containerStatuses(s.InitContainerStatuses, path.Child("initContainerStatuses"))...)
	all = append(all, containerStatuses(s.ContainerStatuses, path.Child("containerStatuses"))...)
	return append(all, containerStatuses(s.EphemeralContainerStatuses, path.Child("ephemeralContainerStatuses"))...)
}

func podConditions(list []corev1.PodCondition, path *field.Path) (all errs) {
	for i, c := range list {
		at := path.Index(i)
		all = append(all, qualifiedName(at.Child("type"), string(c.Type))...)
		all = append(all, oneOf(at.Child("status"), c.Status, corev1.ConditionTrue, corev1.ConditionFalse,
			corev1.ConditionUnknown)...)
		all = append(all, nonNegative(at.Child("observedGeneration"), c.ObservedGeneration)...)
	}
	return all
}

// addresses: valid, at most one of a family, the first of the list is the single one.
func addresses(first string, list []string, path *field.Path, single, plural string) (all errs) {
	families := map[bool]bool{}
	for i, text := range list {
		all = append(all, ipAddress(path.Child(plural).Index(i), text)...)
		ip, err := netip.ParseAddr(text)
		if err != nil {
			continue // has its own error
		}
		if families[ip.Is4()] {
			all = append(all, field.Invalid(path.Child(plural), list,
				"may specify no more than one IP for each IP family"))
		}
		families[ip.Is4()] = true
	}
	if len(list) > 0 && list[0] != first {
		all = append(all, field.Invalid(path.Child(plural).Index(0).Child("ip"), list[0],
			"must be equal to `"+single+"`"))
	}
	return all
}

func containerStatuses(list []corev1.ContainerStatus, path *field.Path) (all errs) {
	for i := range list {
		c, at := &list[i], path.Index(i)
		all = append(all, required(at.Child("name"), c.Name)...)
		all = append(all, nonNegative(at.Child("restartCount"), c.RestartCount)...)
		if c.User == nil || c.User.Linux == nil {
			continue
		}
		linux, path := c.User.Linux, at.Child("user", "linux")
		all = append(all, userID(path.Child("uid"), &linux.UID)...)
		all = append(all, groupID(path.Child("gid"), &linux.GID)...)
		for j := range linux.SupplementalGroups {
			all = append(all, groupID(path.Child("supplementalGroups").Index(j), &linux.SupplementalGroups[j])...)
		}
	}
	return all
}

// endedForGood: a container that its policies will not start again stays ended. Inits of OnFailure pods may
// run again all the same: after a reboot they do (SC-19).
func endedForGood(spec *corev1.PodSpec, now, was []corev1.ContainerStatus, path *field.Path) (all errs) {
	for i := range was {
		end := was[i].State.Terminated
		if end == nil {
			continue
		}
		ref, ok := FindContainer(spec, was[i].Name)
		if !ok || mayRestart(spec, ref, end.ExitCode) {
			continue
		}
		for j := range now {
			if now[j].Name == was[i].Name && now[j].State.Terminated == nil {
				all = append(all, field.Forbidden(path.Index(j).Child("state"),
					"may not be transitioned to non-terminated state"))
			}
		}
	}
	return all
}

func mayRestart(spec *corev1.PodSpec, ref ContainerRef, exitCode int32) bool {
	policy := spec.RestartPolicy
	if own := ref.Container.RestartPolicy; own != nil {
		policy = corev1.RestartPolicy(*own)
	}
	if len(ref.Container.RestartPolicyRules) > 0 || restartsAll(spec) {
		return true // which rules bite is for the node to say
	}
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return exitCode != 0 || ref.Kind == Init
	default:
		return true
	}
}

// restartsAll reports whether the end of one container may have all others start again (KEP-5532).
func restartsAll(spec *corev1.PodSpec) bool {
	for ref := range OwnContainers(spec) {
		for i := range ref.Container.RestartPolicyRules {
			if ref.Container.RestartPolicyRules[i].Action == corev1.ContainerRestartRuleActionRestartAllContainers {
				return true
			}
		}
	}
	return false
}
