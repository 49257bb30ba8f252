// SPDX-License-Identifier: Apache-2.0

package podspec

import corev1 "k8s.io/api/core/v1"

// NamespaceMode says whose Linux namespace a container gets. The values are the names of the CRI's enum
// NamespaceMode.
type NamespaceMode string

const (
	// NamespacePod is the namespace the Pod's containers share.
	NamespacePod NamespaceMode = "POD"
	// NamespaceContainer is one of the container's own.
	NamespaceContainer NamespaceMode = "CONTAINER"
	// NamespaceNode is the machine's.
	NamespaceNode NamespaceMode = "NODE"
)

// Namespaces are the modes of one sandbox. A debug container that joins another one's PID namespace (PID-07) is seen to
// when it is created.
type Namespaces struct {
	Network NamespaceMode // POD or NODE
	PID     NamespaceMode
	IPC     NamespaceMode // POD or NODE
}

// NamespaceModes returns the modes of a Pod's sandbox and of every main, init and sidecar container, which
// are the same (PID-01, PID-02).
func NamespaceModes(pod *corev1.Pod) Namespaces {
	spec := &pod.Spec
	modes := Namespaces{Network: NamespacePod, PID: NamespaceContainer, IPC: NamespacePod}
	if spec.HostNetwork {
		modes.Network = NamespaceNode
	}
	if spec.HostIPC {
		modes.IPC = NamespaceNode
	}
	switch {
	case spec.HostPID:
		modes.PID = NamespaceNode
	case isTrue(spec.ShareProcessNamespace):
		modes.PID = NamespacePod
	}
	return modes
}

func isTrue(b *bool) bool { return b != nil && *b }

func isFalse(b *bool) bool { return b != nil && !*b }
