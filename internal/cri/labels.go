// SPDX-License-Identifier: Apache-2.0

package cri

// Labels on sandboxes and containers. They are the kubelet's, so that tools such as crictl and log shippers know whose a
// container is.
const (
	LabelPodName       = "io.kubernetes.pod.name"
	LabelPodNamespace  = "io.kubernetes.pod.namespace"
	LabelPodUID        = "io.kubernetes.pod.uid"
	LabelContainerName = "io.kubernetes.container.name"
	LabelContainerType = "io.kubernetes.container.type" // one of the ContainerType values, DC-10
)

// Annotations on containers. The kubelet's keep its names; what only Wherry needs is under wherry.dev/.
const (
	AnnotationRestartCount             = "io.kubernetes.container.restartCount"
	AnnotationTerminationMessagePath   = "io.kubernetes.container.terminationMessagePath"
	AnnotationTerminationMessagePolicy = "io.kubernetes.container.terminationMessagePolicy"
	AnnotationPodGracePeriod           = "io.kubernetes.pod.terminationGracePeriod"

	// AnnotationPrefix begins every annotation that is Wherry's own.
	AnnotationPrefix = "wherry.dev/"
)

// ContainerType is the value of [LabelContainerType].
type ContainerType string

const (
	TypeRegular   ContainerType = "REGULAR"
	TypeInit      ContainerType = "INIT"
	TypeSidecar   ContainerType = "SIDECAR"
	TypeEphemeral ContainerType = "EPHEMERAL"
	// TypeExec is the command of an image exec, and on a sandbox one made for it. It is no part of any pod: who observes
	// pods does not see it (IX-06).
	TypeExec ContainerType = "EXEC"
)

// TypeOf reads the container type from a container's labels. One without the label is regular (DC-10): it was made by
// something older than the label.
func TypeOf(labels map[string]string) ContainerType {
	switch t := ContainerType(labels[LabelContainerType]); t {
	case TypeInit, TypeSidecar, TypeEphemeral, TypeExec:
		return t
	default:
		return TypeRegular
	}
}
