// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// ImageExec is what is asked of an image exec.
type ImageExec struct {
	Image      string
	Command    []string
	Target     string // container whose processes it sees, if any
	PullPolicy corev1.PullPolicy
}

// NewImageExecContainer shows an image exec as the ephemeral container it comes closest to, under a name that the Pod does not
// have: by this it is judged like any container (IX-07). It is never stored.
func NewImageExecContainer(pod *corev1.Pod, e ImageExec) corev1.EphemeralContainer {
	name := "image-exec"
	for i := 1; ; i++ {
		if _, taken := FindContainer(&pod.Spec, name); !taken {
			break
		}
		name = fmt.Sprintf("image-exec-%d", i)
	}
	security, _ := ImageExecSecurity(pod)
	return corev1.EphemeralContainer{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: name, Image: e.Image, Command: e.Command, ImagePullPolicy: e.PullPolicy, SecurityContext: security,
		},
		TargetContainerName: e.Target,
	}
}

// ImageExecSecurity decides whom the command of an image exec runs as: root, so that it can read every container's files whoever
// wrote them. But in a pod that must run without root, so must the command; note tells the client so.
func ImageExecSecurity(pod *corev1.Pod) (sc *corev1.SecurityContext, note string) {
	user, group, forced := withoutRoot(pod)
	if !forced {
		zero := int64(0)
		return &corev1.SecurityContext{RunAsUser: &zero, RunAsGroup: &zero}, ""
	}
	yes, no := true, false
	sc = &corev1.SecurityContext{RunAsNonRoot: &yes, RunAsUser: user, RunAsGroup: group, AllowPrivilegeEscalation: &no,
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	if pod.Spec.SecurityContext == nil || pod.Spec.SecurityContext.SeccompProfile == nil {
		sc.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	who := "the image's user"
	if user != nil {
		who = fmt.Sprintf("user %d", *user)
	}
	return sc, fmt.Sprintf("the pod has runAsNonRoot: the command runs as %s and cannot read what that user may not", who)
}

// withoutRoot tells whether a pod must run without root: because it says so itself, or each of its containers does; and as
// which user and group, nil for the image's.
func withoutRoot(pod *corev1.Pod) (user, group *int64, forced bool) {
	ps := pod.Spec.SecurityContext
	if ps == nil {
		ps = &corev1.PodSecurityContext{}
	}
	user, group = ps.RunAsUser, ps.RunAsGroup
	if ps.RunAsNonRoot != nil {
		forced = *ps.RunAsNonRoot
	} else {
		forced = true
		for ref := range Containers(&pod.Spec) {
			sc := ref.Container.SecurityContext
			if ref.Kind != Ephemeral && (sc == nil || sc.RunAsNonRoot == nil || !*sc.RunAsNonRoot) {
				forced = false
			}
		}
	}
	for i := range pod.Spec.Containers {
		if sc := pod.Spec.Containers[i].SecurityContext; user == nil && sc != nil && sc.RunAsUser != nil {
			user, group = sc.RunAsUser, sc.RunAsGroup
		}
	}
	return user, group, forced
}
