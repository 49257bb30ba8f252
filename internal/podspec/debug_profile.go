// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// DebugContainer is what is asked of a new debug container. The zero value of a field that is not named otherwise is
// its default.
type DebugContainer struct {
	Name    string // required
	Image   string // required
	Command []string
	// Target is the container whose processes it sees; none means what DebugTarget says.
	Target string
	// Profile is one of [debugask.Profiles]; none means general.
	Profile    string
	PullPolicy corev1.PullPolicy
	Stdin, TTY bool
	// User is whom it runs as; nil means its image's user, or its target's where that may not be.
	User *debugask.User
}

// NewDebugContainer makes the ephemeral container that is asked for (DC-03, DC-14, DC-15). It fails for an unknown
// profile only; all else is validation's to judge.
func NewDebugContainer(pod *corev1.Pod, d DebugContainer) (corev1.EphemeralContainer, error) {
	security, err := debugSecurity(d.Profile)
	if err != nil {
		return corev1.EphemeralContainer{}, err
	}
	if d.User != nil {
		if security == nil {
			security = &corev1.SecurityContext{}
		}
		security.RunAsUser, security.RunAsGroup = &d.User.UID, d.User.GID
	}
	target := d.Target
	if target == "" {
		target = DebugTarget(pod)
	}
	return corev1.EphemeralContainer{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: d.Name, Image: d.Image, Command: d.Command, ImagePullPolicy: d.PullPolicy,
			Stdin: d.Stdin, TTY: d.TTY, SecurityContext: security,
			// Input from a pipe ends with the pipe; a terminal can be left and come back to (EC-15).
			StdinOnce:                d.Stdin && !d.TTY,
			TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		},
		TargetContainerName: target,
	}, nil
}

// debugSecurity is what a profile gives and takes.
func debugSecurity(profile string) (*corev1.SecurityContext, error) {
	add := func(names ...corev1.Capability) *corev1.SecurityContext {
		return &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: names}}
	}
	switch profile {
	case "", "general":
		return add("SYS_PTRACE"), nil
	case "netadmin":
		return add("NET_ADMIN", "NET_RAW"), nil
	case "sysadmin":
		return &corev1.SecurityContext{Privileged: new(true)}, nil
	case "restricted":
		return &corev1.SecurityContext{
			RunAsNonRoot:             new(true),
			AllowPrivilegeEscalation: new(false),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}, nil
	case "baseline", "legacy":
		return nil, nil
	}
	return nil, fmt.Errorf("there is no profile %q: choose one of %s", profile, strings.Join(debugask.Profiles(), ", "))
}

// DebugTarget is the container whose processes a debug container sees when nobody says which: the pod's one main
// container, if the containers' processes are isolated from one another and it runs (DC-15), else none. There is
// nothing to join in one that does not run.
func DebugTarget(pod *corev1.Pod) string {
	if NamespaceModes(pod).PID != NamespaceContainer || len(pod.Spec.Containers) != 1 {
		return ""
	}
	name := pod.Spec.Containers[0].Name
	if s := FindStatus(&pod.Status, name); s == nil || s.State.Running == nil {
		return ""
	}
	return name
}

// IsToolbox reports whether an image is the built-in one.
func IsToolbox(image string) bool {
	return image == debugask.ToolboxImage || strings.HasPrefix(image, debugask.ToolboxImage+":") ||
		strings.HasPrefix(image, debugask.ToolboxImage+"@")
}
