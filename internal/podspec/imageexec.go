// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// ImageExec is what is asked of an image exec.
type ImageExec struct {
	Image      string
	Command    []string
	Target     string // container whose processes it sees, if any
	PullPolicy corev1.PullPolicy
	User       *debugask.User
	UserOf     string // a container, see ImageExecSecurity
}

// NewImageExecContainer shows an image exec as the ephemeral container it comes closest to, under a name that the Pod
// does not have: by this it is judged like any container (IX-07). It is never stored.
func NewImageExecContainer(pod *corev1.Pod, e ImageExec) corev1.EphemeralContainer {
	name := "image-exec"
	for i := 1; ; i++ {
		if _, taken := FindContainer(&pod.Spec, name); !taken {
			break
		}
		name = fmt.Sprintf("image-exec-%d", i)
	}
	security, _ := ImageExecSecurity(pod, e.User, e.UserOf)
	return corev1.EphemeralContainer{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: name, Image: e.Image, Command: e.Command, ImagePullPolicy: e.PullPolicy, SecurityContext: security,
		},
		TargetContainerName: e.Target,
	}
}

// ImageExecSecurity decides whom the command of an image exec runs as: root, so that it can read every container's
// files whoever wrote them, or whom the client names. But in a pod that must run without root, so must the command:
// forced tells so. It is the user of the container userOf then, as far as the pod names users; who else, if nobody is
// named, the node decides.
func ImageExecSecurity(pod *corev1.Pod, asked *debugask.User, userOf string) (sc *corev1.SecurityContext, forced bool) {
	user, group, forced := withoutRoot(pod, userOf)
	if asked != nil {
		user, group = &asked.UID, asked.GID
	}
	if !forced {
		if asked == nil {
			zero := int64(0)
			user, group = &zero, &zero
		}
		return &corev1.SecurityContext{RunAsUser: user, RunAsGroup: group}, false
	}
	yes, no := true, false
	sc = &corev1.SecurityContext{RunAsNonRoot: &yes, RunAsUser: user, RunAsGroup: group, AllowPrivilegeEscalation: &no,
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	if pod.Spec.SecurityContext == nil || pod.Spec.SecurityContext.SeccompProfile == nil {
		sc.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	return sc, true
}

// withoutRoot reports whether a pod must run without root: because it says so itself, or each of its containers does;
// and as which user and group: those of the container of, else of the pod; without of, of the first main that names
// one. They are nil where the spec does not show it.
func withoutRoot(pod *corev1.Pod, of string) (user, group *int64, forced bool) {
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
	if ref, ok := FindContainer(&pod.Spec, of); ok && ref.Container.SecurityContext != nil &&
		ref.Container.SecurityContext.RunAsUser != nil {
		user = ref.Container.SecurityContext.RunAsUser
		if own := ref.Container.SecurityContext.RunAsGroup; own != nil {
			group = own
		}
	}
	for i := range pod.Spec.Containers {
		if sc := pod.Spec.Containers[i].SecurityContext; of == "" && user == nil && sc != nil && sc.RunAsUser != nil {
			user, group = sc.RunAsUser, sc.RunAsGroup
		}
	}
	return user, group, forced
}
