// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"fmt"
	"strconv"

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

// containerConfig makes the config of the command's container. pod is the pod, or what stands in for it; files and
// hosts are the session's, on the node.
func containerConfig(r Request, session string, pod *corev1.Pod, p place, node ops.Node, image *runtimeapi.Image,
	user *ops.User, files, hosts string) (*runtimeapi.ContainerConfig, error) {
	c, err := ops.ContainerConfig(ops.ContainerInput{
		Pod:       pod,
		Kind:      podspec.Ephemeral,
		Container: container(r, session, pod),
		User:      user,
		Node:      node,
		Image:     image,
		TargetID:  p.Target,
		HostsFile: hosts,
		// The containers' own mounts keep their flags (read-only is not recursive), and later ones are to be seen, too.
		Mounts: []*runtimeapi.Mount{{ContainerPath: filesAt, HostPath: files, Readonly: true,
			Propagation: runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER}},
	})
	if err != nil {
		return nil, err
	}
	c.Command = r.Command // as it is: an exec's command has no variables to put in
	c.LogPath = ""        // its output is the client's
	c.Labels[cri.LabelContainerType], c.Labels[labelSession] = cri.TypeExec, session
	return c, nil
}

// container is the command's container as a spec would have it.
func container(r Request, session string, pod *corev1.Pod) *corev1.Container {
	security, _ := podspec.ImageExecSecurity(pod, r.User, r.likeWhom())
	return &corev1.Container{Name: "exec-" + session[:8], Image: r.Image, Command: r.Command,
		Stdin: r.Stdin, StdinOnce: r.Stdin, TTY: r.TTY, SecurityContext: security}
}

// userNote tells the client which user its command runs as, where that is not root because the pod does not allow it;
// nothing if the client has named a user itself.
func userNote(r Request, pod *corev1.Pod, config *runtimeapi.ContainerConfig) string {
	if _, forced := podspec.ImageExecSecurity(pod, r.User, r.likeWhom()); !forced || r.User != nil {
		return ""
	}
	who := config.GetLinux().GetSecurityContext().GetRunAsUsername()
	if who == "" {
		who = strconv.FormatInt(config.GetLinux().GetSecurityContext().GetRunAsUser().GetValue(), 10)
	}
	return fmt.Sprintf("the pod has runAsNonRoot: the command runs as user %s and cannot read what that user may not",
		who)
}

// sandboxConfig makes the config of a temporary sandbox.
func sandboxConfig(standIn *corev1.Pod, session string, node ops.Node, cgroup string) *runtimeapi.PodSandboxConfig {
	c := ops.SandboxConfig(ops.SandboxInput{Pod: standIn, Node: node, CgroupParent: cgroup})
	c.Labels[cri.LabelContainerType], c.Labels[labelSession] = cri.TypeExec, session
	return c
}
