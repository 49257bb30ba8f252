// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// NodeContainer is the container of a pod that looks at a node.
const NodeContainer = "debugger"

// NodePod is a pod from which a node can be looked at: in the node's own namespaces, with its files under /host. It
// does nothing by itself; a command is run in it by exec. With a time limit it ends by itself.
func NodePod(node, profile string, ttl time.Duration) (*corev1.Pod, error) {
	c := corev1.Container{
		Name: NodeContainer, Image: debugask.ToolboxImage, ImagePullPolicy: corev1.PullIfNotPresent,
		Command:      []string{"/bin/toolbox", "sleep", "infinity"},
		VolumeMounts: []corev1.VolumeMount{{Name: "host", MountPath: "/host"}},
	}
	switch profile {
	case "", "general":
	case "sysadmin":
		c.SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	case "netadmin":
		c.SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN", "NET_RAW"}}}
	default:
		return nil, fmt.Errorf("--profile %s does not fit a node: choose general, netadmin or sysadmin", profile)
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "node-debugger-" + node + "-",
			Labels: map[string]string{"app.kubernetes.io/managed-by": "wherry-debug"}},
		Spec: corev1.PodSpec{
			NodeName: node, HostNetwork: true, HostPID: true, HostIPC: true, RestartPolicy: corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: new(int64(0)), AutomountServiceAccountToken: new(false),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers:  []corev1.Container{c},
			Volumes: []corev1.Volume{{Name: "host",
				VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}},
		},
	}
	if ttl > 0 {
		p.Spec.ActiveDeadlineSeconds = new(int64(max(ttl/time.Second, 1)))
	}
	return p, nil
}

// NodePodUp reports whether a command can be run in such a pod, and fails when that will not be.
func NodePodUp(pod *corev1.Pod) (bool, error) {
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return false, fmt.Errorf("pod %s has ended (%s %s): %s", pod.Name, pod.Status.Phase, pod.Status.Reason,
			pod.Status.Message)
	}
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i].State
		switch {
		case s.Running != nil:
			return true, nil
		case s.Waiting != nil && s.Waiting.Reason != "" && s.Waiting.Reason != "ContainerCreating" &&
			s.Waiting.Reason != "PodInitializing":
			return false, fmt.Errorf("pod %s cannot start: %s: %s", pod.Name, s.Waiting.Reason, s.Waiting.Message)
		}
	}
	return false, nil
}
