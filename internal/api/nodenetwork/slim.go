// SPDX-License-Identifier: Apache-2.0

package nodenetwork

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// SlimPod is what other nodes are told of a pod: where it is, by what policies know it, and its named ports. (Pure.)
func SlimPod(p *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: slimMeta(&p.ObjectMeta),
		Spec: corev1.PodSpec{NodeName: p.Spec.NodeName, HostNetwork: p.Spec.HostNetwork,
			InitContainers: withPorts(p, podspec.Sidecar), Containers: withPorts(p, podspec.Main)},
		Status: corev1.PodStatus{Phase: p.Status.Phase, PodIP: p.Status.PodIP, PodIPs: p.Status.PodIPs},
	}
}

// withPorts are the containers of a kind that have named ports, and those.
func withPorts(p *corev1.Pod, kind podspec.Kind) (out []corev1.Container) {
	for ref := range podspec.OwnContainers(&p.Spec) {
		if ref.Kind == kind && named(ref.Container) {
			out = append(out, slimContainer(ref.Container))
		}
	}
	return out
}

func named(c *corev1.Container) bool {
	for _, p := range c.Ports {
		if p.Name != "" {
			return true
		}
	}
	return false
}

func slimContainer(c *corev1.Container) corev1.Container {
	out := corev1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy}
	for _, p := range c.Ports {
		if p.Name != "" {
			out.Ports = append(out.Ports, corev1.ContainerPort{Name: p.Name, Protocol: p.Protocol,
				ContainerPort: p.ContainerPort})
		}
	}
	return out
}

// SlimNode is what other nodes are told of a node: where it is, and which networks its pods have. (Pure.)
func SlimNode(n *corev1.Node) *corev1.Node {
	out := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: slimMeta(&n.ObjectMeta),
		Spec:       corev1.NodeSpec{PodCIDR: n.Spec.PodCIDR, PodCIDRs: n.Spec.PodCIDRs},
	}
	out.Labels = nil
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			out.Status.Addresses = append(out.Status.Addresses, a)
		}
	}
	return out
}

func slimMeta(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp, Labels: m.Labels}
}
