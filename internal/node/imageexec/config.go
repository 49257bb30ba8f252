// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/node/ops"
	"github.com/wherryproject/wherry/internal/podspec"
)

// labelSession is on every sandbox and container of a session.
const labelSession = cri.AnnotationPrefix + "image-exec"

// filesAt is where the command finds the pod's containers.
const filesAt = "/c"

// containerConfig makes the config of the command's container. pod is the pod, or what stands in for it; files and hosts
// are the session's, on the node.
func containerConfig(r Request, session string, pod *corev1.Pod, p place, node ops.Node, image *runtimeapi.Image, files, hosts string) (*runtimeapi.ContainerConfig, error) {
	security, _ := securityOf(pod)
	c, err := ops.ContainerConfig(ops.ContainerInput{
		Pod:  pod,
		Kind: podspec.Ephemeral,
		Container: &corev1.Container{Name: "exec-" + session[:8], Image: r.Image, Command: r.Command,
			Stdin: r.Stdin, StdinOnce: r.Stdin, TTY: r.TTY, SecurityContext: security},
		Node:      node,
		Image:     image,
		TargetID:  p.Target,
		HostsFile: hosts,
		Mounts:    []*runtimeapi.Mount{{ContainerPath: filesAt, HostPath: files, Readonly: true}}, // the mounts in it have their own mind
	})
	if err != nil {
		return nil, err
	}
	c.Command = r.Command // as it is: an exec's command has no variables to put in
	c.LogPath = ""        // its output is the client's
	c.Labels[cri.LabelContainerType], c.Labels[labelSession] = string(cri.TypeExec), session
	return c, nil
}

// sandboxConfig makes the config of a temporary sandbox.
func sandboxConfig(standIn *corev1.Pod, session string, node ops.Node, cgroup string) *runtimeapi.PodSandboxConfig {
	c := ops.SandboxConfig(ops.SandboxInput{Pod: standIn, Node: node, CgroupParent: cgroup})
	c.Labels[cri.LabelContainerType], c.Labels[labelSession] = string(cri.TypeExec), session
	return c
}

// securityOf decides whom the command runs as: root, so that it can read every container's files whoever wrote them. But in
// a pod that must run without root, so must the command; note tells the client so.
func securityOf(pod *corev1.Pod) (sc *corev1.SecurityContext, note string) {
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
		for ref := range podspec.Containers(&pod.Spec) {
			sc := ref.Container.SecurityContext
			if ref.Kind != podspec.Ephemeral && (sc == nil || sc.RunAsNonRoot == nil || !*sc.RunAsNonRoot) {
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
