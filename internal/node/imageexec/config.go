// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
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
	security, _ := podspec.ImageExecSecurity(pod)
	c, err := ops.ContainerConfig(ops.ContainerInput{
		Pod:  pod,
		Kind: podspec.Ephemeral,
		Container: &corev1.Container{Name: "exec-" + session[:8], Image: r.Image, Command: r.Command,
			Stdin: r.Stdin, StdinOnce: r.Stdin, TTY: r.TTY, SecurityContext: security},
		Node:      node,
		Image:     image,
		TargetID:  p.Target,
		HostsFile: hosts,
		// The mounts in it have their own mind, and those that come later are to be seen too.
		Mounts: []*runtimeapi.Mount{{ContainerPath: filesAt, HostPath: files, Readonly: true, Propagation: runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER}},
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
