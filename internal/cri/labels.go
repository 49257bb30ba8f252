// SPDX-License-Identifier: Apache-2.0

package cri

// Labels on sandboxes and containers. They are the kubelet's, so that tools such as crictl and log shippers know whose
// a container is.
const (
	LabelPodName       = "io.kubernetes.pod.name"
	LabelPodNamespace  = "io.kubernetes.pod.namespace"
	LabelPodUID        = "io.kubernetes.pod.uid"
	LabelContainerName = "io.kubernetes.container.name"
	LabelContainerType = "io.kubernetes.container.type" // of podspec.Kind.Label, or TypeExec (DC-10)
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

// TypeExec is the value of [LabelContainerType] of the command of an image exec, and of a sandbox made for it. It is no
// part of any pod: who observes pods does not see it (IX-06). The values of pods' containers are those of
// podspec.Kind.Label.
const TypeExec = "EXEC"

// IsExec decides by its labels whether a container, or a sandbox, is an image exec's.
func IsExec(labels map[string]string) bool { return labels[LabelContainerType] == TypeExec }
